"""While a database is silent, one caller a second waits for it."""

import sqlite3
from types import SimpleNamespace

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import OperationalError

from driftbandits.service.store import outage
from driftbandits.service.store.outage import Outage, SilentDatabaseError


class Server:
    """A database that answers, refuses after so many seconds, or is broken off by a query."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.tries, self.refuses_after = 100.0, 0, None
        self.engine = sa.create_engine("sqlite://", poolclass=sa.NullPool)
        self._really = self.engine.dialect.connect
        monkeypatch.setattr(self.engine.dialect, "connect", self._connect)
        monkeypatch.setattr(self.engine.dialect, "is_disconnect", lambda *_: True)
        monkeypatch.setattr(outage, "time", SimpleNamespace(monotonic=lambda: self.now))
        Outage().watch(self.engine)

    def _connect(self, *arguments: object, **options: object) -> object:
        self.tries += 1
        if self.refuses_after is None:
            return self._really(*arguments, **options)
        self.now += self.refuses_after
        raise sqlite3.OperationalError("no answer")

    def ask(self, statement: str = "SELECT 1") -> None:
        with self.engine.connect() as connection:
            connection.exec_driver_sql(statement)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    return Server(monkeypatch)


def test_one_caller_a_second_waits_for_a_silent_server(server: Server) -> None:
    server.ask()
    server.refuses_after = 1.0
    with pytest.raises(OperationalError, match="no answer"):
        server.ask()
    for _ in range(10):
        with pytest.raises(SilentDatabaseError):
            server.ask()
    assert server.tries == 2
    server.now += 1.1
    with pytest.raises(OperationalError, match="no answer"):
        server.ask()
    with pytest.raises(SilentDatabaseError):
        server.ask()
    assert server.tries == 3
    server.now, server.refuses_after = server.now + 1.1, None
    for _ in range(10):
        server.ask()
    assert server.tries == 13


def test_a_server_that_is_stopped_is_asked_each_time(server: Server) -> None:
    server.refuses_after = 0.01
    for _ in range(10):
        with pytest.raises(OperationalError, match="no answer"):
            server.ask()
    assert server.tries == 10


def test_a_query_without_an_answer_begins_an_outage(server: Server) -> None:
    with pytest.raises(OperationalError, match="no such table"):
        server.ask('SELECT * FROM "another one"')
    server.ask()
    with pytest.raises(OperationalError, match="timed out"):
        server.ask('SELECT * FROM "connection timed out"')
    with pytest.raises(SilentDatabaseError):
        server.ask()
    assert server.tries == 3
