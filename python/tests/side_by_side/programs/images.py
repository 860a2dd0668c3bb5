"""Images: pooling, resizing, warps, masks, patches."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from written import program


@program("f32[4,4]")
def max_and_average_pooling(image):
    blocks = image.reshape(2, 2, 2, 2).transpose(0, 2, 1, 3)
    window = (2, 2)
    largest = lax.reduce_window(image, -jnp.inf, lax.max, window, window, "VALID")
    mean = lax.reduce_window(image, 0.0, lax.add, (3, 3), (1, 1), "SAME") / 9
    return largest - blocks.mean((2, 3)), mean


@program("f32[3,3]", 5)
def bilinear_resize(image, size):
    at = jnp.linspace(0.0, 2.0, size)
    low = jnp.clip(jnp.floor(at).astype(jnp.int32), 0, 1)
    t = at - low
    rows = image[low] * (1 - t)[:, None] + image[low + 1] * t[:, None]
    return rows[:, low] * (1 - t) + rows[:, low + 1] * t


@program("f32[4,4]", "f32[2]")
def translate_with_gather(image, shift):
    y, x = jnp.meshgrid(jnp.arange(4.0), jnp.arange(4.0), indexing="ij")
    y, x = y + jnp.tanh(shift[0]), x + jnp.tanh(shift[1])
    y0, x0 = jnp.floor(y), jnp.floor(x)
    out = 0.0
    for dy in (0, 1):
        for dx in (0, 1):
            weight = (1 - jnp.abs(y - y0 - dy)) * (1 - jnp.abs(x - x0 - dx))
            i, j = (y0 + dy).astype(int), (x0 + dx).astype(int)
            out = out + weight * image.at[i, j].get(mode="fill", fill_value=0.0)
    return out


@program("f32[5,5]")
def sobel_edges(image):
    kernel = jnp.array([[1.0, 0.0, -1.0], [2.0, 0.0, -2.0], [1.0, 0.0, -1.0]])
    both = jnp.stack([kernel, kernel.T])[:, None]
    gx, gy = lax.conv(image[None, None], both, (1, 1), "VALID")[0]
    magnitude = jnp.sqrt(gx**2 + gy**2 + 1e-3)
    return magnitude, jnp.arctan2(gy, gx)


@program("f32[4,4]", "f32[] 0.5..1.5")
def separable_gaussian_blur(image, sigma):
    offsets = jnp.arange(-1, 2)
    kernel = jnp.exp(-(offsets**2) / (2 * sigma**2))
    kernel = kernel / kernel.sum()
    padded = jnp.pad(image, 1, mode="edge")
    rows = sum(kernel[i] * padded[i : i + 4] for i in range(3))
    return sum(kernel[i] * rows[:, i : i + 4] for i in range(3))


@program("f32[4,4]")
def total_variation_descent(image):
    def cost(u):
        dx, dy = jnp.diff(u, axis=0), jnp.diff(u, axis=1)
        return jnp.sum(jnp.sqrt(dx**2 + 0.01)) + jnp.sum(jnp.sqrt(dy**2 + 0.01)) + jnp.sum((u - image) ** 2)

    def step(u, _):
        value, slope = jax.value_and_grad(cost)(u)
        return u - 0.05 * slope, value

    return lax.scan(step, image, None, length=2)


@program("f32[4,6]")
def patches_and_back(image):
    patches = image.reshape(2, 2, 3, 2).transpose(0, 2, 1, 3).reshape(6, 4)
    centred = patches - patches.mean(1, keepdims=True)
    back = centred.reshape(2, 3, 2, 2).transpose(0, 2, 1, 3).reshape(4, 6)
    return back, jnp.linalg.norm(patches, axis=1)


@program("u8[4,4] 0..256", "i32[] 60..200")
def threshold_and_label(image, level):
    mask = image > level
    labels = jnp.where(mask, jnp.arange(1, 17).reshape(4, 4), 0)

    def spread(_, labels):
        padded = jnp.pad(labels, 1)
        around = [padded[1:-1, 2:], padded[1:-1, :-2], padded[2:, 1:-1], padded[:-2, 1:-1]]
        return jnp.where(mask, jnp.stack([labels, *around]).max(0), 0)

    labels = lax.fori_loop(0, 8, spread, labels)
    return labels, mask.sum()


@program("u8[5,5] 0..256")
def histogram_equalisation(image):
    counts = jnp.bincount(image.ravel() // 32, length=8)
    cumulative = jnp.cumsum(counts)
    low = cumulative[jnp.argmax(counts > 0)]
    table = jnp.clip((cumulative - low) * 255 // (25 - low + 1), 0, 255).astype(jnp.uint8)
    return table[image // 32], counts


@program("u8[4,4] 0..2")
def morphology(image):
    grown = lax.reduce_window(image, np.uint8(0), lax.max, (3, 3), (1, 1), "SAME")
    shrunk = lax.reduce_window(grown, np.uint8(255), lax.min, (3, 3), (1, 1), "SAME")
    return grown, shrunk, shrunk.astype(jnp.int8) - image.astype(jnp.int8)


@program("f32[3,3,3] 0..1")
def grey_and_saturation(image):
    r, g, b = jnp.moveaxis(image, -1, 0)
    high, low = image.max(-1), image.min(-1)
    grey = 0.299 * r + 0.587 * g + 0.114 * b
    saturation = jnp.where(high > 0, (high - low) / jnp.where(high > 0, high, 1), 0.0)
    return grey, saturation, jnp.argmax(image, -1)


@program("f32[4,4] 0..1")
def floyd_steinberg_dithering(image):
    def pixel(state, value):
        carried, below = state
        wanted = value + carried
        out = lax.stop_gradient(jnp.round(wanted))
        error = wanted - out
        return (error * 7 / 16, below + error), (out, error)

    (_, total), (out, errors) = lax.scan(pixel, (0.0, 0.0), image.ravel())
    return out.reshape(4, 4), errors.reshape(4, 4), total


@program("f32[4,4]", "f32[]")
def radon_projections(image, angle):
    centre = jnp.arange(4) - 1.5
    y, x = jnp.meshgrid(centre, centre, indexing="ij")

    def project(a):
        distance = x * jnp.cos(a) + y * jnp.sin(a)
        weights = jax.nn.relu(1 - jnp.abs(distance[..., None] - centre))
        return jnp.einsum("ij,ijk->k", image, weights)

    return jax.vmap(project)(angle + jnp.array([0.1, 0.8, 1.6]))


@program("f32[3,2]", "f32[2]")
def soft_rasteriser(triangle, point):
    edges = jnp.roll(triangle, -1, 0) - triangle
    offset = point - triangle
    cross = edges[:, 0] * offset[:, 1] - edges[:, 1] * offset[:, 0]
    area = jnp.abs(cross.sum()) + 0.1
    inside = jnp.prod(jax.nn.sigmoid(cross * jnp.sign(cross.sum()) / 0.2))
    return inside, cross / area


@program("f32[3]", "f32[3]")
def ray_marching(origin, direction):
    direction = direction / jnp.linalg.norm(direction)

    def distance(p):
        sphere = jnp.linalg.norm(p) - 0.5
        box = jnp.linalg.norm(jnp.maximum(jnp.abs(p - 1.0) - 0.3, 0.0) + 1e-2)
        return jnp.minimum(sphere, box)

    def march(t, _):
        t = t + distance(origin + t * direction)
        return t, t

    t, trail = lax.scan(march, 0.1, None, length=3)
    return t, jax.grad(distance)(origin + t * direction), trail


@program("f32[2,3]", "f32[4]", "f32[4]")
def camera_projection(points, q, intrinsics):
    q = q / jnp.linalg.norm(q)
    u, w = q[1:], q[0]
    points = jnp.concatenate([points, points[:1] * 0.5])
    turned = points + 2 * jnp.cross(u, jnp.cross(u, points) + w * points)
    depth = jnp.abs(turned[:, 2:]) + 1.0
    return turned[:, :2] / depth * intrinsics[:2] + intrinsics[2:], depth[:, 0]


@program("f32[4,4]", "i32[3] 0..3", "i32[3] 0..3")
def crops_by_dynamic_slice(image, rows, columns):
    def crop(i, j):
        return lax.dynamic_slice(image, (i, j), (2, 2))

    crops = jax.vmap(crop)(rows, columns)
    pasted = lax.dynamic_update_slice(image, crops[0] * 2, (rows[1], columns[1]))
    return crops.mean(0), pasted, jnp.rot90(crops[1]), jnp.flip(crops[2], 1)


@program("f32[4]", "f32[4]")
def box_overlap_and_suppression(a, b):
    low = jnp.stack([a[:2], b[:2], (a + b)[:2] / 2])
    high = low + jnp.abs(jnp.stack([a[2:], b[2:], (a - b)[2:]])) + 0.5
    overlap = jnp.maximum(jnp.minimum(high[:, None], high) - jnp.maximum(low[:, None], low), 0).prod(-1)
    area = (high - low).prod(-1)
    iou = overlap / (area[:, None] + area - overlap)

    def suppress(keep, i):
        keep = keep & ~((iou[i] > 0.5) & (jnp.arange(3) > i) & keep[i])
        return keep, keep.sum()

    keep, _ = lax.scan(suppress, jnp.ones(3, bool), jnp.arange(3))
    return iou, keep


@program("c64[3,3]")
def fractal_escape(c):
    def step(state, _):
        z, n = state
        inside = jnp.abs(z) < 2
        return (jnp.where(inside, z * z + c, z), n + inside), None

    (z, n), _ = lax.scan(step, (jnp.zeros_like(c), jnp.zeros(c.shape, jnp.int32)), None, length=4)
    return n, jnp.abs(z)


@program("c64[4]", 1e-2)
def newton_fractal(z, _):
    def step(z, _):
        return z - (z**3 - 1) / (3 * z**2 + 0.5), None

    z, _ = lax.scan(step, z, None, length=3)
    roots = jnp.exp(2j * jnp.pi * jnp.arange(3) / 3)
    return jnp.argmin(jnp.abs(z[:, None] - roots), 1), z.real
