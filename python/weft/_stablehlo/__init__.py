"""StableHLO, the form in which JAX, PyTorch/XLA and others exchange programs: weft.ir.to_stablehlo, from_stablehlo.

`types` has what both sides call element types and how arrays are written; `operations` the operations that both have
under two names. `writing` makes text of a program, and `expansions` says what stands for operations that StableHLO
lacks. `syntax` takes text apart, `reading` traces it, with `rules` for each operation that is more than a name."""
