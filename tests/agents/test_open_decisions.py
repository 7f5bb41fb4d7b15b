"""Open decisions in blocks, joined, spilled to a file and grown, are what a plain dict would be."""

import copy
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftbandits import Agent, InputError
from driftbandits.agents import id_index, open_decisions, wide_tables
from driftbandits.agents.decision_block import Columns, MadeDecisions
from driftbandits.agents.open_decisions import OpenDecisions
from driftbandits.agents.settings import MOST_OPEN, AgentSettings, settings_of
from driftbandits.agents.spill_file import SpillFile

SIZES = {"MOST_ROWS": 16, "FIRST_ROWS": 2, "LEAST_ROWS": 4, "MEMORY_BYTES": 600}
WIDTH, SLOTS = 3, 2


class Kept(NamedTuple):
    """What a decision is, as a test remembers it."""

    arm: int
    probabilities: bytes
    time: float
    ticket: tuple[int, ...]


def wider(tickets: np.ndarray) -> np.ndarray:
    return np.append(tickets, np.full((len(tickets), 1), 7, tickets.dtype), axis=1)


class Both:
    """The real thing, and a dict to compare it with."""

    def __init__(self) -> None:
        self.real = OpenDecisions(WIDTH, SLOTS)
        self.model: dict[str, Kept] = {}
        self.made, self.now = 0, 0.0

    def add(self, count: int, is_shared: bool) -> None:
        random = np.random.default_rng(self.made)
        ids = [f"d{self.made + i}" for i in range(count)]
        arms = random.integers(0, self.real.slots, count).astype(np.int32)
        laws = random.random((1 if is_shared else count, self.real.slots)).astype(np.float32)
        tickets = random.integers(0, 2**32, (count, self.real.width), np.uint32)
        self.real.add(ids, self.now, MadeDecisions(arms, laws, tickets))
        for place, id in enumerate(ids):
            law = laws[0 if is_shared else place].tobytes()
            ticket = tuple(tickets[place].tolist())
            self.model[id] = Kept(int(arms[place]), law, self.now, ticket)
        self.made += count
        self.now += 1.0

    def remove(self, ids: list[str]) -> None:
        self.real.remove(ids)
        for id in ids:
            del self.model[id]

    def grow(self) -> None:
        self.real.grow(wider, self.real.width + 1, 2 * self.real.slots)
        for id, kept in self.model.items():
            self.model[id] = kept._replace(ticket=(*kept.ticket, 7))

    def check(self) -> None:
        ids = list(self.model)
        assert list(self.real) == ids
        assert len(self.real) == len(ids)
        tickets = self.real.tickets_of(ids)
        for id, ticket in zip(ids, tickets.tolist(), strict=True):
            found = self.real[id]
            kept = Kept(found.arm, found.probabilities.tobytes(), found.time, tuple(ticket))
            assert kept == self.model[id]
        assert self.real.first_time == (self.model[ids[0]].time if ids else None)
        assert self.real.oldest(5) == ids[:5]
        until = [id for id in ids if self.model[id].time <= self.now / 2]
        assert self.real.until(self.now / 2, 7) == until[:7]
        rows = sum(block.count for block in self.real.blocks)
        assert rows <= 4 * len(ids) + 4 * SIZES["MOST_ROWS"], "what is closed takes little room"


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(1, 40), st.booleans()),
        st.tuples(
            st.just("remove"), st.sampled_from(["oldest", "newest", "some"]), st.floats(0, 1)
        ),
        st.tuples(st.just("grow"), st.none(), st.none()),
    ),
    max_size=25,
)


