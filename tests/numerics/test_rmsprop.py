"""RMSprop without divisions, against the one of optax, and its reciprocals against divisions."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from driftbandits.numerics.rmsprop import reciprocal, rmsprop

RATE, STEPS = 0.003, 200


def relative_error(x: np.ndarray) -> np.ndarray:
    return np.asarray(jax.jit(reciprocal)(x), np.float64) * x.astype(np.float64) - 1


@pytest.mark.parametrize(
    "x",
    [
        np.arange(0x3F800000, 0x40800000, dtype=np.int32).view(np.float32),
        np.logspace(-37, 37, 1_000_001),
        2.0 ** np.arange(-120, 121),
    ],
    ids=["all mantissas", "all sizes", "powers of two"],
)
def test_reciprocal_is_off_by_rounding_only(x: np.ndarray) -> None:
    error = relative_error(x.astype(np.float32))
    assert np.abs(error).max() < 1e-7  # a division's is up to 6e-8
    assert abs(error.mean()) < 1e-8


def gradients() -> dict[str, np.ndarray]:
    """Of many sizes, some of them zero, also for ever."""
    rng = np.random.default_rng(0)
    sizes = 10.0 ** np.arange(-15, 11)  # their squares do not underflow
    normal = rng.normal(size=(STEPS, sizes.size)) * sizes
    seldom = normal * (rng.random(normal.shape) < 0.1)
    return {
        "always": normal.astype(np.float32),
        "seldom": seldom.astype(np.float32),
        "never": np.zeros((STEPS, 2), np.float32),
    }


def test_it_takes_the_steps_of_optax() -> None:
    given = gradients()
    start = jax.tree.map(lambda g: jnp.zeros(g.shape[1]), given)
    theirs = optax.rmsprop(RATE, decay=0.99, eps=1e-8, eps_in_sqrt=False)

    def course(optimizer: optax.GradientTransformation) -> tuple:
        def step(state, gradient):
            updates, state = optimizer.update(gradient, state)
            return state, (updates, optax.tree.get(state, "nu"))

        return jax.jit(jax.lax.scan, static_argnums=0)(step, optimizer.init(start), given)[1]

    actual, expected = course(rmsprop(RATE)), course(theirs)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), actual, expected)
    assert np.abs(actual[0]["always"]).min() > 0
    assert not np.any(actual[0]["never"])


def test_a_gradient_whose_square_overflows_breaks_nothing() -> None:
    optimizer, weights = rmsprop(RATE), jnp.zeros(3)
    state = optimizer.init(weights)
    for size in (1.0, 1e20, 3e38, 1.0):
        updates, state = jax.jit(optimizer.update)(size * jnp.array([1.0, -1.0, 0.0]), state)
        weights = optax.apply_updates(weights, updates)
    np.testing.assert_array_equal(np.sign(weights), [-1, 1, 0])
    assert np.isfinite(weights).all()
    assert np.all(np.abs(updates) < 1e-20), "what has been so steep stands still"


def test_other_precisions_divide() -> None:
    assert reciprocal(jnp.float16(3)) == jnp.float16(1) / jnp.float16(3)
