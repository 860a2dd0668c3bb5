"""Integers, bits, hashes, number theory, text."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from written import program


@program("u32[4] 0..4000000000")
def population_count_and_parity(x):
    v = x - ((x >> 1) & 0x55555555)
    v = (v & 0x33333333) + ((v >> 2) & 0x33333333)
    count = (((v + (v >> 4)) & 0x0F0F0F0F) * jnp.uint32(0x01010101)) >> 24
    return count, count == lax.population_count(x), count & 1, lax.clz(x)


@program("u32[] 1..4000000000")
def xorshift_generator(state):
    def step(x, _):
        x = x ^ (x << 13)
        x = x ^ (x >> 17)
        x = x ^ (x << 5)
        return x, (x >> 8).astype(jnp.float32) / 2**24

    return lax.scan(step, state, None, length=6)


@program("u8[6] 0..256")
def crc32(data):
    def byte(crc, b):
        def bit(_, c):
            return jnp.where(c & 1, (c >> 1) ^ jnp.uint32(0xEDB88320), c >> 1)

        return lax.fori_loop(0, 8, bit, crc ^ b), None

    crc, _ = lax.scan(byte, jnp.uint32(0xFFFFFFFF), data.astype(jnp.uint32))
    return ~crc


@program("u8[8] 0..256")
def fnv_and_adler(data):
    def step(state, b):
        h, a, s = state
        h = (h ^ b) * jnp.uint32(16777619)
        a = (a + b) % 65521
        return (h, a, (s + a) % 65521), None

    start = jnp.uint32(2166136261), jnp.uint32(1), jnp.uint32(0)
    (h, a, s), _ = lax.scan(step, start, data.astype(jnp.uint32))
    return h, (s << 16) | a


@program("i32[] 1..1000", "i32[] 1..30")
def modular_power(base, exponent):
    def step(state, _):
        result, b, e = state
        result = jnp.where(e & 1, result * b % 1009, result)
        return (result, b * b % 1009, e >> 1), result

    return lax.scan(step, (1, base % 1009, exponent), None, length=5)


@program("i32[] 20..30")
def sieve_of_eratosthenes(limit):
    numbers = jnp.arange(32)

    def strike(i, prime):
        multiple = (numbers % jnp.maximum(i, 1) == 0) & (numbers > i)
        return jnp.where(prime[i], prime & ~multiple, prime)

    prime = lax.fori_loop(2, 6, strike, numbers >= 2)
    return prime, (prime & (numbers < limit)).sum(), jnp.nonzero(prime, size=11)[0]


@program("i32[] 0..40")
def fibonacci_both_ways(n):
    def step(_, ab):
        return ab[1], ab[0] + ab[1]

    a, _ = lax.fori_loop(0, n, step, (jnp.int32(0), jnp.int32(1)))
    table = [0, 1]
    for _ in range(38):
        table.append(table[-1] + table[-2])
    return a, jnp.array(table)[jnp.minimum(n, 39)]


@program("i32[] 1..3000")
def roman_and_decimal_digits(n):
    powers = jnp.array([1000, 100, 10, 1])
    digits = n // powers % 10
    values = jnp.array([1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1])

    def take(rest, value):
        return rest % value, rest // value

    rest, counts = lax.scan(take, n, values)
    return digits, counts, rest, digits[::-1] @ powers


@program("i8[6] -128..128", "i8[6] -128..128")
def saturating_arithmetic(a, b):
    wide = a.astype(jnp.int16) + b
    saturated = jnp.clip(wide, -128, 127).astype(jnp.int8)
    average = (a & b) + ((a ^ b) >> 1)
    return saturated, average, a + b, jnp.abs(a), lax.sign(b), -a


@program("u16[4] 0..65536")
def morton_codes(x):
    def spread(v):
        v = v.astype(jnp.uint32) & 0xFF
        v = (v | (v << 4)) & 0x0F0F
        v = (v | (v << 2)) & 0x3333
        return (v | (v << 1)) & 0x5555

    code = spread(x) | (spread(x >> 8) << 1)
    return code, jnp.argsort(code), (code >> 1).astype(jnp.uint16)


@program("i32[5] 0..256")
def gray_code_and_back(n):
    gray = n ^ (n >> 1)

    def step(i, b):
        return b ^ (gray >> i)

    back = lax.fori_loop(1, 8, step, gray)
    return gray, back == n, lax.population_count(gray ^ (gray >> 1))


@program("f32[5]", "i32[5] -1000000..1000000")
def float_bits(x, n):
    bits = lax.bitcast_convert_type(x, jnp.int32)
    exponent = ((bits >> 23) & 0xFF) - 127
    mantissa = bits & 0x7FFFFF
    rebuilt = lax.bitcast_convert_type(bits & ~0x7FFFFF, jnp.float32)
    return exponent, mantissa, rebuilt, lax.bitcast_convert_type(n | (127 << 23), jnp.float32)


@program("f32[4] 0.5..20")
def fast_inverse_square_root(x):
    i = jnp.int32(0x5F3759DF) - (lax.bitcast_convert_type(lax.stop_gradient(x), jnp.int32) >> 1)
    y = lax.bitcast_convert_type(i, jnp.float32)
    for _ in range(2):
        y = y * (1.5 - 0.5 * x * y * y)
    return y, jnp.abs(y * jnp.sqrt(x) - 1) < 1e-2


@program("i32[4] -100..100", "i32[4] 1..13")
def division_conventions(a, b):
    quotient, rest = jnp.divmod(a, b)
    towards_zero = lax.div(a, b)
    return quotient, rest, towards_zero, lax.rem(a, b), jnp.fmod(a, b), quotient * b + rest == a, a / b


@program("i32[12] 0..26")
def letter_counts_and_caesar(text):
    counts = jnp.bincount(text, length=26)
    shift = (jnp.argmax(counts) - 4) % 26
    plain = (text - shift) % 26
    runs = jnp.cumsum(jnp.concatenate([jnp.array([0]), (text[1:] != text[:-1]).astype(jnp.int32)]))
    return counts, plain, runs


@program("i32[10] 0..2", "i32[3] 0..2")
def substring_search(text, pattern):
    windows = jnp.stack([text[i : i + 8] for i in range(3)], 1)
    match = (windows == pattern).all(1)
    first = jnp.where(match.any(), jnp.argmax(match), -1)
    return match, first, jnp.sum(match, dtype=jnp.int16)


@program("i32[8] 0..5")
def run_length_encoding(x):
    start = jnp.concatenate([jnp.array([True]), x[1:] != x[:-1]])
    where = jnp.cumsum(start) - 1
    lengths = jax.ops.segment_sum(jnp.ones_like(x), where, num_segments=8)
    values = jnp.zeros_like(x).at[where].set(x)
    return values, lengths, jnp.repeat(values, lengths, total_repeat_length=8) == x


@program("i32[8] 0..100")
def radix_sort(x):
    def pass_(x, bit):
        ones = (x >> bit) & 1
        zeros_before = jnp.cumsum(1 - ones) - (1 - ones)
        ones_before = jnp.cumsum(ones) - ones
        place = jnp.where(ones, (1 - ones).sum() + ones_before, zeros_before)
        return jnp.zeros_like(x).at[place].set(x), place

    return lax.scan(pass_, x, jnp.arange(7))


@program("i32[6] 0..50", "i32[6] 0..50")
def lexicographic_order(major, minor):
    order = jnp.lexsort((minor, major))
    keys = major * 64 + minor
    return order, keys[order], jnp.unique(major, size=6, fill_value=-1), jnp.isin(major, minor)


@program("i64[3] 0..1000000000000", "u64[3] 0..1000000", x64=True)
def split_mix_of_64_bits(x, y):
    def mix(z):
        z = (z ^ (z >> 30)) * jnp.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> 27)) * jnp.uint64(0x94D049BB133111EB)
        return z ^ (z >> 31)

    return mix(x.astype(jnp.uint64) + y), x % 1_000_003, (x >> 32).astype(jnp.int32)


@program("bool[4]", "bool[4]", "bool[]")
def ripple_carry_adder(a, b, carry):
    def full_adder(carry, ab):
        a, b = ab
        return (a & b) | (carry & (a ^ b)), a ^ b ^ carry

    carry, total = lax.scan(full_adder, carry, (a, b))
    number = jnp.sum(total * 2 ** jnp.arange(4)) + 16 * carry
    return total, carry, number


@program("i32[3,3] -5..6")
def integer_determinant(m):
    def minor(i, j):
        rows, columns = [k for k in range(3) if k != i], [k for k in range(3) if k != j]
        return m[np.ix_(rows, columns)]

    two = lambda a: a[0, 0] * a[1, 1] - a[0, 1] * a[1, 0]
    cofactors = jnp.array([[(-1) ** (i + j) * two(minor(i, j)) for j in range(3)] for i in range(3)])
    return (m[0] * cofactors[0]).sum(), cofactors.T @ m


@program("u8[3] 0..256", "u8[2] 0..256")
def packed_bits(x, y):
    bits = jnp.unpackbits(x)
    flipped = jnp.packbits(bits.reshape(3, 8)[:, ::-1])
    weights = bits.reshape(3, 8).sum(0)
    return flipped, weights, jnp.bitwise_xor(x[:2], y), jnp.left_shift(y, 3), jnp.invert(x)


@program("i32[4,4] 0..10")
def magic_square_checks(board):
    sums = jnp.concatenate([board.sum(0), board.sum(1), jnp.array([jnp.trace(board), jnp.trace(board[::-1])])])
    return jnp.all(sums == sums[0]), sums, jnp.unravel_index(jnp.argmax(board), board.shape)


@program("i32[] 0..40320")
def permutation_from_its_number(n):
    factorials = jnp.array([5040, 720, 120, 24, 6, 2, 1, 1])

    def pick(state, f):
        n, free = state
        at = jnp.argmax(jnp.cumsum(free) > n // f)
        return (n % f, free.at[at].set(0)), at

    (_, _), order = lax.scan(pick, (n, jnp.ones(8, jnp.int32)), factorials)
    return order, jnp.sort(order)


@program("i32[6] 0..4", "f32[6]")
def stable_partition_by_class(classes, x):
    order = jnp.argsort(classes, stable=True)
    starts = jnp.searchsorted(classes[order], jnp.arange(4))
    totals = jnp.zeros(4).at[classes].add(x)
    first = jnp.full(4, -1).at[classes[::-1]].set(jnp.arange(5, -1, -1))
    return x[order], starts, totals, first