@settings(deadline=None, max_examples=150)
@given(STEPS, st.randoms(use_true_random=False))
def test_it_is_a_dict_in_the_order_of_the_decisions(steps: list[Any], random: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for name, size in SIZES.items():
            patch.setattr(open_decisions, name, size)
        patch.setattr(id_index, "SPLIT_AT", 30)
        both, growths = Both(), 0
        for what, first, second in steps:
            if what == "add":
                both.add(first, second)
            elif what == "grow" and growths < 3:
                both.grow()
                growths += 1
            elif what == "remove":
                ids = list(both.model)
                count = int(second * len(ids))
                chosen = {"oldest": ids[:count], "newest": ids[len(ids) - count :]}
                both.remove(chosen.get(first) or random.sample(ids, count))
            both.check()


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in SIZES.items():
        monkeypatch.setattr(open_decisions, name, size)


def test_new_ones_are_found_behind_those_that_were_closed(small: None) -> None:
    both = Both()
    both.add(SIZES["MOST_ROWS"], is_shared=False)
    both.remove(list(both.model)[3:])
    for _ in range(20):
        both.add(1, is_shared=False)
        both.check()


def in_memory(open: OpenDecisions) -> int:
    """Bytes of the tickets and probabilities of full blocks."""
    return sum(block.tables.nbytes for block in open.blocks)


def test_old_tickets_wait_on_disk(small: None) -> None:
    both = Both()
    for _ in range(30):
        both.add(20, is_shared=False)
        assert in_memory(both.real) <= SIZES["MEMORY_BYTES"]
    assert both.real.bytes_on_disk > 0
    both.check()


def test_places_in_the_file_are_used_again(small: None) -> None:
    both = Both()
    both.add(400, is_shared=False)
    before = both.real.bytes_on_disk
    for _ in range(10):
        both.remove(list(both.model)[:200])
        both.add(200, is_shared=False)
        both.check()
    assert both.real.bytes_on_disk <= 1.5 * before


def test_on_a_full_disk_they_stay_in_memory(small: None, monkeypatch) -> None:
    def fail(self: SpillFile, content: bytes) -> None:
        raise OSError(28, "No space left on device")

    write = SpillFile.write
    monkeypatch.setattr(SpillFile, "write", fail)
    both = Both()
    both.add(300, is_shared=False)
    both.check()
    assert in_memory(both.real) > SIZES["MEMORY_BYTES"]
    monkeypatch.setattr(SpillFile, "write", write)
    before = in_memory(both.real)
    both.add(SIZES["MOST_ROWS"], is_shared=False)
    assert SIZES["MEMORY_BYTES"] < in_memory(both.real) < before, "a few blocks at a time"
    both.add(160, is_shared=False)
    both.check()
    assert in_memory(both.real) <= SIZES["MEMORY_BYTES"]


def test_the_file_is_in_its_folder_and_has_no_name(small: None, tmp_path, monkeypatch) -> None:
    asked = []
    opened = wide_tables.SpillFile  # the folder is seen where the file is made
    monkeypatch.setattr(
        open_decisions, "SpillFile", lambda folder: asked.append(folder) or opened(folder)
    )
    open = OpenDecisions(WIDTH, SLOTS, tmp_path)
    made = [np.zeros(200, np.int32), np.zeros((1, 2), np.float32), np.zeros((200, 3), np.uint32)]
    open.add([str(i) for i in range(200)], 0.0, MadeDecisions(*made))
    assert asked == [tmp_path]
    assert list(tmp_path.iterdir()) == []


def test_a_copy_has_a_file_of_its_own(small: None) -> None:
    both = Both()
    both.add(200, is_shared=False)
    copied = copy.deepcopy(both)
    both.remove(list(both.model)[:150])
    both.add(100, is_shared=False)
    copied.check()
    both.check()


def test_equal_probabilities_are_kept_once(small: None) -> None:
    agent = Agent(["red", "green"], policy="thompson")
    for number in range(16):
        agent.decide(id=f"d{number}", now=0)
    assert agent._book.open.newest.law_count == 1
    agent.reward("d3", 1.0, now=0)
    agent.decide(id="other", now=0)
    assert agent._book.open.newest.law_count <= 2


def test_rewards_of_decisions_before_and_after_growth_come_together() -> None:
    agent = Agent(["a", "b"], policy="thompson")
    agent.decide_many([{"id": "old 1"}, {"id": "old 2"}], now=0)
    agent.add_arm("c")
    agent.decide(id="new", now=0)
    agent.add_arm("d")
    agent.add_arm("e")
    agent.decide(id="newest", now=0)
    pairs = [("old 1", 1.0), ("new", 0.0), ("newest", 1.0)]
    assert agent.reward_many(pairs, now=0) == ["learned"] * 3
    assert agent.open == ["old 2"]
    assert agent.reward("old 2", 1.0, now=0) == "learned"


def test_columns_have_a_bounded_size() -> None:
    made = [np.zeros(9000, np.int32), np.zeros((1, 10), np.float32), np.zeros((9000, 2), np.uint32)]
    open = OpenDecisions(2, 10)
    open.add([str(i) for i in range(9000)], 0.0, MadeDecisions(*made))
    assert [block.count for block in open.blocks] == [4096, 4096]
    columns = open.blocks[0].columns
    assert sum(column.itemsize for column in Columns(*columns)) == 31


@pytest.mark.parametrize("width", [0, 524, 10**6])
def test_blocks_of_wide_tickets_have_fewer_rows(width: int) -> None:
    open = OpenDecisions(width, 10)
    bytes_of_block = 4 * (width + 10) * open.block_rows
    assert open.block_rows in (16, 4096) or bytes_of_block <= open_decisions.BLOCK_BYTES


def test_ten_million_may_be_open_and_not_one_more() -> None:
    assert Agent(["a", "b"], policy="ucb", max_open=10_000_000).settings.max_open == MOST_OPEN
    rule = "max_open must be a whole number of at most 10000000, got 10000001"
    with pytest.raises(InputError, match=rule):
        Agent(["a", "b"], policy="ucb", max_open=10_000_001)


def test_an_agent_of_an_older_version_may_have_asked_for_more() -> None:
    stored = AgentSettings(max_open=2**31 - 1)._asdict()
    assert settings_of(stored).max_open == MOST_OPEN
