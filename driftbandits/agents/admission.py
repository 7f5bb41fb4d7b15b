"""Which requests are new decisions, what the policy needs for each, and which can go together."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from driftbandits import check
from driftbandits.agents import checks
from driftbandits.agents.arm_features import ArmFeatures
from driftbandits.agents.arms import Arms
from driftbandits.agents.checks import Features
from driftbandits.agents.decision_block import OpenDecision
from driftbandits.agents.open_decisions import OpenDecisions
from driftbandits.agents.requests import DecisionRequest, PolicyInput, Slate, place_ids
from driftbandits.agents.reward_verdicts import PastDecision
from driftbandits.agents.vectors import Vectors

Past = Mapping[str, PastDecision]  # by id
MOST_PLACES = "at most {}, the number of arms that are available"


class DecisionBatch(NamedTuple):
    """Requests that are answered together, by id; a repeated id is decided once."""

    new: dict[str, PolicyInput]
    known: dict[str, OpenDecision | PastDecision]


class Admission:
    """Checks requests and changes nothing, not even the arms where requests may bring new ones:
    those are added by the decision that brings them, once it is made.
    """

    def __init__(
        self,
        arms: Arms,
        contexts: Vectors,
        features: ArmFeatures,
        open: OpenDecisions,
        may_add: bool = False,
    ) -> None:
        self._arms, self._contexts, self._features, self._open = arms, contexts, features, open
        self._may_add = may_add

    def adding_arms(self) -> "Admission":
        """One for a single caller, whose requests may bring arms that are not there yet."""
        return Admission(self._arms, self._contexts, self._features, self._open, may_add=True)

    def admitting(
        self,
        batch: DecisionBatch,
        ids: Sequence[str],
        requests: Sequence[DecisionRequest],
        past: Past,
    ) -> Iterator[None]:
        """Takes the requests of one caller into a batch: all of them or, with InputError, none.

        Pauses after a request that brings its own arms, which may be many.
        """
        open = self._open
        new: dict[str, PolicyInput] = {}
        known: dict[str, OpenDecision | PastDecision] = {}
        for id, request in zip(ids, requests, strict=True):
            if request.arms is not None and (new or known):
                yield
            if request.k is not None:
                self._admit_slate(DecisionBatch(new, known), batch, id, request, past)
                continue
            if id in new or id in batch.new:
                continue
            decision = open[id] if id in open else past.get(id)
            if decision is None:
                new[id] = self._checked(request)
            else:  # now, as it may be forgotten before the answer
                known[id] = decision
        batch.new.update(new)
        batch.known.update(known)

    def _checked(self, request: DecisionRequest) -> PolicyInput:
        context = self._contexts.check(request.context)
        if request.arms is None:
            return PolicyInput(context, self._arms.mask(request.available))
        given = checks.own_arms(request.arms, request.available)
        new = self._new_arms(given)
        own = {self._arms.slot(name): self._features.check(each) for name, each in given.items()}
        features = {slot: each for slot, each in own.items() if each is not None}
        mask = self._arms.mask(list(given))
        return PolicyInput(context, mask, features or None, new_arms=new or None)

    def _new_arms(self, given: Mapping[str, Features | None]) -> dict[str, Features | None]:
        """The arms that are to be added; later requests of the caller know them."""
        if not self._may_add:
            return {}
        new = {name: each for name, each in given.items() if name not in self._arms}
        if new:
            self._arms = self._arms.with_new(new)
        return new

    def _most_places(self, request: DecisionRequest) -> int:
        """No slate of this request can have more, whatever is available."""
        most = len(self._arms.names)
        if self._may_add and request.arms is not None:
            most += len(checks.own_arms(request.arms, request.available))
        return most

    def _admit_slate(
        self,
        caller: DecisionBatch,
        batch: DecisionBatch,
        id: str,
        request: DecisionRequest,
        past: Past,
    ) -> None:
        """Takes each place of a slate as a decision; places that are known are not chosen again."""
        assert request.k is not None
        check.integer(k=request.k)
        if request.k > self._most_places(request):  # before a list of so many is made
            left = self._checked(request).available.sum()
            check.fail("k", MOST_PLACES.format(left), request.k)
        ids = place_ids(id, request.k)
        checks.name("id", ids[-1])
        places = {each: place for place, each in enumerate(ids, 1)}
        found = {each: self._open[each] if each in self._open else past.get(each) for each in ids}
        known = {each: decision for each, decision in found.items() if decision is not None}
        caller.known.update(known)
        both = (caller.new, batch.new)
        waiting = {each: new[each].slate for each in ids for new in both if each in new}
        by_itself = [each for each, its_own in waiting.items() if its_own is None]
        may_repeat = by_itself and len(waiting) + len(known) > 1
        if may_repeat or len({each.arm for each in known.values()}) < len(known):
            check.fail("id", "another one, as places of this slate were decided by themselves", id)
        missing = [each for each in ids if each not in known and each not in waiting]
        if not missing:
            return
        checked, slate = self._checked(request), Slate([each.arm for each in known.values()])
        slate = next(filter(None, waiting.values()), slate)
        slate.beside += by_itself
        free = checked.available.copy()
        free[slate.chosen] = False
        if free.sum() < len(missing) + len(waiting):
            check.fail("k", MOST_PLACES.format(free.sum() + len(known)), request.k)
        for each in missing:
            its_own = free.copy()  # from which the arms of the places before it are taken
            caller.new[each] = checked._replace(available=its_own, slate=slate, place=places[each])
            checked = checked._replace(new_arms=None)  # the first place has added them


def decided_together(new: Mapping[str, PolicyInput]) -> Iterator[Mapping[str, PolicyInput]]:
    """Splits decisions into those that are made in one go."""
    if not any(map(is_alone, new.values())):
        yield new
        return
    for alone, group in groupby(new.items(), lambda item: is_alone(item[1])):
        if alone:
            yield from ({id: each} for id, each in group)
        else:
            yield dict(group)


def is_alone(request: PolicyInput) -> bool:
    """Whether it has features of its own, brings arms, or is a place on a slate."""
    return bool(request.slate or request.features or request.new_arms)
