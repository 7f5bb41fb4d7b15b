"""Policies of other libraries: any Python object that chooses arms and learns from rewards.

Two interfaces are recognised by their methods. river: `pull(arms)` and `update(arm, reward)`, with
the context as a dictionary if the methods take one. MABWiser: `predict()` and
`partial_fit(arms, rewards)`, with the context as a row if `is_contextual`. For any other object you
give two functions, one that chooses and one that learns. A policy that needs a context in a problem
without one gets the constant 1.
"""

import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from driftbandits import check
from driftbandits.core import BanditSpec

Pull = Callable[..., Any]
Update = Callable[..., Any]

ON_REQUEST = ("features", "arm_ids")  # what functions get of `Shown` if they have such an argument


class Shown(NamedTuple):
    """What a policy is shown before a pull, beside the arms that are available."""

    context: np.ndarray  # (context_dim,) float32
    features: np.ndarray  # (num_arms, arm_dim) float32
    arm_ids: np.ndarray  # (num_arms,) int32; zeros where arms never change


class ExternalPolicy(NamedTuple):
    """How to make a policy of another library and how to use it; see `external_policy`.

    Attributes:
        make: Makes a fresh policy for each run.
        pull: Chooses an arm. None if the policy has the methods of river or MABWiser.
        update: Learns from a reward. None if `pull` is None.
    """

    make: Callable[..., Any]
    pull: Pull | None = None
    update: Update | None = None


class Player(Protocol):
    """A policy in one run."""

    def pull(self, arms: Sequence[int], shown: Shown) -> Any:
        """One of the available arms."""

    def update(self, arm: int, reward: float, shown: Shown) -> None:
        """The reward of a pull, with what was shown before it."""


def external_policy(
    make: Callable[..., Any], *, pull: Pull | None = None, update: Update | None = None
) -> ExternalPolicy:
    """Wraps a policy of another library, or any Python object, for `simulate_external`.

    Policies of river and MABWiser need nothing but `make`. For any other object, give `pull` and
    `update`.

    Args:
        make: A function that makes a fresh policy for each run. If it has an argument `seed`, it
            gets a different one for each run, as in
            `lambda seed: river.bandit.UCB(delta=1, seed=seed)`.
        pull: `pull(policy, arms, context)` returns one of `arms`, the available ones. None if the
            policy has the methods of river or MABWiser.
        update: `update(policy, arm, reward, context)` learns from a reward. None if `pull` is None.
            If it or `pull` has an argument `features`, it gets the features of all arms, of shape
            `(num_arms, arm_dim)`; with an argument `arm_ids`, a number for each place, of shape
            `(num_arms,)`, which changes when another arm takes it.

    Returns:
        A policy for `simulate_external` and `compare_with`.

    Raises:
        InputError: If `make` is not a function, or only one of `pull` and `update` is given.

    Example:
        ```python
        from driftbandits import external_policy, simulate_external


        class RoundRobin:
            def __init__(self):
                self.pulls = 0

            def pull(self, arms):
                self.pulls += 1
                return arms[self.pulls % len(arms)]

            def update(self, arm, reward):
                pass


        policy = external_policy(RoundRobin)  # the methods are those of river
        trace = simulate_external(policy, "sinusoidal", horizon=50, runs=2)
        print(trace.pulls[0, -1])
        ```
    """
    if not callable(make):
        check.fail("make", "a function that makes a policy, as each run needs a fresh one", make)
    if (pull is None) != (update is None):
        check.fail("pull and update", "given both, or neither", (pull, update))
    return ExternalPolicy(make, pull, update)


