"""How a bandit answers its calls, grouped by kind."""

import time
from collections.abc import Iterator, Sequence
from typing import Any

from driftbandits.service.engine.commands import (
    Call,
    ChangeArm,
    ChangeSettings,
    Command,
    Decide,
    Inspect,
    MustGrow,
    Reply,
    Reward,
    batches_by_kind,
)
from driftbandits.service.engine.live_bandit import Find, LiveBandit
from driftbandits.service.errors import ApiError

PAGE = 1000  # expiries in one transaction, about
# At None it may pause; what was noted up to a list of replies is complete and may be committed.
Steps = Iterator[list[Reply] | None]


def answer(live: LiveBandit, calls: list[Call], now: float, find: Find) -> Steps:
    """Answers calls in batches of one kind, after expiring decisions."""
    while live.expire_some(now):
        yield [] if len(live.events) >= PAGE else None
    yield []
    now = live.book.now
    for batch in batches_by_kind(calls):
        yield from answer_batch(live, batch, now, find)


def answer_batch(live: LiveBandit, calls: list[Call], now: float, find: Find) -> Steps:
    commands: Sequence[Any] = [call.command for call in calls]
    if isinstance(commands[0], Decide):
        results = yield from live.deciding([command.requests for command in commands], now, find)
        yield [Reply(*pair) for pair in zip(calls, results, strict=True)]
    elif isinstance(commands[0], Reward):
        statuses: list[Any] = []
        for step in live.reward_pace.steps([pair for each in commands for pair in each.pairs]):
            if statuses:
                yield None
            begin = time.perf_counter()
            statuses += live.reward(step, now, find)
            live.reward_pace.learn(len(step), time.perf_counter() - begin)
        found = iter(statuses)
        yield [
            Reply(call, [next(found) for _ in command.pairs])
            for call, command in zip(calls, commands, strict=True)
        ]
    else:
        (call,) = calls
        yield [Reply(call, change_or_inspect(live, call.command, now))]


def grow_if_full(live: LiveBandit, command: ChangeArm) -> MustGrow | None:
    """Makes room for a new arm if the larger policy is compiled."""
    if command.kind == "arm_added" and live.must_grow_for(command.name):
        live.check_features(command.features)  # before it grows, of which the log knows nothing
        slots = 2 * live.book.arms.slots
        if slots > command.prepared:
            return MustGrow({**live.row.config, "arms": list(map(str, range(slots)))})
        live.book.widen(slots)
    return None


def change_or_inspect(live: LiveBandit, command: Command, now: float) -> Any:
    try:
        if isinstance(command, ChangeArm):
            if must_grow := grow_if_full(live, command):
                return must_grow
            live.change_arm(command.kind, command.name, now, command.features)
            return command.then(live)
        if isinstance(command, ChangeSettings):
            live.change_settings(command.changes, now)
            return command.then(live)
        assert isinstance(command, Inspect)
        return command.read(live)
    except ApiError as refusal:
        return refusal
