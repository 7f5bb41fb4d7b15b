"""The decision book: what becomes of every decision and every reward, decided in one place.

A decision with an unknown id is new. It is open until its reward comes, its window passes or too
many others wait; then it is a past decision. A reward of an open decision is learned if it is in
its range; any other is a duplicate, contradictory, expired, unknown or elsewhere
(`reward_verdicts`).

`Agent` and the service's live bandits are both faces of this class. They differ in who makes ids,
in who remembers past decisions (the book itself, or the service's log), and in how they refuse.
Everything follows from the seed, and from what came in at which times: given the same, another book
decides the same, bit for bit.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftbandits import check
from driftbandits.agents.admission import Admission, DecisionBatch, Past, decided_together
from driftbandits.agents.arm_features import ArmFeatures
from driftbandits.agents.arm_features import Checkpoint as FeaturesCheckpoint
from driftbandits.agents.arms import Arms
from driftbandits.agents.checks import Features
from driftbandits.agents.decision_block import MadeDecisions, OpenDecision
from driftbandits.agents.learner import Acts, Checkpoint, DivergenceError, Learner, part_of
from driftbandits.agents.open_decisions import OpenDecisions
from driftbandits.agents.ranges import Ranges, ranges_of
from driftbandits.agents.requests import AgentDecision, DecisionRequest, PolicyInput
from driftbandits.agents.reward_verdicts import (
    DIVERGING,
    LEARNED,
    OUT_OF_RANGE,
    PastDecision,
    RewardVerdict,
    repeated,
    verdict_on,
)
from driftbandits.agents.setting_checks import checked_settings
from driftbandits.agents.settings import AgentCounts, AgentSettings
from driftbandits.agents.vectors import NumberVectors, Vectors, vectors_of, width_of
from driftbandits.core import BanditSpec
from driftbandits.numerics.made_again import Made
from driftbandits.simulation.cache_folder import Cache


class RewardBatch(NamedTuple):
    """Rewards that are learned together."""

    ids: list[str]  # of each reward that was given
    verdicts: list[RewardVerdict]  # on each
    new: dict[str, float]  # what is to be learned, by id

    def without(self, refused: set[str]) -> "RewardBatch":
        """The batch without rewards that the policy refuses."""
        both = zip(self.ids, self.verdicts, strict=True)
        verdicts = [DIVERGING if id in refused else verdict for id, verdict in both]
        new = {id: reward for id, reward in self.new.items() if id not in refused}
        return RewardBatch(self.ids, verdicts, new)


def spec_of(settings: AgentSettings, slots: int) -> BanditSpec:
    """What the policy knows of the problem, with so many slots for arms."""
    return BanditSpec(
        num_arms=slots,
        context_dim=width_of("context", settings.context),
        horizon=settings.horizon,
        reward_range=settings.reward_range,
        noise=settings.noise,
        arm_dim=width_of("features", settings.features),
    )


class BookCheckpoint(NamedTuple):
    """What to go back to before decisions that cannot be made."""

    learner: Checkpoint
    contexts: Any
    features: FeaturesCheckpoint
    arms: int  # how many there were


def use_ranges(vectors: Vectors, ranges: Ranges) -> None:
    if isinstance(vectors, NumberVectors):
        vectors.ranges = ranges


class DecisionBook:
    """A learner, its arms, the decisions that wait for their rewards, and a clock."""

    def __init__(
        self,
        arms: Sequence[str] | Mapping[str, Features | None],
        settings: AgentSettings,
        folder: Path | None = None,
        cache: Cache | None = None,
    ) -> None:
        """Makes an empty book; `folder` is for temporary files, `cache` for compiled programs.

        Arms may have features, by name.
        """
        self.settings = given = checked_settings(settings)
        self.ranges, of_features = ranges_of(given)
        self.contexts = vectors_of("context", given.context, self.ranges)
        self.arms = Arms(arms if isinstance(arms, Sequence) else list(arms))
        features = vectors_of("features", given.features, of_features)
        self.features = ArmFeatures(features, self.arms.slots)
        # Whether a log must have the values of contexts and features, not just numbers.
        self.logs_values = self.contexts.is_typed or features.width > 0
        if isinstance(arms, Mapping):
            checked = [self.features.check(each) for each in arms.values()]
            self.features.set(dict(enumerate(checked)))
        spec = spec_of(self.settings, len(arms))
        self.learner = Learner(self.settings.policy, spec, self.settings.seed, cache)
        self.open = OpenDecisions(self.learner.ticket_width, self.arms.slots, folder)
        self._admission = Admission(self.arms, self.contexts, self.features, self.open)
        self.past: dict[str, PastDecision] = {}  # the last ones, as many as are remembered
        self.now = 0.0  # the latest time that came in: time never goes back
        self.rewards = self.expired = 0  # so far

    @property
    def counts(self) -> AgentCounts:
        return AgentCounts(self.learner.decisions, self.rewards, self.expired)

    def set_settings(self, settings: AgentSettings) -> None:
        """Changes settings; after the start, only those in CHANGEABLE may differ."""
        self.settings = checked_settings(settings)
        self.ranges, of_features = ranges_of(self.settings)
        use_ranges(self.contexts, self.ranges)
        use_ranges(self.features.vectors, of_features)

    # Decisions

    def knows(self, id: str) -> bool:
        return id in self.open or id in self.past

    def admit(
        self,
        batch: DecisionBatch,
        ids: Sequence[str],
        requests: Sequence[DecisionRequest],
        past: Past | None = None,
        may_add: bool = False,
    ) -> None:
        """Takes the requests of one caller into a batch: all of them or, with InputError, none.

        `past` is what is known of ids that are not open; None is what the book remembers. With
        `may_add`, for the only caller of a batch, requests may bring arms that are not there yet.
        """
        admission = self._admission.adding_arms() if may_add else self._admission
        past = self.past if past is None else past
        for _ in admission.admitting(batch, ids, requests, past):
            pass

    def admitting(
        self,
        batch: DecisionBatch,
        ids: Sequence[str],
        requests: Sequence[DecisionRequest],
        past: Past,
    ) -> Iterator[None]:
        """`admit` step by step."""
        return self._admission.admitting(batch, ids, requests, past)

    def decide(self, new: Mapping[str, PolicyInput]) -> dict[str, OpenDecision]:
        """Makes new decisions, which are open under their ids; `expire` makes room for them.

        All of them or, with DivergenceError, none, and then without the arms that they bring. Only
        slots that were added for those stay.
        """
        if not new:
            return {}
        if len(new) == 1 and not self.logs_values:  # most of the time
            (request,) = new.values()
            if request.new_arms is None:
                return self._decide_part(new)
        before = self.checkpoint()
        made: dict[str, OpenDecision] = {}
        try:
            for part in decided_together(new):
                made |= self._decide_part(part)
        except DivergenceError:
            self.take_back(list(made), before)
            raise
        return made

    def _decide_part(self, new: Mapping[str, PolicyInput]) -> dict[str, OpenDecision]:
        if len(new) == 1:
            ((id, request),) = new.items()
            return {id: self._decide_once(id, request)}
        contexts, available = self._inputs(new)
        acts = self.learner.act(contexts, available, arms=self.features.table)
        return self._open(list(new), acts, acts.probabilities[:, : len(self.arms.names)])

    def _decide_once(self, id: str, request: PolicyInput) -> OpenDecision:
        for name, features in (request.new_arms or {}).items():
            self.add_arm(name, features)
        available = self._available(request)
        if request.slate is not None:
            available[request.slate.chosen] = False
            for other in request.slate.beside:
                if other in self.open:
                    available[self.open[other].arm] = False
        context, arms = self._context(request), self._table(request)
        act = self.learner.act_once(context, available, len(self.arms.names), arms)
        if request.slate is not None:
            request.slate.chosen.append(act.arm)
        decision = OpenDecision(act.arm, act.probabilities, self.now)
        self.open.add_one(id, decision, act.ticket)
        return decision

    def _context(self, request: PolicyInput) -> np.ndarray:
        """The context that the policy sees; scales and categories learn from it.

        Those of a slate learn at its first place, so that all places see the same numbers.
        """
        if not self.contexts.is_typed:
            numbers: np.ndarray = request.context
            return numbers
        if request.place is None or request.place == 1:
            self.contexts.see(request.context)
        return self.contexts.encode(request.context)

    def _table(self, request: PolicyInput) -> np.ndarray:
        own = request.features
        return self.features.table if own is None else self.features.with_own(own)

    def _inputs(self, new: Mapping[str, PolicyInput]) -> tuple[np.ndarray, np.ndarray]:
        contexts = np.array([self._context(each) for each in new.values()], np.float32)
        return contexts, np.array([self._available(each) for each in new.values()])

    def _available(self, request: PolicyInput) -> np.ndarray:
        """(slots,) bool; slots that were added since it was admitted are not available."""
        mask = request.available
        more = self.arms.slots - mask.size
        return np.pad(mask, (0, more)) if more else mask

    def checkpoint(self) -> BookCheckpoint:
        return BookCheckpoint(
            self.learner.checkpoint(),
            self.contexts.checkpoint(),
            self.features.checkpoint(),
            len(self.arms.names),
        )

    def take_back(self, ids: list[str], before: BookCheckpoint) -> None:
        """Takes back the decisions since a checkpoint."""
        self.open.remove(ids)
        self.learner.go_back(before.learner)
        self.contexts.go_back(before.contexts)
        if len(self.arms.names) > before.arms:
            self.features.go_back(before.features, before.arms)
            self.arms.keep_first(before.arms)

    def decide_again(
        self, new: Mapping[str, PolicyInput], arms: np.ndarray, probabilities: np.ndarray
    ) -> list[int]:
        """Makes decisions again, with their arms and the probabilities (decisions, arms) that they
        had; gives the places where it would choose another arm now.
        """
        made, first = Made(arms, probabilities[np.arange(len(arms)), arms]), 0
        different: list[int] = []
        for part in decided_together(new):
            rows = slice(first, first + len(part))
            contexts, available = self._inputs(part)
            table = self._table(next(iter(part.values())))
            acts, others = self.learner.act_again(contexts, available, part_of(made, rows), table)
            self._open(list(part), acts, probabilities[rows])
            different += [first + place for place in others]
            first += len(part)
        return different

    def _open(
        self, ids: list[str], acts: Acts, probabilities: np.ndarray
    ) -> dict[str, OpenDecision]:
        """Opens decisions; equal probabilities are shared."""
        now, table = self.now, probabilities.copy()
        if len(ids) > 1 and (table == table[0]).all():
            table = table[:1].copy()
        self.open.add(ids, now, MadeDecisions(acts.arms, table, acts.tickets))
        rows = list(table) if len(table) == len(ids) else [table[0]] * len(ids)
        made = zip(ids, acts.arms.tolist(), rows, strict=True)
        return {id: OpenDecision(arm, its_own, now) for id, arm, its_own in made}

    def answer(
        self,
        id: str,
        decision: OpenDecision | PastDecision,
        slate: str | None = None,
        place: int | None = None,
    ) -> AgentDecision:
        """A decision as its caller sees it, with the names of the arms."""
        names = self.arms.names
        return AgentDecision(id, names[decision.arm], names, decision.source, slate, place)

    # Rewards

    def judge(self, rewards: Sequence[tuple[str, float]], past: Past | None = None) -> RewardBatch:
        """Judges rewards; `learn` then learns the new ones."""
        past = self.past if past is None else past
        waiting, verdicts = self.open, []
        refuses, (low, high) = self.ranges.out_of_range == "refuse", self.ranges.reward_ends
        new: dict[str, float] = {}
        for id, reward in rewards:
            if id in new:
                verdicts.append(repeated(reward, new[id]))
            elif id in waiting:
                if refuses and not low <= reward <= high:
                    verdicts.append(OUT_OF_RANGE)
                    continue
                new[id] = reward
                verdicts.append(LEARNED)
            else:
                verdicts.append(verdict_on(reward, past.get(id)))
        return RewardBatch([id for id, _ in rewards], verdicts, new)

    def learn(self, batch: RewardBatch, whole: bool = False) -> RewardBatch:
        """Learns what is new; the decisions of rewards that the policy refuses stay open.

        With `whole`, nothing is learned if one is refused.
        """
        ids, rewards = list(batch.new), list(batch.new.values())
        refused = self._learn(ids, rewards, whole)
        if refused:
            batch = batch.without(refused)
            if whole:
                return batch
        self._close(list(batch.new), list(batch.new.values()), expired=False)
        return batch

    def expire(self, now: float, room: int = 0, limit: int = sys.maxsize) -> list[str]:
        """Settles decisions whose window has passed; returns their ids, oldest first.

        Where there is no room for so many more, the oldest ones go too; at most `limit` of them.
        """
        self.set_clock(now)
        window, most = self.settings.window, self.settings.max_open
        if window is None and len(self.open) + room <= most:  # as nearly always
            return []
        over = [] if window is None else self.open.until(self.now - window, limit)
        crowded = self.open.oldest(min(len(self.open) + room - most, limit))
        ended = max(over, crowded, key=len)
        if ended:
            self.settle(ended)
        return ended

    def has_expired(self, now: float) -> bool:
        """Whether the window of an open decision has passed."""
        window, oldest = self.settings.window, self.open.first_time
        return window is not None and oldest is not None and oldest <= max(now, self.now) - window

    def set_clock(self, now: float) -> None:
        self.now = max(self.now, now)

    def settle(self, ids: list[str], rewards: list[float] | None = None) -> set[str]:
        """Turns open decisions into past ones, with rewards or, with None, as expired.

        Gives the ids whose rewards the policy refuses: nothing is learned from them.
        """
        expired = rewards is None
        if rewards is None and self.settings.default_reward is not None:
            rewards = [self.settings.default_reward] * len(ids)
        refused = set[str]() if rewards is None else self._learn(ids, rewards)
        self._close(ids, rewards, expired)
        return refused

    def forget(self, ids: list[str]) -> None:
        """Turns open decisions into past ones from which nothing is learned."""
        self._close(ids, None, expired=False)

    def _learn(self, ids: list[str], rewards: list[float], whole: bool = False) -> set[str]:
        """Learns rewards; returns the ids whose rewards the policy refuses."""
        if not ids:
            return set()
        if len(ids) == 1:
            ticket, reward = self.open.tickets_of(ids)[0], self.ranges.nearest(rewards[0])
            return set() if self.learner.learn_once(ticket, reward) else {ids[0]}
        tickets, clipped = self.open.tickets_of(ids), self.ranges.clipped(rewards)
        return {ids[place] for place in self.learner.learn(tickets, clipped, whole)}

    def _close(self, ids: list[str], rewards: list[float] | None, expired: bool) -> None:
        if expired:
            self.expired += len(ids)
        else:
            self.rewards += len(ids)
        if self.settings.remember:
            for place, id in enumerate(ids):
                kept, reward = self.open[id], None if rewards is None else rewards[place]
                self.past[id] = PastDecision(kept.arm, kept.source, reward, expired)
        self.open.remove(ids)
        while len(self.past) > self.settings.remember:
            del self.past[next(iter(self.past))]

    # Arms

    def add_arm(self, name: str, features: Features | None = None) -> None:
        """Adds an arm, which starts from the prior."""
        self.arms.check_new(name)
        values = self.features.check(features)
        if self.arms.is_full:
            self.widen(2 * self.arms.slots)
        self.arms.add(name)
        self.features.set({self.arms.slot(name): values})

    def set_features(self, name: str, features: Features | None) -> None:
        self.features.set(self._checked_features(name, features))

    def has_features(self, name: str, features: Features | None) -> bool:
        """Whether the arm has these features, so that setting them should change no scale."""
        ((slot, values),) = self._checked_features(name, features).items()
        return self.features.are(slot, values)

    def _checked_features(self, name: str, features: Features | None) -> dict[int, Any]:
        slot = self.arms.slot(name)
        if not self.features.vectors.width or features is None:
            check.fail("features", "those of an arm of an agent whose arms have features", features)
        return {slot: self.features.check(features)}

    def features_json(self, name: str) -> Any:
        """The features of an arm for JSON, or None if they are not known."""
        values = self.features.values.get(self.arms.slot(name))
        return None if values is None else self.features.vectors.to_json(values)

    def retire_arm(self, name: str) -> None:
        self.arms.retire(name)

    def restore_arm(self, name: str) -> None:
        self.arms.restore(name)

    def widen(self, slots: int) -> None:
        """Grows the policy's memory, with everything that it has learned in place."""
        self.arms.widen(slots)
        self.features.widen(slots)
        reshape = self.learner.grow(slots)
        self.open.grow(reshape, self.learner.ticket_width, slots)