def player_of(policy: ExternalPolicy, spec: BanditSpec, seed: int) -> Player:
    """A fresh policy for one run."""
    made = policy.make(seed=seed) if takes(policy.make, "seed") else policy.make()
    if policy.pull is not None and policy.update is not None:
        return Custom(made, policy.pull, policy.update)
    if has(made, "pull", "update"):
        return LikeRiver(made)
    if has(made, "predict", "predict_expectations", "partial_fit", "arms"):
        return LikeMabwiser(made, spec.num_arms)
    check.fail(
        "policy",
        "an object with the methods of river (pull, update) or of MABWiser (predict, partial_fit), "
        "or be given with the functions `pull` and `update`",
        type(made).__name__,
    )


def has(policy: Any, *names: str) -> bool:
    return all(hasattr(policy, name) for name in names)


def takes(function: Callable[..., Any], name: str, given: int = 0) -> bool:
    """Whether it has an argument of this name, after those that are given by position.

    False where its signature is not known.
    """
    try:
        return name in list(inspect.signature(function).parameters)[given:]
    except (TypeError, ValueError):
        return False


def context_or_one(context: np.ndarray) -> list[float]:
    return context.tolist() if context.size else [1.0]


class Custom:
    """An object that is used through two functions."""

    def __init__(self, policy: Any, pull: Pull, update: Update) -> None:
        self._policy, self._pull, self._update = policy, pull, update
        self._pull_sees = [name for name in ON_REQUEST if takes(pull, name, given=3)]
        self._update_sees = [name for name in ON_REQUEST if takes(update, name, given=4)]

    def pull(self, arms: Sequence[int], shown: Shown) -> Any:
        seen = {name: getattr(shown, name) for name in self._pull_sees}
        return self._pull(self._policy, arms, shown.context, **seen)

    def update(self, arm: int, reward: float, shown: Shown) -> None:
        seen = {name: getattr(shown, name) for name in self._update_sees}
        self._update(self._policy, arm, reward, shown.context, **seen)


class LikeRiver:
    """The interface of river, which takes a list of the available arms."""

    def __init__(self, policy: Any) -> None:
        self._policy = policy
        self._pull_sees = takes(policy.pull, "context")
        self._update_sees = takes(policy.update, "context")

    def pull(self, arms: Sequence[int], shown: Shown) -> Any:
        if self._pull_sees:
            return self._policy.pull(arms, context=named(shown.context))
        return self._policy.pull(arms)

    def update(self, arm: int, reward: float, shown: Shown) -> None:
        if self._update_sees:
            self._policy.update(arm, named(shown.context), reward)
        else:
            self._policy.update(arm, reward)


def named(context: np.ndarray) -> dict[str, float]:
    return {f"x{i}": value for i, value in enumerate(context_or_one(context))}


class LikeMabwiser:
    """The interface of MABWiser, which cannot choose before it has data for every arm.

    So every arm is pulled once, as soon as it is available. If some arms are not available, the
    available arm with the highest expectation is chosen.
    """

    def __init__(self, policy: Any, num_arms: int) -> None:
        if set(policy.arms) != set(range(num_arms)):
            check.fail("arms of the policy", f"the numbers of range({num_arms})", list(policy.arms))
        self._policy = policy
        self._pulls = [0] * num_arms
        self._rewarded = False  # whether any reward came yet; they may be late

    def pull(self, arms: Sequence[int], shown: Shown) -> Any:
        arm = min(arms, key=self._pulls.__getitem__)
        if self._rewarded and self._pulls[arm]:
            arm = self._choose(arms, **self._seen(shown.context))
        self._pulls[arm] += 1
        return arm

    def _choose(self, arms: Sequence[int], **seen: Any) -> Any:
        if len(arms) == len(self._pulls):
            return self._policy.predict(**seen)
        expectations = self._policy.predict_expectations(**seen)
        return max(arms, key=expectations.__getitem__)

    def update(self, arm: int, reward: float, shown: Shown) -> None:
        self._policy.partial_fit([arm], [reward], **self._seen(shown.context))
        self._rewarded = True

    def _seen(self, context: np.ndarray) -> dict[str, Any]:
        return {"contexts": [context_or_one(context)]} if self._policy.is_contextual else {}
