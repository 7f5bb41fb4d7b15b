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
WIDTH = len(COLUMNS)
WITH_BYTES = ("decision", "settings_changed", "arm_added", "features_set")
DECISION_FIELDS = [field for field in Event._fields if field != "reward"]
OTHER_FIELDS = ["seq", "kind", "time", "id", "reward"]
# By place, as an attribute takes longer.
decision_values = itemgetter(*map(Event._fields.index, DECISION_FIELDS))
other_values = itemgetter(*map(Event._fields.index, OTHER_FIELDS))
MOST_IDS = 1000  # in one question: databases limit the number of parameters

bandit, after, limit = (
    sa.bindparam(name, type_=sa.BigInteger) for name in ("bandit", "after", "limit")
)
HINTS = {"sqlite": " INDEXED BY corrections"}  # else it would read the whole log


class Reader:
    """Reads logs; those of older databases have no places on slates."""

    def __init__(self, has_places: bool = True) -> None:
        self._fields = [
            events.c[column] if has_places or column != "place" else sa.null().label("place")
            for column in COLUMNS
        ]
        texts = [column if has_places or column != "place" else "NULL" for column in COLUMNS]
        self.corrections_query = f"""SELECT {", ".join(texts)} FROM events{{hint}}
        WHERE bandit = :bandit AND kind = 'correction' ORDER BY seq"""
        own = events.c.bandit == bandit
        self._page = (
            sa.select(*self._fields)
            .where(own, events.c.seq > after)
            .order_by(events.c.seq)
            .limit(limit)
        )
        self._find = sa.select(*self._fields, events.c.part).where(
            own,
            events.c.id.in_(sa.bindparam("ids", expanding=True)),
            events.c.part.in_([DECISION, OUTCOME]),  # the whole index, or SQLite would not take it
        )
        self._first_decisions = self._with_outcomes(newest=False)
        self._last_decisions = self._with_outcomes(newest=True)

    def _with_outcomes(self, newest: bool) -> sa.Select[Any]:
        """Selects a page of decisions with outcomes: the first after a seq, or the newest."""
        order = events.c.seq.desc() if newest else events.c.seq
        # By kind, as there is an index with the part: a planner would take it and sort all.
        decision = events.c.bandit == bandit, events.c.kind == "decision", events.c.seq > after
        page = sa.select(*self._fields).where(*decision).order_by(order).limit(limit).subquery()
        outcome = events.alias()
        its_own = sa.and_(
            outcome.c.bandit == bandit, outcome.c.id == page.c.id, outcome.c.part == OUTCOME
        )
        outcomes = [outcome.c[name] if name != "place" else sa.null() for name in COLUMNS]
        found = sa.select(*page.c, *outcomes).outerjoin_from(page, outcome, its_own)
        return found.order_by(page.c.seq)

    def page(self, connection: sa.Connection, bandit: int, after: int, limit: int) -> list[Event]:
        values = {"bandit": bandit, "after": after, "limit": limit}
        return [Event._make(row) for row in connection.execute(self._page, values)]

    def corrections(self, connection: sa.Connection, bandit: int) -> list[Event]:
        hint = HINTS.get(connection.dialect.name, "")
        query = sa.text(self.corrections_query.format(hint=hint))
        found = connection.execute(query, {"bandit": bandit})
        return [Event._make(row) for row in found]

    def find(self, connection: sa.Connection, bandit: int, ids: Sequence[str]) -> Found:
        """The decision and the outcome of each id that is in the log."""
        decisions: dict[str, Event] = {}
        outcomes: dict[str, Event] = {}
        for start in range(0, len(ids), MOST_IDS):
            values = {"bandit": bandit, "ids": ids[start : start + MOST_IDS]}
            for row in connection.execute(self._find, values):
                event = Event._make(row[:WIDTH])
                (decisions if row.part == DECISION else outcomes)[event.id] = event
        return {id: LoggedDecision(event, outcomes.get(id)) for id, event in decisions.items()}

    def first_decisions(self, connection: sa.Connection, **values: int) -> list[LoggedDecision]:
        """A page of decisions, with their outcomes."""
        return decision_page(connection, self._first_decisions, **values)

    def last_decisions(self, connection: sa.Connection, **values: int) -> list[LoggedDecision]:
        return decision_page(connection, self._last_decisions, **values)


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
