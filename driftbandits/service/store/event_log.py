"""The log of every bandit: written once and in order, read in pages."""

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any

import sqlalchemy as sa

from driftbandits.service.store.direct import Execute
from driftbandits.service.store.records import Entry, Event, Found, LoggedDecision
from driftbandits.service.store.schema import DECISION, OUTCOME, bandits, events


def columns_of(fields: Iterable[str]) -> list[str]:
    """The columns of an event's fields."""
    return ["law" if field == "probabilities" else field for field in fields]


COLUMNS = columns_of(Event._fields)
FIELDS = [events.c[column] for column in COLUMNS]
WIDTH = len(FIELDS)
WITH_BYTES = ("decision", "settings_changed")
DECISION_FIELDS = [field for field in Event._fields if field != "reward"]
OTHER_FIELDS = ["seq", "kind", "time", "id", "reward"]
# By place, as an attribute takes longer.
decision_values = itemgetter(*map(Event._fields.index, DECISION_FIELDS))
other_values = itemgetter(*map(Event._fields.index, OTHER_FIELDS))
MOST_IDS = 1000  # in one question: databases limit the number of parameters

bandit, after, limit = (
    sa.bindparam(name, type_=sa.BigInteger) for name in ("bandit", "after", "limit")
)
PAGE = (
    sa.select(*FIELDS)
    .where(events.c.bandit == bandit, events.c.seq > after)
    .order_by(events.c.seq)
    .limit(limit)
)
FIND = sa.select(*FIELDS, events.c.part).where(
    events.c.bandit == bandit,
    events.c.id.in_(sa.bindparam("ids", expanding=True)),
    events.c.part.in_([DECISION, OUTCOME]),  # the whole index, or SQLite would not take it
)

CORRECTIONS = f"""SELECT {", ".join(COLUMNS)} FROM events{{hint}}
WHERE bandit = :bandit AND kind = 'correction' ORDER BY seq"""
HINTS = {"sqlite": " INDEXED BY corrections"}  # else it would read the whole log


def with_outcomes(newest: bool) -> sa.Select[Any]:
    """Selects a page of decisions with their outcomes: the first after a seq, or the newest."""
    order = events.c.seq.desc() if newest else events.c.seq
    # By kind, as there is an index with the part: a planner would take it and sort the whole log.
    decision = events.c.bandit == bandit, events.c.kind == "decision", events.c.seq > after
    page = sa.select(*FIELDS).where(*decision).order_by(order).limit(limit).subquery()
    outcome = events.alias()
    its_own = sa.and_(
        outcome.c.bandit == bandit, outcome.c.id == page.c.id, outcome.c.part == OUTCOME
    )
    columns = [*page.c, *(outcome.c[column] for column in COLUMNS)]
    return sa.select(*columns).outerjoin_from(page, outcome, its_own).order_by(page.c.seq)


FIRST_DECISIONS, LAST_DECISIONS = with_outcomes(newest=False), with_outcomes(newest=True)


class Writer:
    """Appends to logs; its statements are made once, as it is called often."""

    def __init__(self, dialect: sa.Dialect) -> None:
        row = bandits.c
        advance = sa.update(bandits).values(seq=sa.bindparam("new"))
        advance = advance.where(
            row.id == sa.bindparam("bandit"),
            row.epoch == sa.bindparam("its_epoch"),
            row.seq == sa.bindparam("last_seq"),
        )
        self.advance = str(advance.compile(dialect=dialect))
        self._inserts = [
            inserting(["bandit", *columns_of(fields)], dialect)
            for fields in (DECISION_FIELDS, OTHER_FIELDS)
        ]

    def append(self, execute: Execute, entries: Iterable[Entry]) -> set[int]:
        """Writes what the leases allow; returns the ids of bandits that other workers own now."""
        lost: set[int] = set()
        decisions: list[tuple[Any, ...]] = []
        others: list[tuple[Any, ...]] = []
        for (bandit, epoch), last, new in sorted(entries, key=itemgetter(0)):
            check_order(last, new)
            parameters = (last + len(new), bandit, epoch, last)
            if execute(self.advance, parameters):
                decisions += [(bandit, *decision_values(e)) for e in new if e.kind in WITH_BYTES]
                others += [(bandit, *other_values(e)) for e in new if e.kind not in WITH_BYTES]
            else:
                lost.add(bandit)
        for (insert, insert_many), rows in zip(self._inserts, (decisions, others), strict=True):
            if rows:
                execute(insert_many if len(rows) > 1 else insert, rows)
        return lost


def inserting(columns: Sequence[str], dialect: sa.Dialect) -> tuple[str, str]:
    """Makes a statement for one row, and one for many."""
    one = str(events.insert().compile(dialect=dialect, column_keys=columns))
    if dialect.name == "postgresql":  # four times as fast as INSERT
        return one, f"COPY events ({', '.join(columns)}) FROM STDIN"
    return one, one


def check_order(last: int, new: Sequence[Event]) -> None:
    if [event.seq for event in new] != list(range(last + 1, last + 1 + len(new))):
        raise ValueError(f"the events after seq {last} must be numbered from {last + 1}, no gaps")


def page(connection: sa.Connection, bandit: int, after: int, limit: int) -> list[Event]:
    values = {"bandit": bandit, "after": after, "limit": limit}
    return [Event._make(row) for row in connection.execute(PAGE, values)]


def corrections(connection: sa.Connection, bandit: int) -> list[Event]:
    query = sa.text(CORRECTIONS.format(hint=HINTS.get(connection.dialect.name, "")))
    return [Event._make(row) for row in connection.execute(query, {"bandit": bandit})]


def find(connection: sa.Connection, bandit: int, ids: Sequence[str]) -> Found:
    """The decision and the outcome of each id that is in the log."""
    decisions: dict[str, Event] = {}
    outcomes: dict[str, Event] = {}
    for start in range(0, len(ids), MOST_IDS):
        values = {"bandit": bandit, "ids": ids[start : start + MOST_IDS]}
        for row in connection.execute(FIND, values):
            event = Event._make(row[:WIDTH])
            (decisions if row.part == DECISION else outcomes)[event.id] = event
    return {id: LoggedDecision(event, outcomes.get(id)) for id, event in decisions.items()}


def decision_page(
    connection: sa.Connection, query: sa.Select[Any], **values: int
) -> list[LoggedDecision]:
    """A page of decisions, with their outcomes."""
    return [
        LoggedDecision(
            decision=Event._make(row[:WIDTH]),
            outcome=None if row[WIDTH] is None else Event._make(row[WIDTH:]),
        )
        for row in connection.execute(query, values)
    ]
