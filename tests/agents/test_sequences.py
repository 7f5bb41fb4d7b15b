"""Whatever is asked of an agent, in whatever order: what must hold holds."""

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from driftbandits.agents.agent import Agent, agent_of
from driftbandits.agents.file import from_bytes, to_bytes

WINDOW = 10
MOST_ARMS = 4  # of three sizes of the policy's memory; each is compiled once


class Shop(RuleBasedStateMachine):
    """A tiny agent beside plain lists of what it should know."""

    @initialize(default=st.sampled_from([None, 0.0]), most=st.integers(2, 6))
    def start(self, default: float | None, most: int) -> None:
        self.agent = Agent(
            ["a"], policy="thompson", window=WINDOW, default_reward=default, max_open=most
        )
        self.most, self.now, self.retired = most, 0, set[str]()
        self.made: dict[str, int] = {}  # when those that wait were decided, by id
        self.gone: list[tuple[str, bool]] = []  # id, expired

    def ended(self, room: int = 0) -> None:
        """Windows that have passed, and what there is no room for."""
        over = [id for id, time in self.made.items() if time <= self.now - WINDOW]
        crowded = list(self.made)[: max(len(self.made) + room - self.most, 0)]
        for id in max(over, crowded, key=len):
            del self.made[id]
            self.gone.append((id, True))

    @rule(passed=st.integers(0, 6), only=st.booleans())
    def decide(self, passed: int, only: bool) -> None:
        self.now += passed
        free = [arm for arm in self.agent.arms if arm not in self.retired]
        decision = self.agent.decide(available=free[:1] if only else None, now=self.now)
        self.ended(room=1)
        assert decision.arm in (free[:1] if only else free)
        assert decision.probability == decision.probabilities[decision.arm] > 0
        assert all(decision.probabilities[arm] == 0 for arm in self.retired)
        assert decision.id not in self.made
        self.made[decision.id] = self.now

    @precondition(lambda self: self.made)
    @rule(which=st.integers(0, 5), reward=st.sampled_from([0.0, 0.3, 1.0]))
    def reward(self, which: int, reward: float) -> None:
        id = list(self.made)[which % len(self.made)]
        assert self.agent.reward(id, reward, now=self.now) == "learned"
        assert self.agent.reward(id, reward, now=self.now) == "duplicate"
        del self.made[id]
        self.gone.append((id, False))

    @precondition(lambda self: len(self.agent.arms) < MOST_ARMS)
    @rule()
    def add(self) -> None:
        self.agent.add_arm("abcd"[len(self.agent.arms)])

    @precondition(lambda self: len(self.agent.arms) > len(self.retired) + 1)
    @rule(which=st.integers(0, 3))
    def retire(self, which: int) -> None:
        free = [arm for arm in self.agent.arms if arm not in self.retired]
        self.retired.add(free[which % len(free)])
        self.agent.retire_arm(free[which % len(free)])

    @precondition(lambda self: self.retired)
    @rule()
    def restore(self) -> None:
        self.agent.restore_arm(min(self.retired))
        self.retired.remove(min(self.retired))

    @rule(passed=st.integers(0, 12))
    def expire(self, passed: int) -> None:
        self.now += passed
        before = len(self.gone)
        ids = self.agent.expire(now=self.now)
        self.ended()
        assert [(id, True) for id in ids] == self.gone[before:]

    @rule()
    def stop_and_go_on(self) -> None:
        content = to_bytes(self.agent._book)
        self.agent = agent_of(from_bytes(content))
        assert to_bytes(self.agent._book) == content

    @invariant()
    def it_waits_for_what_has_no_reward(self) -> None:
        assert self.agent.open == list(self.made)
        counts, expired = self.agent.counts, sum(expired for _, expired in self.gone)
        assert counts.decisions == len(self.made) + len(self.gone)
        assert counts.expired == expired
        assert counts.rewards == len(self.gone) - expired
        assert set(self.agent.retired) == self.retired


TestShop = Shop.TestCase
TestShop.settings = settings(
    max_examples=25, stateful_step_count=25, deadline=None, derandomize=True, database=None
)
