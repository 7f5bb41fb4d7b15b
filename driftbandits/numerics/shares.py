"""Rewards as shares of their range, for policies for rewards in [0, 1]."""

import jax.numpy as jnp
from jax import Array


def share_of(reward: Array, reward_range: tuple[float, float]) -> Array:
    """Clipped to the range, with its low end at 0 and its high end at 1."""
    low, high = reward_range
    return (jnp.clip(reward, low, high) - low) / (high - low)
