"""Policies of other libraries: any Python object that can be asked for an arm and told a reward.

Two shapes are known by their methods. river: `pull(arms)` and `update(arm, reward)`, with the
context as a dictionary where the methods take one. MABWiser: `predict()` and `partial_fit(arms,
rewards)`, with the context as a row where `is_contextual`. For any other object two functions say
how it is asked and told. Where a policy wants a context and the problem has none, it is the
constant 1.
"""

import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from driftbandits import check
from driftbandits.core import BanditSpec

Pull = Callable[[Any, Sequence[int], np.ndarray], Any]
Update = Callable[[Any, int, float, np.ndarray], Any]


class ExternalPolicy(NamedTuple):
    """How to make a policy that lives outside of JAX, and how to play it."""

    make: Callable[..., Any]
    pull: Pull | None = None
    update: Update | None = None


class Player(Protocol):
    """A policy in one run."""

    def pull(self, arms: Sequence[int], context: np.ndarray) -> Any:
        """One of the available arms."""

    def update(self, arm: int, reward: float, context: np.ndarray) -> None:
        """The reward of a pull, with the context that it was made in."""


def external_policy(
    make: Callable[..., Any], *, pull: Pull | None = None, update: Update | None = None
) -> ExternalPolicy:
    """A policy of another library, or of your own, for `simulate_external` and `compare_with`.

    Args:
        make: makes a fresh policy for each run; it is handed `seed=...` where it takes one, another
            for each run. As in `lambda seed: river.bandit.UCB(delta=1, seed=seed)`.
        pull: pull(policy, arms, context) gives one of the arms, which are the available ones.
            None where the policy has the methods of river or of MABWiser.
        update: update(policy, arm, reward, context) tells the policy what an arm paid. None with
            `pull`.
    """
    if not callable(make):
        check.fail("make", "a function that makes a policy, as each run needs a fresh one", make)
    if (pull is None) != (update is None):
        check.fail("pull and update", "given both, or neither", (pull, update))
    return ExternalPolicy(make, pull, update)


def player_of(policy: ExternalPolicy, spec: BanditSpec, seed: int) -> Player:
    """A fresh policy for one run."""
    mind = policy.make(seed=seed) if takes(policy.make, "seed") else policy.make()
    if policy.pull is not None and policy.update is not None:
        return Custom(mind, policy.pull, policy.update)
    if has(mind, "pull", "update"):
        return LikeRiver(mind)
    if has(mind, "predict", "predict_expectations", "partial_fit", "arms"):
        return LikeMabwiser(mind, spec.num_arms)
    check.fail(
        "policy",
        "an object with the methods of river (pull, update) or of MABWiser (predict, partial_fit), "
        "or be given with the functions `pull` and `update`",
        type(mind).__name__,
    )


def has(mind: Any, *names: str) -> bool:
    return all(hasattr(mind, name) for name in names)


def takes(function: Callable[..., Any], name: str) -> bool:
    """Whether it has an argument of this name; what cannot be looked into has none."""
    try:
        return name in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


def context_or_one(context: np.ndarray) -> list[float]:
    return context.tolist() if context.size else [1.0]


class Custom:
    """An object that is played by two functions."""

    def __init__(self, mind: Any, pull: Pull, update: Update) -> None:
        self._mind, self._pull, self._update = mind, pull, update

    def pull(self, arms: Sequence[int], context: np.ndarray) -> Any:
        return self._pull(self._mind, arms, context)

    def update(self, arm: int, reward: float, context: np.ndarray) -> None:
        self._update(self._mind, arm, reward, context)


class LikeRiver:
    """It is offered the available arms only, so it never needs to know of the others."""

    def __init__(self, mind: Any) -> None:
        self._mind = mind
        self._pull_sees = takes(mind.pull, "context")
        self._update_sees = takes(mind.update, "context")

    def pull(self, arms: Sequence[int], context: np.ndarray) -> Any:
        if self._pull_sees:
            return self._mind.pull(arms, context=named(context))
        return self._mind.pull(arms)

    def update(self, arm: int, reward: float, context: np.ndarray) -> None:
        if self._update_sees:
            self._mind.update(arm, named(context), reward)
        else:
            self._mind.update(arm, reward)


def named(context: np.ndarray) -> dict[str, float]:
    return {f"x{i}": value for i, value in enumerate(context_or_one(context))}


class LikeMabwiser:
    """It will not choose before it has data, and has no idea of an arm that was never pulled.

    So every arm is pulled once, when it is first available. Where some arms are not available, the
    choice is the highest of the expectations that its own choice is the highest of.
    """

    def __init__(self, mind: Any, num_arms: int) -> None:
        if set(mind.arms) != set(range(num_arms)):
            check.fail("arms of the policy", f"the numbers of range({num_arms})", list(mind.arms))
        self._mind = mind
        self._pulls = [0] * num_arms
        self._told = False  # of any reward; they may be late

    def pull(self, arms: Sequence[int], context: np.ndarray) -> Any:
        arm = min(arms, key=self._pulls.__getitem__)
        if self._told and self._pulls[arm]:
            arm = self._choose(arms, **self._seen(context))
        self._pulls[arm] += 1
        return arm

    def _choose(self, arms: Sequence[int], **seen: Any) -> Any:
        if len(arms) == len(self._pulls):
            return self._mind.predict(**seen)
        expectations = self._mind.predict_expectations(**seen)
        return max(arms, key=expectations.__getitem__)

    def update(self, arm: int, reward: float, context: np.ndarray) -> None:
        self._mind.partial_fit([arm], [reward], **self._seen(context))
        self._told = True

    def _seen(self, context: np.ndarray) -> dict[str, Any]:
        return {"contexts": [context_or_one(context)]} if self._mind.is_contextual else {}
