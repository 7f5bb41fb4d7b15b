"""How a track would draw the next arm, and how the advice of two tracks is mixed."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from driftbandits.numerics.arms import greedy_probabilities
from driftbandits.policies.tracker.gate import Gate, chance_of_second
from driftbandits.policies.tracker.inverse_gaps import inverse_gap_probabilities


class Advice(NamedTuple):
    """The advice of one track."""

    best: Array  # (num_arms,) float32, all mass on the highest index, without the streak's effect
    probabilities: Array  # (num_arms,) float32


def advise(
    mean: Array,
    width: Array,
    *,
    effect_by_arm: Array,
    effect_chance: Array,
    randomness: float | None,
    available: Array,
) -> Advice:
    """Inverse gap weights of the index, with the streak's effect by its probability."""

    def probabilities_of(index: Array) -> Array:
        best = greedy_probabilities(index, available)
        if randomness is None:
            return best
        return inverse_gap_probabilities(index, randomness * jnp.sum(best * width), available)

    index = mean + width
    affected = probabilities_of(index + effect_by_arm)
    return Advice(
        greedy_probabilities(index, available),
        (1 - effect_chance) * probabilities_of(index) + effect_chance * affected,
    )


def mixed(
    advice: list[Advice], gate: Gate, reward_variance: Array, head_start: float | None = None
) -> Array:
    """The arms' probabilities: those of one track or the other, as the gate decides."""
    if len(advice) == 1:
        return advice[0].probabilities
    second = chance_of_second(gate, reward_variance, head_start)
    return (1 - second) * advice[0].probabilities + second * advice[1].probabilities
