"""Decisions that wait, while another thread reads their tickets."""

import numpy as np

from driftbandits.agents.agent import Agent
from driftbandits.agents.file import arrays_of, freeze
from driftbandits.agents.learner import Acts
from driftbandits.agents.open_decisions import FIRST_ROWS, OpenDecisions


def acts(*tickets: int) -> Acts:
    rows = np.array([[each] for each in tickets], np.uint32)
    return Acts(np.zeros(len(rows), np.int32), np.ones((len(rows), 1), np.float32), rows)


def test_rows_are_not_used_again_while_they_are_held() -> None:
    waiting = OpenDecisions(1)
    waiting.add(["a"], 0.0, acts(7), 1)
    row = waiting.waiting["a"].row
    waiting.hold()
    waiting.remove("a")
    waiting.hold()  # a second reader does not free what the first one reads
    waiting.add([str(i) for i in range(FIRST_ROWS)], 0.0, acts(*range(FIRST_ROWS)), 1)
    assert row not in {kept.row for kept in waiting.waiting.values()}
    assert waiting.tickets[row] == 7
    waiting.release()
    waiting.add(["b"], 0.0, acts(8), 1)
    assert waiting.waiting["b"].row == row


def test_a_frozen_book_stays_as_it_was_while_the_book_goes_on() -> None:
    agent = Agent(["a", "b"], policy="thompson", window=10)
    for id in "xyz":
        agent.decide(id=id, now=0)
    book = agent._book
    before = arrays_of(freeze(book))
    book.open.hold()
    frozen = freeze(book)
    agent.reward("x", 1.0, now=1)
    agent.decide_many([{"id": str(i)} for i in range(100)], now=2)
    agent.add_arm("c")
    agent.decide(id="late", now=20)
    after = arrays_of(frozen)
    assert before.keys() == after.keys()
    assert all(before[name].tobytes() == after[name].tobytes() for name in before)
