"""A bandit answers its calls, those of one kind together."""

from collections.abc import Sequence
from typing import Any

from driftbandits.service.engine.commands import (
    Call,
    ChangeArm,
    Command,
    Decide,
    Inspect,
    Reply,
    Reward,
    batches_by_kind,
)
from driftbandits.service.engine.live_bandit import Find, LiveBandit
from driftbandits.service.errors import ApiError


def answer(live: LiveBandit, calls: list[Call], now: float, find: Find) -> list[Reply]:
    """In batches of one kind, after what has expired; a bandit's clock never goes back."""
    live.expire(now)
    now = live.book.now
    replies: list[Reply] = []
    for batch in batches_by_kind(calls):
        replies += answer_batch(live, batch, now, find)
    return replies


def answer_batch(live: LiveBandit, calls: list[Call], now: float, find: Find) -> list[Reply]:
    commands: Sequence[Any] = [call.command for call in calls]
    if isinstance(commands[0], Decide):
        results = live.decide([command.requests for command in commands], now, find)
        return [Reply(*pair) for pair in zip(calls, results, strict=True)]
    if isinstance(commands[0], Reward):
        pairs = [pair for command in commands for pair in command.pairs]
        statuses = iter(live.reward(pairs, now, find))
        return [
            Reply(call, [next(statuses) for _ in command.pairs])
            for call, command in zip(calls, commands, strict=True)
        ]
    return [Reply(call, change_or_inspect(live, call.command, now)) for call in calls]


def change_or_inspect(live: LiveBandit, command: Command, now: float) -> Any:
    try:
        if isinstance(command, ChangeArm):
            live.change_arm(command.kind, command.name, now)
            return command.then(live)
        assert isinstance(command, Inspect)
        return command.read(live)
    except ApiError as refusal:
        return refusal
