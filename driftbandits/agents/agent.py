"""An agent: a policy that decides for real users, one decision at a time, and learns when it can.

Rewards may come late, in any order, twice or never: each decision waits with its ticket until its
reward comes or its window has passed. Arms have names, and come and go. The rules are those of the
`DecisionBook`; here they are checked, and what breaks them is an `InputError`.
"""

import hashlib
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from driftbandits import check
from driftbandits.agents import checks
from driftbandits.agents.checks import Context
from driftbandits.agents.decision_book import DecisionBatch, DecisionBook, RewardBatch
from driftbandits.agents.file import read_book, write_book
from driftbandits.agents.learner import DivergenceError
from driftbandits.agents.one_at_a_time import Turns, one_at_a_time
from driftbandits.agents.requests import AgentDecision, Request
from driftbandits.agents.reward_verdicts import DUPLICATE, LEARNED, reason_against
from driftbandits.agents.settings import AgentCounts, AgentSettings


class Agent:
    """Decides, remembers, learns. Several threads may share one: their calls take turns.

    Args:
        arms: their names.
        context: names of the numbers that come with each decision; empty is no context.
        policy: its name with settings, as in "recurrent(energy=0)".
        seed: random seed.
        window: seconds after which a decision no longer waits for its reward; None waits for ever.
        default_reward: learned when the window has passed; None forgets the decision.
        reward_range: lowest and highest reward.
        context_ranges: lowest and highest value of context numbers, by name; -100 to 100 for
            those that are not named.
        out_of_range: what happens to a reward or a context number that is out of its range:
            "refuse" it, "clip" it, or "accept" it, which lets one wrong number mislead the policy.
        noise: of the rewards, a sub-Gaussian constant, for the policies that need to know.
        horizon: how many decisions there will be, if that is known.
        remember: how many past decisions are remembered, to recognise repeats.
        max_open: how many decisions may be open, up to 10,000,000; beyond that the oldest expires.
        cache: whether compiled programs are kept for the next process: True or False, or the
            folder that keeps them; None does what DRIFTBANDITS_CACHE says ("on", "off" or a
            folder), and keeps nothing if it is not set.
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
        context_ranges: Mapping[str, tuple[float, float]] = MappingProxyType({}),
        out_of_range: Literal["refuse", "clip", "accept"] = "refuse",
        noise: float = 0.5,
        horizon: int | None = None,
        remember: int = 10_000,
        max_open: int = 100_000,
        cache: bool | str | Path | None = None,
    ) -> None:
        settings = AgentSettings(
            policy=policy,
            seed=seed,
            context=context,  # type: ignore[arg-type]  # checked, and made a tuple, by the book
            window=window,
            default_reward=default_reward,
            reward_range=reward_range,
            context_ranges=context_ranges,
            out_of_range=out_of_range,
            noise=noise,
            horizon=horizon,
            remember=remember,
            max_open=max_open,
        )
        self._book, self._turns = DecisionBook(arms, settings, cache=cache), Turns()

    # Seeing

    @property
    @one_at_a_time
    def arms(self) -> list[str]:
        """Names of all arms, retired ones too, in the order in which they came."""
        return list(self._book.arms.names)

    @property
    @one_at_a_time
    def retired(self) -> list[str]:
        """Names of the retired arms."""
        return self._book.arms.retired

    @property
    @one_at_a_time
    def open(self) -> list[str]:
        """Ids of the decisions that wait for their rewards, oldest first."""
        return list(self._book.open)

    @property
    def settings(self) -> AgentSettings:
        """Policy, seed, context and the other settings that it was made with."""
        return self._book.settings

    @property
    @one_at_a_time
    def counts(self) -> AgentCounts:
        """How many decisions were made, and how many of them were rewarded or expired."""
        return self._book.counts

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
            available: names of the arms to choose from; None is all that are not retired.
            id: the caller's own; None makes one.
            now: unix time; None asks the clock.
        """
        return self.decide_many([Request(context, available, id)], now=now)[0]

    @one_at_a_time
    def decide_many(
        self, requests: Iterable[Request | Mapping[str, object]], *, now: float | None = None
    ) -> list[AgentDecision]:
        """One decision after the other; nothing is decided if one of the requests is refused."""
        given = [r if isinstance(r, Request) else checks.request(r, Request) for r in requests]
        book, batch, ids = self._book, DecisionBatch({}, {}), self._ids(given)
        book.admit(batch, ids, given)
        if len(batch.new) > book.settings.max_open:
            rule = f"at most {book.settings.max_open} (max_open) at a time"
            check.fail("requests", rule, len(batch.new))
        book.expire(moment(now), room=len(batch.new))
        try:
            made = book.decide(batch.new)
        except DivergenceError as error:
            raise check.InputError(str(error)) from None
        return [book.answer(id, made.get(id) or batch.known[id]) for id in ids]

    def _ids(self, requests: list[Request]) -> list[str]:
        """Ids of our own count the decisions, so that they too follow from the seed."""
        number, ids = self._book.learner.decisions, []
        for request in requests:
            if request.id is None:
                while self._book.knows(id := own_id(self.settings.seed, number)):
                    number += 1  # a caller's own was the same
                ids.append(id)
                number += 1
            else:
                ids.append(checks.name("id", request.id))
        return ids

    # Learning

    def reward(self, id: str, reward: float, *, now: float | None = None) -> str:
        """Learns the reward of a decision: "learned", or "duplicate" where it was known already."""
        return self.reward_many([(id, reward)], now=now)[0]

    @one_at_a_time
    def reward_many(
        self, rewards: Iterable[tuple[str, float]], *, now: float | None = None
    ) -> list[str]:
        """One reward after the other; nothing is learned if one of them is refused."""
        given = checks.pairs(rewards)
        self._book.expire(moment(now))
        batch = self._book.judge(given)
        self._refuse_bad(given, batch)
        batch = self._book.learn(batch, whole=True)
        self._refuse_bad(given, batch)
        return [verdict.status for verdict in batch.verdicts]

    def _refuse_bad(self, given: list[tuple[str, float]], batch: RewardBatch) -> None:
        for (id, reward), verdict in zip(given, batch.verdicts, strict=True):
            if verdict is not LEARNED and verdict is not DUPLICATE:
                raise check.InputError(reason_against(id, reward, verdict, self.settings))

    @one_at_a_time
    def expire(self, now: float | None = None) -> list[str]:
        """Ends the wait of decisions whose window has passed; gives their ids, oldest first.

        `decide` and `reward` do the same before anything else. Time never goes back.
        """
        return self._book.expire(moment(now))

    # Arms

    @one_at_a_time
    def add_arm(self, name: str) -> None:
        """Adds an arm, which starts from the prior."""
        self._book.add_arm(name)

    @one_at_a_time
    def retire_arm(self, name: str) -> None:
        """Stops choosing an arm; what is known of it stays, and its late rewards are learned."""
        self._book.retire_arm(name)

    @one_at_a_time
    def restore_arm(self, name: str) -> None:
        """Brings back a retired arm, with all that is known of it."""
        self._book.restore_arm(name)

    # Keeping

    @one_at_a_time
    def save(self, path: str | Path) -> None:
        """Writes everything into one file, atomically."""
        write_book(self._book, Path(path))

    @classmethod
    def load(cls, path: str | Path, *, cache: bool | str | Path | None = None) -> "Agent":
        """The agent of a file; it continues as if it had never stopped. `cache` is as above."""
        return agent_of(read_book(Path(path), cache))


def agent_of(book: DecisionBook) -> Agent:
    """The agent whose decisions are in this book."""
    agent = Agent.__new__(Agent)
    agent._book, agent._turns = book, Turns()
    return agent


def own_id(seed: int, number: int) -> str:
    return hashlib.blake2b(b"%d %d" % (seed, number), digest_size=8).hexdigest()


def moment(now: float | None) -> float:
    return time.time() if now is None else checks.moment(now)
