"""An agent: a policy that decides for real users and learns when their rewards arrive.

Rewards may come late, in any order, twice or never: each decision waits with its ticket until its
reward comes or its window has passed. Arms have names and can be added and retired. `DecisionBook`
has the rules; this module checks the input and raises `InputError` where it breaks them.
"""

import hashlib
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, overload

from driftbandits import check
from driftbandits.agents import checks
from driftbandits.agents.admission import DecisionBatch
from driftbandits.agents.checks import Context, Features
from driftbandits.agents.decision_book import DecisionBook, RewardBatch
from driftbandits.agents.fields import Field
from driftbandits.agents.file import read_book, write_book
from driftbandits.agents.learner import DivergenceError
from driftbandits.agents.one_at_a_time import Turns, one_at_a_time
from driftbandits.agents.requests import AgentDecision, Request, place_ids
from driftbandits.agents.reward_verdicts import DUPLICATE, LEARNED, reason_against, slate_hint
from driftbandits.agents.settings import AgentCounts, AgentSettings


class Agent:
    """A policy with a memory, which decides for real users and learns from their rewards.

    Several threads may share an agent: their calls take turns. With the same seed and the same
    calls at the same times, an agent makes the same decisions, bit for bit.

    Args:
        arms: The names of the arms, or a mapping of names to the features of each arm, or to None
            if they are not known.
        context: The names of the numbers that come with each decision, or a schema: a mapping of
            names to `number()`, `category()`, `cyclic()` or `flag()`. Without any, the agent has no
            context.
        policy: The name of a policy with its settings, as in "recurrent(energy=0)".
        seed: The random seed.
        window: How many seconds a decision waits for its reward. None waits forever.
        default_reward: The reward that is learned when the window has passed. None forgets the
            decision.
        reward_range: The lowest and the highest reward.
        context_ranges: The lowest and the highest value of context numbers, by name. The range of
            those that are not named is -100 to 100.
        out_of_range: What happens to a reward or a context number out of its range. "refuse"
            raises an InputError, "clip" uses the end of the range, and "accept" uses the number,
            which lets one wrong number mislead the policy. A number of a schema is always refused.
        noise: The sub-Gaussian constant of the rewards, for policies that need it.
        horizon: The number of decisions, for policies that need it.
        remember: How many past decisions are remembered, to recognise repeats.
        max_open: How many decisions may be open, up to 10,000,000. One more expires the oldest.
        cache: Whether compiled programs are stored for the next process: True, False, or the
            folder to use. None does what the environment variable DRIFTBANDITS_CACHE says ("on",
            "off" or a folder), and stores nothing if it is not set.
        features: The names of the features of arms, or a schema of them. If it is left out, the
            names are those of the first arm that has features, and all are numbers. Most policies
            ignore features; each says so on its page.

    Raises:
        InputError: If an argument breaks a rule.

    Example:
        ```python
        from driftbandits import Agent

        agent = Agent(["red", "green"], context=["hour"], seed=1)
        decision = agent.decide({"hour": 0.5})
        print(decision.arm, decision.probability)
        agent.reward(decision.id, 1.0)
        ```
    """

    def __init__(
        self,
        arms: Sequence[str] | Mapping[str, Features | None],
        context: Sequence[str] | Mapping[str, Field | str] = (),
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
        features: Sequence[str] | Mapping[str, Field | str] | None = None,
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
            features=checks.feature_names(arms) if features is None else features,  # type: ignore[arg-type]
        )
        self._book, self._turns = DecisionBook(arms, settings, cache=cache), Turns()

    # Seeing

    @property
    @one_at_a_time
    def arms(self) -> list[str]:
        """The names of all arms, including retired ones, in the order in which they were added."""
        return list(self._book.arms.names)

    @property
    @one_at_a_time
    def retired(self) -> list[str]:
        """The names of the retired arms."""
        return self._book.arms.retired

    @property
    @one_at_a_time
    def open(self) -> list[str]:
        """The ids of the decisions that wait for their rewards, oldest first."""
        return list(self._book.open)

    @property
    def settings(self) -> AgentSettings:
        """The arguments that the agent was made with, such as its policy, seed and context."""
        return self._book.settings

    @property
    @one_at_a_time
    def counts(self) -> AgentCounts:
        """The numbers of decisions, of rewards, and of decisions that expired."""
        return self._book.counts

    def __repr__(self) -> str:
        decisions, rewards, expired = self.counts
        return (
            f"<Agent {self.settings.policy}, {len(self.arms)} arms, {decisions} decisions, "
            f"{rewards} rewards, {expired} expired>"
        )

    # Deciding

    @overload
    def decide(
        self,
        context: Context = (),
        available: Sequence[str] | None = None,
        *,
        arms: Mapping[str, Features | None] | None = None,
        k: None = None,
        id: str | None = None,
        now: float | None = None,
    ) -> AgentDecision: ...

    @overload
    def decide(
        self,
        context: Context = (),
        available: Sequence[str] | None = None,
        *,
        arms: Mapping[str, Features | None] | None = None,
        k: int,
        id: str | None = None,
        now: float | None = None,
    ) -> list[AgentDecision]: ...

    def decide(
        self,
        context: Context = (),
        available: Sequence[str] | None = None,
        *,
        arms: Mapping[str, Features | None] | None = None,
        k: int | None = None,
        id: str | None = None,
        now: float | None = None,
    ) -> AgentDecision | list[AgentDecision]:
        """Chooses an arm. The same id again gives the same decision.

        Args:
            context: The numbers in the order of the context's names, or a mapping by name.
            available: The names of the arms to choose from. None means all that are not retired.
            arms: The arms to choose from, instead of `available`, with their features, or None for
                those that the arm has. They count for this decision only; an arm with a new name is
                added when the decision is made.
            k: How many arms to choose, all different, for a slate of k places. The arm of each
                place is drawn from the policy's probabilities over what is left. None chooses one.
            id: Your own id of the decision, or of the slate, whose places then have the ids
                `ID.1`, `ID.2`, ... None makes one.
            now: The unix time in seconds. None uses the clock.

        Returns:
            The decision, with the chosen arm and the probabilities of all arms. With `k`, a list of
            decisions, one for each place.

        Raises:
            InputError: If an argument breaks a rule. Then nothing is decided.

        Example:
            ```python
            from driftbandits import Agent

            agent = Agent(["red", "green"], seed=1)
            decision = agent.decide(id="visit-1")
            assert agent.decide(id="visit-1") == decision
            first, second = agent.decide(k=2)
            assert first.arm != second.arm
            ```
        """
        return self.decide_many([Request(context, available, id, arms, k)], now=now)[0]

    @one_at_a_time
    def decide_many(
        self, requests: Iterable[Request | Mapping[str, object]], *, now: float | None = None
    ) -> list[Any]:
        """Makes many decisions at once, which is faster than one call after the other.

        Args:
            requests: One `Request` for each decision, or a mapping with the same names.
            now: The unix time in seconds. None uses the clock.

        Returns:
            The decisions, in the order of the requests. For a request with `k`, it is a list.

        Raises:
            InputError: If one of the requests breaks a rule. Then none is decided.

        Example:
            ```python
            from driftbandits import Agent

            agent = Agent(["red", "green"], context=["hour"], seed=1)
            made = agent.decide_many([{"context": [0.1]}, {"context": [0.9]}])
            print([decision.arm for decision in made])
            ```
        """
        given = [r if isinstance(r, Request) else checks.request(r, Request) for r in requests]
        book, batch, ids = self._book, DecisionBatch({}, {}), self._ids(given)
        at = moment(now)
        book.admit(batch, ids, given, may_add=True)
        self._check_room(len(batch.new))
        book.expire(at, room=len(batch.new))
        try:
            made = batch.known | book.decide(batch.new)
        except DivergenceError as error:
            raise check.InputError(str(error)) from None
        return [answer(book, made, *pair) for pair in zip(ids, given, strict=True)]

    def _check_room(self, decisions: int) -> None:
        most = self._book.settings.max_open
        if decisions > most:
            check.fail("requests", f"at most {most} (max_open) at a time", decisions)

    def _ids(self, requests: list[Request]) -> list[str]:
        """Ids of our own count the decisions, so that they too follow from the seed."""
        number, ids = self._book.learner.decisions, []
        for request in requests:
            if request.id is None:
                while self._knows(id := own_id(self.settings.seed, number), request.k):
                    number += 1  # a caller's own was the same
                ids.append(id)
                number += request.k if check.is_integer(request.k) and request.k > 0 else 1  # type: ignore[operator]
            else:
                ids.append(checks.name("id", request.id))
        return ids

    def _knows(self, id: str, k: int | None) -> bool:
        return self._book.knows(id if k is None else place_ids(id, 1)[0])

    # Learning

    def reward(self, id: str, reward: float, *, now: float | None = None) -> str:
        """Learns the reward of a decision, at once or late.

        Args:
            id: The id of the decision.
            reward: The reward.
            now: The unix time in seconds. None uses the clock.

        Returns:
            "learned", or "duplicate" if the decision already has this reward.

        Raises:
            InputError: If the decision is unknown, has expired or has another reward, or if the
                reward is refused. Then nothing is learned.

        Example:
            ```python
            from driftbandits import Agent

            agent = Agent(["red", "green"], seed=1)
            decision = agent.decide()
            assert agent.reward(decision.id, 1.0) == "learned"
            assert agent.reward(decision.id, 1.0) == "duplicate"
            ```
        """
        return self.reward_many([(id, reward)], now=now)[0]

    @one_at_a_time
    def reward_many(
        self, rewards: Iterable[tuple[str, float]], *, now: float | None = None
    ) -> list[str]:
        """Learns many rewards at once.

        Args:
            rewards: Pairs of an id and a reward.
            now: The unix time in seconds. None uses the clock.

        Returns:
            "learned" or "duplicate" for each reward.

        Raises:
            InputError: If one of the rewards is refused. Then none is learned.

        Example:
            ```python
            from driftbandits import Agent

            agent = Agent(["red", "green"], seed=1)
            made = agent.decide_many([{}, {}])
            agent.reward_many([(made[0].id, 1.0), (made[1].id, 0.0)])
            ```
        """
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
                reason = reason_against(id, reward, verdict, self.settings)
                if verdict.status == "unknown" and self._book.knows(place_ids(id, 1)[0]):
                    reason += slate_hint(id)
                raise check.InputError(reason)

    @one_at_a_time
    def expire(self, now: float | None = None) -> list[str]:
        """Ends the wait of decisions whose window has passed.

        `decide` and `reward` do the same before anything else. Time never goes back.

        Args:
            now: The unix time in seconds. None uses the clock.

        Returns:
            The ids of these decisions, oldest first.

        Example:
            ```python
            from driftbandits import Agent

            agent = Agent(["red", "green"], window=60, seed=1)
            agent.decide(id="visit-1", now=0)
            assert agent.expire(now=100) == ["visit-1"]
            ```
        """
        return self._book.expire(moment(now))

    # Arms

    @one_at_a_time
    def add_arm(self, name: str, features: Features | None = None) -> None:
        """Adds an arm, which starts from the prior, in a slot of its own.

        Args:
            name: The name of the new arm.
            features: Its features, from which a policy may know what to expect of it.

        Raises:
            InputError: If an arm with this name exists.

        Example:
            ```python
            from driftbandits import Agent

            agent = Agent(["red", "green"], seed=1)
            agent.add_arm("blue")
            assert agent.arms == ["red", "green", "blue"]
            ```
        """
        self._book.add_arm(name, features)

    @one_at_a_time
    def set_features(self, name: str, features: Features) -> None:
        """Replaces the features of an arm. What was learned about the arm stays.

        Features that are the same as before change nothing.

        Args:
            name: The name of the arm.
            features: All of its features from now on; what is left out is not kept, but missing.

        Raises:
            InputError: If there is no such arm, or the features break a rule.

        Example:
            ```python
            from driftbandits import Agent

            arms = {"a17": {"sport": 1, "age": 0.0}, "a18": {"sport": 0, "age": 0.5}}
            agent = Agent(arms, policy="lin_ucb", seed=1)
            agent.set_features("a17", {"sport": 1, "age": 1.0})
            print(agent.decide().arm)
            ```
        """
        if not self._book.has_features(name, features):
            self._book.set_features(name, features)

    @one_at_a_time
    def retire_arm(self, name: str) -> None:
        """Stops choosing an arm. What was learned about it stays, and late rewards are learned.

        Args:
            name: The name of the arm.

        Raises:
            InputError: If there is no such arm, or it is the last active one.

        Example:
            ```python
            from driftbandits import Agent

            agent = Agent(["red", "green"], seed=1)
            agent.retire_arm("red")
            assert agent.decide().arm == "green"
            ```
        """
        self._book.retire_arm(name)

    @one_at_a_time
    def restore_arm(self, name: str) -> None:
        """Brings back a retired arm, with all that was learned about it.

        Args:
            name: The name of the arm.

        Raises:
            InputError: If there is no such arm.

        Example:
            ```python
            from driftbandits import Agent

            agent = Agent(["red", "green"], seed=1)
            agent.retire_arm("red")
            agent.restore_arm("red")
            assert agent.retired == []
            ```
        """
        self._book.restore_arm(name)

    # Saving

    @one_at_a_time
    def save(self, path: str | Path) -> None:
        """Writes the agent into one file, atomically and with a checksum.

        Args:
            path: The file to write.

        Example:
            ```python
            from driftbandits import Agent

            agent = Agent(["red", "green"], seed=1)
            agent.save("shop.agent")
            again = Agent.load("shop.agent")
            assert again.decide(now=0) == agent.decide(now=0)
            ```
        """
        write_book(self._book, Path(path))

    @classmethod
    def load(cls, path: str | Path, *, cache: bool | str | Path | None = None) -> "Agent":
        """Reads an agent from a file. It continues bit for bit.

        Args:
            path: The file that `save` wrote.
            cache: Whether compiled programs are stored, as for a new agent.

        Returns:
            The agent.

        Raises:
            InputError: If the file is damaged, not an agent, or of a newer version.

        Example:
            ```python
            from driftbandits import Agent

            Agent(["red", "green"], seed=1).save("shop.agent")
            print(Agent.load("shop.agent").arms)
            ```
        """
        return agent_of(read_book(Path(path), cache))


def answer(
    book: DecisionBook, made: Mapping[str, Any], id: str, request: Request
) -> AgentDecision | list[AgentDecision]:
    """What a caller gets: a decision, or those of its slate."""
    if request.k is None:
        return book.answer(id, made[id])
    ids = place_ids(id, request.k)
    return [book.answer(each, made[each], id, place) for place, each in enumerate(ids, 1)]


def agent_of(book: DecisionBook) -> Agent:
    """Makes the agent whose decisions are in this book."""
    agent = Agent.__new__(Agent)
    agent._book, agent._turns = book, Turns()
    return agent


def own_id(seed: int, number: int) -> str:
    return hashlib.blake2b(b"%d %d" % (seed, number), digest_size=8).hexdigest()


def moment(now: float | None) -> float:
    return time.time() if now is None else checks.moment(now)
