"""An agent: a policy that decides for real users, one decision at a time, and learns when it can.

Rewards may come late, in any order, twice or never: each decision waits with its ticket until its
reward comes or its window has passed. Arms have names, and come and go. Everything that an agent
does follows from its seed and from what it was told, at which times: told the same, another agent
decides the same, bit for bit.
"""

import hashlib
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

import numpy as np

from driftbandits import check
from driftbandits.agents import checks
from driftbandits.agents.checks import Context
from driftbandits.agents.learner import Learner
from driftbandits.agents.open_decisions import Answered, Open, OpenDecisions
from driftbandits.agents.requests import AgentDecision, Asked, Request, Row
from driftbandits.core import BanditSpec

LEARNED, DUPLICATE = "learned", "duplicate"


class Agent:
    """Decides, remembers, learns.

    Args:
        arms: their names.
        context: names of the numbers that come with each decision; none is no context.
        policy: its name with settings, as in "recurrent(energy=0)".
        seed: of everything random.
        window: seconds after which a decision no longer waits for its reward; none waits for ever.
        default_reward: learnt when the window has passed; none forgets the decision.
        reward_range: lowest and highest reward, for the policies that need to know.
        noise: of the rewards, a sub-Gaussian constant, for the policies that need to know.
        horizon: how many decisions there will be, if that is known.
        remember: answered decisions whose repetition is recognised.
        max_open: decisions that wait at a time; one more, and the oldest one's window is over.
    """

    def __init__(
        self,
        arms: Sequence[str],
        context: Sequence[str] = (),
        policy: str = "tracker",
        seed: int = 0,
        *,
        window: float | None = None,
        default_reward: float | None = None,
        reward_range: tuple[float, float] = (0.0, 1.0),
        noise: float = 0.5,
        horizon: int | None = None,
        remember: int = 10_000,
        max_open: int = 100_000,
    ) -> None:
        checks.arguments(arms, context, policy, reward_range, noise, horizon)
        checks.waiting(window, default_reward)
        check.whole(seed=seed, remember=remember, at_least=0)
        check.whole(max_open=max_open)
        self.policy, self.seed, self.context = policy, seed, tuple(context)
        self.window, self.default_reward = window, default_reward
        self.reward_range = reward_range[0], reward_range[1]
        self.noise, self.horizon = noise, horizon
        self.remember, self.max_open = remember, max_open
        self._names = {name: index for index, name in enumerate(arms)}
        self._arms = list(arms)
        self._active = np.ones(len(arms), bool)  # spare slots are not active
        spec = BanditSpec(len(arms), len(context), horizon, self.reward_range, noise)
        self._learner = Learner(policy, spec, seed)
        self._open = OpenDecisions(self._learner.ticket_width)
        self._answered: dict[str, Answered] = {}
        self._clock = 0.0
        self.rewards = self.expired = 0  # so far

    # Seeing

    @property
    def arms(self) -> list[str]:
        """All arms, retired ones too."""
        return list(self._arms)

    @property
    def retired(self) -> list[str]:
        return [name for name, index in self._names.items() if not self._active[index]]

    @property
    def decisions(self) -> int:
        """Made so far."""
        return self._learner.decisions

    @property
    def open(self) -> list[str]:
        """Ids of the decisions that wait for their rewards, oldest first."""
        return list(self._open.waiting)

    @property
    def waiting(self) -> dict[str, Open]:
        """The same, with what was decided."""
        return self._open.waiting

    @property
    def slots(self) -> int:
        """Arms that there is room for before the policy's memory must grow."""
        return self._active.size

    @property
    def now(self) -> float:
        """The latest time that it was told, or saw: for it, time never goes back."""
        return self._clock

    # Deciding

    def decide(
        self,
        context: Context = (),
        available: Sequence[str] | None = None,
        *,
        id: str | None = None,
        now: float | None = None,
    ) -> AgentDecision:
        """Chooses an arm; the same id again gives the same decision.

        Args:
            context: numbers in the order of the context's names, or by name.
            available: names of the arms to choose from; none is all that are not retired.
            id: the caller's own; none makes one.
            now: unix time; none asks the clock.
        """
        return self.decide_many([Request(context, available, id)], now=now)[0]

    def decide_many(
        self, requests: Iterable[Request | Mapping[str, object]], *, now: float | None = None
    ) -> list[AgentDecision]:
        """One decision after the other; nothing is decided if one of the requests is refused."""
        asked = [r if isinstance(r, Request) else checks.request(r, Request) for r in requests]
        ids = self._ids(asked)
        rows: dict[str, Row] = {}  # of the new ones; what is asked for twice is decided once
        for id, request in zip(ids, asked, strict=True):
            if id not in rows and not self.knows(id):
                rows[id] = self.row(request)
        if len(rows) > self.max_open:
            check.fail("requests", f"at most {self.max_open} (max_open) at a time", len(rows))
        known = {id: self.decision(id) for id in ids if id not in rows}  # before they are forgotten
        self.expire(now, room=len(rows))
        self.decide_rows(list(rows), list(rows.values()))
        return [known[id] if id in known else self.decision(id) for id in ids]

    def _ids(self, asked: list[Request]) -> list[str]:
        """Ids of our own count the decisions, so that they too follow from the seed."""
        number, ids = self._learner.decisions, []
        for request in asked:
            if request.id is None:
                while self.knows(id := own_id(self.seed, number)):  # a caller's own may be the same
                    number += 1
                ids.append(id)
                number += 1
            else:
                ids.append(checks.name("id", request.id))
        return ids

    def knows(self, id: str) -> bool:
        """Whether it is the id of a decision that waits, or that was answered not long ago."""
        return id in self._open.waiting or id in self._answered

    def row(self, request: Asked) -> Row:
        """A request as the policy sees it; refuses what makes no sense."""
        context = checks.context_row(request.context, self.context)
        return Row(context, self._mask(request.available))

    def _mask(self, available: Sequence[str] | None) -> np.ndarray:
        if available is None:
            return self._active
        if isinstance(available, str) or not isinstance(available, Iterable):
            check.fail("available", "a list of names", available)
        mask = np.zeros_like(self._active)
        mask[[self._names[checks.arm(name, self._names)] for name in available]] = True
        mask &= self._active
        if not mask.any():
            check.fail("available", "a list with an arm that is not retired", list(available))
        return mask

    def decide_rows(self, ids: list[str], rows: list[Row]) -> None:
        """Decides for new ids; what was decided waits under them."""
        if not ids:
            return
        contexts = np.array([row.context for row in rows], np.float32)
        acts = self._learner.act(contexts, np.array([row.available for row in rows]))
        if not np.isfinite(acts.laws).all():
            raise RuntimeError(f"{self.policy} has diverged: its probabilities are no numbers")
        self._open.add(ids, self._clock, acts, len(self._names))

    def decision(self, id: str) -> AgentDecision:
        """One that waits, or that was answered not long ago."""
        kept = self._open.waiting.get(id) or self._answered[id]
        law = kept.law.tolist()
        named = dict(zip(self._names, law, strict=False))  # arms that came later have no part in it
        return AgentDecision(id, self._arms[kept.arm], law[kept.arm], named)

    # Learning

    def reward(self, id: str, reward: float, *, now: float | None = None) -> str:
        """Learns the reward of a decision: "learned", or "duplicate" where it was known already."""
        return self.reward_many([(id, reward)], now=now)[0]

    def reward_many(
        self, rewards: Iterable[tuple[str, float]], *, now: float | None = None
    ) -> list[str]:
        """One reward after the other; nothing is learnt if one of them is refused."""
        given = checks.pairs(rewards)
        self.expire(now)
        new: dict[str, float] = {}
        statuses = [self._status(id, value, new) for id, value in given]
        self.close(list(new), list(new.values()))
        return statuses

    def _status(self, id: str, reward: float, new: dict[str, float]) -> str:
        """Takes a reward down as new, or knows it already, or refuses it."""
        if id in new:
            if new[id] != reward:
                contradiction(id, new[id], reward)
            return DUPLICATE
        if id in self._open.waiting:
            new[id] = reward
            return LEARNED
        before = self._answered.get(id)
        if before is None:
            check.fail("id", "that of a decision that was made and is still known", id)
        if before.expired:
            check.fail("id", "that of a decision whose window has not passed", id)
        if before.reward != reward:
            contradiction(id, before.reward, reward)
        return DUPLICATE

    def expire(self, now: float | None = None, *, room: int = 0) -> list[str]:
        """Ends the wait of decisions whose window has passed; gives their ids, oldest first.

        Every call of `decide` and `reward` does it, too. Time never goes back. Where there is no
        room for so many more, the oldest ones go too.
        """
        self.set_clock(time.time() if now is None else checks.moment(now))
        over = [] if self.window is None else self._open.until(self._clock - self.window)
        crowded = self._open.oldest(len(self._open.waiting) + room - self.max_open)
        ended = max(over, crowded, key=len)
        self.close(ended)
        return ended

    def set_clock(self, now: float) -> None:
        self._clock = max(self._clock, now)

    def close(self, ids: list[str], rewards: list[float] | None = None) -> None:
        """These have their rewards or, without them, will not get any."""
        expired = rewards is None
        if expired:
            self.expired += len(ids)
        else:
            self.rewards += len(ids)
        if rewards is None and self.default_reward is not None:
            rewards = [self.default_reward] * len(ids)
        if ids and rewards is not None:
            self._learner.learn(self._open.tickets_of(ids), np.array(rewards, np.float32))
        for place, id in enumerate(ids):
            kept = self._open.remove(id)
            value = None if rewards is None else rewards[place]
            if self.remember:
                self._answered[id] = Answered(kept.arm, kept.law, value, expired)
        while len(self._answered) > self.remember:
            del self._answered[next(iter(self._answered))]

    # Arms

    def add_arm(self, name: str) -> None:
        """One more arm, which starts from the prior."""
        checks.name("arm", name)
        if name in self._names:
            check.fail("arm", "a new name (restore_arm brings back a retired one)", name)
        if self.is_full:
            self._widen(2 * self._active.size)
        self._active[len(self._names)] = True
        self._names[name] = len(self._names)
        self._arms.append(name)

    @property
    def is_full(self) -> bool:
        """Whether the policy's memory must grow for one more arm."""
        return len(self._names) == self._active.size

    def prepare_to_grow(self) -> None:
        """Compiles, on any thread, what it will need with more arms, and changes nothing."""
        spec = self._learner.spec
        Learner(self.policy, spec._replace(num_arms=2 * spec.num_arms), self.seed).warm_up()

    def retire_arm(self, name: str) -> None:
        """Is not chosen any more; what is known of it stays, and its late rewards are learnt."""
        index = self._names[checks.arm(name, self._names)]
        if self._active[index] and self._active.sum() == 1:
            check.fail("arm", "another than the last one that is not retired", name)
        self._active[index] = False

    def restore_arm(self, name: str) -> None:
        self._active[self._names[checks.arm(name, self._names)]] = True

    def _widen(self, slots: int) -> None:
        self._active = np.append(self._active, np.zeros(slots - self._active.size, bool))
        self._open.tickets = self._learner.grow(slots, self._open.tickets)

    def warm_up(self) -> None:
        """Compiles what the next decisions and rewards need, and changes nothing."""
        self._learner.warm_up()

    # Keeping

    def save(self, path: str | Path) -> None:
        """Writes everything into one file, whole or not at all."""
        from driftbandits.agents.file import write_agent

        write_agent(self, Path(path))

    @classmethod
    def load(cls, path: str | Path) -> "Agent":
        """The agent of a file; it goes on as if it had never stopped."""
        from driftbandits.agents.file import read_agent

        return read_agent(Path(path))


def own_id(seed: int, number: int) -> str:
    return hashlib.blake2b(b"%d %d" % (seed, number), digest_size=8).hexdigest()


def contradiction(id: str, before: float | None, reward: float) -> NoReturn:
    check.fail(f"the reward of {id!r}", f"the {before!r} that it had before", reward)
