"""Operations on images, random ones too, and a gradient through them."""

import dm_pix as pix
import jax
import jax.numpy as jnp


def program():
    key = jax.random.PRNGKey(0)
    image = jax.random.uniform(key, (12, 10, 3))
    other = jnp.clip(image + 0.05, 0, 1)
    return (
        pix.rgb_to_grayscale(image),
        pix.rgb_to_hsv(image),
        pix.hsv_to_rgb(pix.rgb_to_hsv(image)) - image,
        pix.adjust_hue(image, 0.1),
        pix.adjust_contrast(image, 0.7),
        pix.adjust_gamma(image, 2.0),
        pix.gaussian_blur(image, 1.0, 3),
        pix.flip_left_right(image),
        pix.rot90(image, 1),
        pix.random_brightness(key, image, 0.2),
        pix.random_saturation(key, image, 0.5, 1.5),
        pix.random_crop(key, image, (6, 5, 3)),
        pix.random_flip_left_right(key, image),
        pix.psnr(image, other),
        pix.ssim(image, other),
        pix.affine_transform(image, jnp.array([[0.9, 0.1, 0.0], [0.0, 1.0, 0.5], [0.0, 0.0, 1.0]])),
        pix.rotate(image, 0.3),
        pix.depth_to_space(image[:, :, :1].repeat(4, 2), 2),
        jax.grad(lambda a: pix.ssim(a, other))(image),
        jax.vmap(lambda i: pix.solarize(i, 0.5))(jnp.stack([image, other])),
        pix.center_crop(image, 6, 6),
    )
