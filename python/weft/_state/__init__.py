"""References: arrays whose contents change, and what transforms do with the functions that change them."""
