"""Random keys with the same bits as JAX's own, computed faster.

Threefry-2x32 with 20 rounds: Salmon, Moraes, Dror & Shaw (2011), "Parallel random numbers: as easy
as 1, 2, 3". On a CPU JAX runs the rounds as a loop of small kernels, which costs more than the rest
of a simple policy's step. Here they are written out, and XLA makes one kernel of them.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.extend.random
import jax.numpy as jnp
import numpy as np
from jax import Array

from driftbandits.core import Key

ROTATIONS = (13, 15, 26, 6), (17, 29, 16, 24)
PARITY = 0x1BD11BDA

Words = Any  # two words, or two arrays of them


def key(seed: int) -> Key:
    """A key for the functions of jax.random."""
    return jax.random.key(seed, impl=THREEFRY)


def key_of(words: Array | np.ndarray) -> Key:
    """The key with these words, or keys."""
    return jax.random.wrap_key_data(words, impl=THREEFRY)  # type: ignore[arg-type]


def is_key(leaf: Any) -> bool:
    return bool(jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key))


def without_key(leaf: Array) -> Array:
    """The words of a key; anything else is returned as it is."""
    return jax.random.key_data(leaf) if is_key(leaf) else leaf


def with_key(leaf: Array, like: Any) -> Array:
    """Undoes `without_key` for a leaf that was like this."""
    return key_of(leaf) if is_key(like) else leaf


@cache
def any_key() -> jax.ShapeDtypeStruct:
    """A key without a value, for functions that are only traced."""
    return jax.eval_shape(key_of, jax.ShapeDtypeStruct((2,), np.uint32))


def key_words(seed: int) -> np.ndarray:
    """The words of a key, as `key` has them: (2,) uint32."""
    wide = np.int64(seed)
    high = wide >> 32 if jax.config.values["jax_enable_x64"] else 0
    return np.array([high, wide & 0xFFFFFFFF]).astype(np.uint32)


def run_words(seed: int, runs: np.ndarray, number: int) -> np.ndarray:
    """The words of `split(fold_in(key(seed), run), number)` for each run: (runs, number, 2) uint32.

    Computed by NumPy, which has nothing to compile.
    """
    zero, runs = np.zeros(1, np.uint32), runs.astype(np.uint32)[:, None]
    own = threefry(key_words(seed), zero, runs)
    return np.stack(threefry(own, zero, np.arange(number, dtype=np.uint32)), axis=-1)


def key_at(words: Array, time: Array) -> Key:
    """The key of a moment, for a state that holds the words of a key (`jax.random.key_data`)."""
    return jax.random.fold_in(key_of(words), time)


def two_words(key: Key, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Two independent uint32 from one hash."""
    return threefry(jax.random.key_data(key), *counters(shape))


def threefry(pair: Words, high: Any, low: Any) -> tuple[Any, Any]:
    """Two random words for every counter, of which `high` and `low` are the halves.

    It takes arrays of NumPy or JAX.
    """
    schedule = [pair[0], pair[1], pair[0] ^ pair[1] ^ np.uint32(PARITY)]
    x, y = high + schedule[0], low + schedule[1]
    for group in range(1, 6):
        for distance in ROTATIONS[(group - 1) % 2]:
            x = x + y
            y = x ^ rotate_left(y, distance)
        x = x + schedule[group % 3]
        y = y + schedule[(group + 1) % 3] + np.uint32(group)
    return x, y


def rotate_left(word: Any, distance: int) -> Any:
    return (word << np.uint32(distance)) | (word >> np.uint32(32 - distance))


def counters(shape: tuple[int, ...]) -> tuple[Array, Array]:
    """0, 1, 2, ... as high and low words, for fewer than 2^32 numbers."""
    low = jnp.arange(math.prod(shape), dtype=jnp.uint32).reshape(shape)
    return jnp.zeros_like(low), low


def computed_once(make: Callable[[], Array]) -> Array:
    """Keeps XLA from recomputing an array in each kernel that reads it.

    XLA fuses what it takes to be cheap, such as integer arithmetic, into every reader. It does not
    look into the branch of a condition, nor does it see that this one is always true.
    """
    nothing = jax.eval_shape(make)
    always = jax.lax.optimization_barrier(jnp.bool_(True))
    return jax.lax.cond(always, make, lambda: jnp.zeros(nothing.shape, nothing.dtype))


def seed_words(seed: Array) -> Array:
    high = seed >> 32 if seed.dtype.itemsize == 8 else jnp.zeros_like(seed)
    return jnp.stack([high.astype(jnp.uint32), seed.astype(jnp.uint32)])


def split(pair: Array, shape: tuple[int, ...]) -> Array:
    return jnp.stack(threefry(pair, *counters(shape)), axis=-1)


def fold_in(pair: Array, data: Array) -> Array:
    return jnp.stack(threefry(pair, jnp.uint32(0), data.astype(jnp.uint32)))


def random_bits(pair: Array, width: int, shape: tuple[int, ...]) -> Array:
    def bits() -> Array:
        high, low = threefry(pair, *counters(shape))
        if width == 64:
            return high.astype(jnp.uint64) << 32 | low.astype(jnp.uint64)
        return (high ^ low).astype(f"uint{width}")

    return computed_once(bits)


THREEFRY = jax.extend.random.define_prng_impl(
    key_shape=(2,),
    seed=jax.jit(seed_words),
    split=jax.jit(split, static_argnums=1, inline=True),
    random_bits=jax.jit(random_bits, static_argnums=(1, 2), inline=True),
    fold_in=jax.jit(fold_in, inline=True),
    name="driftbandits_threefry",
    tag="dbt",
)
