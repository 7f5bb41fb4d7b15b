"""Commands for the engine, and the order in which it handles them."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from driftbandits.agents.requests import DecisionRequest
from driftbandits.service.engine.live_bandit import LiveBandit


class Decide(NamedTuple):
    requests: Sequence[DecisionRequest]


class Reward(NamedTuple):
    pairs: list[tuple[str, float]]  # of ids and rewards


class ChangeArm(NamedTuple):
    """Add, retire or restore an arm, or set its features, then inspect the bandit."""

    kind: str
    name: str
    then: Callable[[LiveBandit], Any]
    prepared: int = 0  # slots that the policy's programs are compiled for
    features: Any = None


class ChangeSettings(NamedTuple):
    """Change settings, given by name, then inspect the bandit."""

    changes: dict[str, Any]
    then: Callable[[LiveBandit], Any]


class MustGrow(Exception):  # noqa: N818  # not an error: compile what `config` needs, and ask again
    """A new arm needs a larger policy, which the engine's thread must not compile."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        self.config = config  # with as many arms as there will be slots


class Correct(NamedTuple):
    """Correct the reward of a past decision; None takes it back."""

    id: str
    reward: float | None


class Delete(NamedTuple):
    """Delete the bandit with its log and its snapshots."""


class Inspect(NamedTuple):
    """Read something from a bandit without changing it."""

    read: Callable[[LiveBandit], Any]


Command = Decide | Reward | ChangeArm | ChangeSettings | Correct | Delete | Inspect


class Call(NamedTuple):
    """A command with the caller that waits for its result."""

    bandit: str
    command: Command
    answer: asyncio.Future[Any]

    @property
    def size(self) -> int:
        """About how many events it makes, or what takes as long."""
        if isinstance(self.command, Decide):
            return sum(
                (request.k or 1) + len(request.arms or ()) for request in self.command.requests
            )
        return len(self.command.pairs) if isinstance(self.command, Reward) else 1


class Reply(NamedTuple):
    call: Call
    result: Any  # or an exception


def is_quick(command: Command) -> bool:
    """Whether it is a decision or a reward, which need not wait for earlier commits."""
    return isinstance(command, Decide | Reward)


def split_at_last(calls: list[Call]) -> tuple[list[Call], list[Call]]:
    """Splits commands before the first one that replaces or deletes the bandit."""
    for place, call in enumerate(calls):
        if isinstance(call.command, Correct | Delete):
            return calls[:place], calls[place:]
    return calls, []


def batches_by_kind(calls: list[Call]) -> list[list[Call]]:
    """Calls of one kind together, rewards before decisions; a change of arms keeps its place."""
    batches: list[list[Call]] = []
    rewards: list[Call] = []
    decisions: list[Call] = []
    for call in calls:
        if isinstance(call.command, Reward):
            rewards.append(call)
        elif isinstance(call.command, Decide):
            decisions.append(call)
        else:
            batches += [rewards, decisions, [call]]
            rewards, decisions = [], []
    return [batch for batch in [*batches, rewards, decisions] if batch]


def resolve(replies: list[Reply]) -> None:
    """Sets the results that callers wait for; on the event loop's thread."""
    for call, result in replies:
        if call.answer.done():  # its caller has gone
            continue
        if isinstance(result, Exception):
            call.answer.set_exception(result)
        else:
            call.answer.set_result(result)
