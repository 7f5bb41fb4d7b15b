"""The vocabulary: what a bandit problem, a policy, a decision and an environment are.

Everything is a pure function over explicit state, so that one step of a policy in an environment
can be jitted, vmapped over runs and scanned over time.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from jax import Array

PyTree = Any
Key = Array  # a typed key of jax.random
State = PyTree


class BanditSpec(NamedTuple):
    """What is known about a problem before the first pull."""

    num_arms: int
    context_dim: int = 0
    horizon: int | None = None  # known in simulations, rarely in service
    reward_range: tuple[float, float] = (0.0, 1.0)
    noise: float = 0.5  # sub-Gaussian constant of the rewards


class Decision(NamedTuple):
    """An arm, the probabilities that it was drawn from, and what `learn` needs with its reward."""

    arm: Array  # () int32
    probabilities: Array  # (num_arms,) float32
    ticket: PyTree  # goes back to `learn` with the reward, at once or much later


class Policy(NamedTuple):
    """A way of choosing arms.

    Attributes:
        init: the state before the first pull.
        act: chooses an arm among the available ones; the new state holds what moves with time.
        learn: learns from the reward of one earlier decision, identified by its ticket.
        sees_means: whether the simulator gives it the arms' means in place of the context.
    """

    init: Callable[[Key], State]
    act: Callable[[Key, State, Array, Array], tuple[Decision, State]]
    learn: Callable[[State, PyTree, Array], State]
    sees_means: bool = False


class Observation(NamedTuple):
    """What a policy is shown before it chooses."""

    context: Array  # (context_dim,) float32
    available: Array  # (num_arms,) bool


class Rewards(NamedTuple):
    """What every arm pays now; a policy sees only the sampled reward of the arm it pulled."""

    sampled: Array  # (num_arms,) float32
    mean: Array  # (num_arms,) float32


class Delay(NamedTuple):
    """How late rewards are: steps between a pull and the moment the policy learns from it."""

    longest: int  # what takes longer never arrives
    draw: Callable[[Key], Array]  # () int32, 0 is at once


class Environment(NamedTuple):
    """A bandit problem to simulate.

    Attributes:
        spec: what a policy may know beforehand.
        init: draws one instance of the problem.
        observe: the context and the available arms.
        rewards: this step's rewards of all arms.
        advance: the state one step later; the pull may change it.
        era: a whole number that changes with every change that a learner should recover from;
            None where drift is gradual.
        delay: of the rewards; None means that they come at once.
    """

    spec: BanditSpec
    init: Callable[[Key], State]
    observe: Callable[[Key, State], Observation]
    rewards: Callable[[Key, State, Array], Rewards]
    advance: Callable[[State, Array], State]
    era: Callable[[State], Array] | None = None
    delay: Delay | None = None
