"""Corrections: a bandit is rebuilt from its log as if a reward had been right from the start.

Whether a policy can learn the corrected reward shows only then. So the correction is written to the
log when the bandit is rebuilt, and a refused one changes nothing.
"""

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, NamedTuple

from msgspec import Meta, Struct
from sqlalchemy.exc import SQLAlchemyError

from driftbandits.agents.learner import DivergenceError
from driftbandits.agents.reward_verdicts import OUT_OF_RANGE, reason_against, slate_hint
from driftbandits.error_text import first_line
from driftbandits.logs.replay import RefusedRewardError
from driftbandits.service import errors
from driftbandits.service.engine.commands import Call
from driftbandits.service.engine.live_bandit import Find, LiveBandit
from driftbandits.service.engine.reviver import from_log_alone, new_live_bandit, replay_rest
from driftbandits.service.errors import ApiError
from driftbandits.service.store.records import Event
from driftbandits.service.store.store import Store

log = logging.getLogger("driftbandits.service")


class Corrected(Struct):
    """A reward before and after its correction."""

    id: Annotated[str, Meta(description="Id of the decision.")]
    before: Annotated[float | None, Meta(description="The reward so far. null if there was none.")]
    reward: Annotated[
        float | None, Meta(description="The reward from now on. null if it was taken back.")
    ]


class Correction(NamedTuple):
    """The answer to the caller, and what must be logged before."""

    result: Corrected | ApiError
    event: Event | None = None  # None if nothing changes


class Rebuilt(NamedTuple):
    """A bandit with a correction that is not in its log yet, or why there is none."""

    call: Call  # who asked for it
    before: LiveBandit
    after: LiveBandit | ApiError
    correction: Correction


def correction_of(live: LiveBandit, id: str, reward: float | None, find: Find) -> Correction:
    """Checks a correction; nothing changes yet."""
    try:
        return checked_correction(live, id, reward, find)
    except ApiError as refusal:
        return Correction(refusal)
    except SQLAlchemyError as error:
        log.warning("the database cannot be reached: %s", first_line(error))
        return Correction(errors.no_database())


def checked_correction(live: LiveBandit, id: str, reward: float | None, find: Find) -> Correction:
    book = live.book
    if reward is not None and book.ranges.refuses(reward):
        raise errors.bad_value(reason_against(id, reward, OUT_OF_RANGE, book.settings))
    if id in book.open:
        raise errors.open_decision(id)
    past = live.past(find, [id]).get(id)
    if past is None:
        hint = slate_hint(id) if live.slates(find, [id]) else ""
        raise errors.unknown_decision(f"there is no decision with the id {id!r}{hint}")
    if past.elsewhere:
        live.lost = True
        raise errors.moving()
    reward = None if reward is None else book.ranges.nearest(reward)
    known, result = live.corrections.get(id), Corrected(id, past.reward, reward)
    if known is not None and known.reward == reward:  # it is sent again
        return Correction(result)
    return Correction(result, Event(live.seq + 1, "correction", book.now, id, reward=reward))


class Rebuilder:
    """Rebuilds bandits from whole logs, which may take long, on a thread of its own.

    One at a time: bandits whose corrections come meanwhile go on, and are rebuilt afterwards.
    """

    def __init__(self, store: Store, report: Callable[[Rebuilt], None]) -> None:
        self._store, self._report = store, report
        self._thread = ThreadPoolExecutor(1, "driftbandits-rebuilding")
        self.is_busy = False
        self.put_off: list[Call] = []  # corrections that wait for their turn

    def rebuild_soon(self, call: Call, live: LiveBandit, correction: Correction) -> None:
        self.is_busy = True
        self._thread.submit(self._rebuild, call, live, correction)

    def end(self) -> list[Call]:
        """Ends a correction; returns those that waited for the thread."""
        self.is_busy = False
        return self.forget()

    def forget(self) -> list[Call]:
        calls, self.put_off = self.put_off, []
        return calls

    def stop(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _rebuild(self, call: Call, live: LiveBandit, correction: Correction) -> None:
        assert correction.event
        try:
            found: LiveBandit | ApiError = rebuilt(self._store, live, correction.event)
        except ApiError as refusal:
            found = refusal
        except SQLAlchemyError as error:
            log.warning("the database cannot be reached: %s", first_line(error))
            found = errors.no_database()
        except Exception:
            log.exception("bandit %r cannot be rebuilt", live.row.name)
            found = errors.broken_policy(live.row.name)
        self._report(Rebuilt(call, live, found, correction))


def rebuilt(store: Store, live: LiveBandit, correction: Event) -> LiveBandit:
    """Rebuilds a bandit with a correction that is not in its log yet."""
    corrections = {**live.corrections, correction.id: correction}
    found = from_log_alone(store, live.row)
    try:
        last, _ = replay_rest(store, live.row, found, corrections, whole=True)
    except (RefusedRewardError, DivergenceError) as error:
        raise errors.bad_value(reason_to_refuse(live, correction, error)) from None
    if last != live.seq:  # another worker has written to the log
        raise errors.moving()
    again = new_live_bandit(store, live.row, live.lease, found, last, corrections)
    again.book.set_clock(correction.time)
    again.book.learner.warm_up()
    again.events.append(correction)
    return again


def reason_to_refuse(
    live: LiveBandit, correction: Event, error: RefusedRewardError | DivergenceError
) -> str:
    if isinstance(error, DivergenceError):
        problem = "a decision that was made since could not be made"
    elif error.id != correction.id:
        problem = f"the reward of decision {error.id!r} could not be learned"
    else:
        problem = "what the policy knows would no longer be finite numbers"
    rule = f"one that {live.book.settings.policy} can learn, or null"
    return f"reward must be {rule}, got {correction.reward!r}: with it, {problem}"
