"""Transactions on SQLite's own connection: all of it or nothing, and errors are SQLAlchemy's."""

from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError, OperationalError

from driftbandits.service.store.database import connect
from driftbandits.service.store.direct import DirectTransactions

INSERT = "INSERT INTO numbers VALUES (?, ?)"


@pytest.fixture
def engine(tmp_path: Path) -> sa.Engine:
    (tmp_path / "here").mkdir()
    engine = connect(f"sqlite:///{tmp_path}/here/numbers.sqlite")
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE numbers (number INTEGER PRIMARY KEY, bytes BLOB)")
    return engine


def numbers(engine: sa.Engine) -> list[int]:
    with engine.connect() as connection:
        return list(connection.scalars(sa.text("SELECT number FROM numbers ORDER BY number")))


@pytest.mark.parametrize("count", [1, 64, 65, 256, 600])
def test_any_number_of_rows(engine: sa.Engine, count: int) -> None:
    direct = DirectTransactions(engine)
    with direct.begin() as execute:
        assert execute(INSERT, [(number, b"\0") for number in range(count)]) == count
        assert execute("UPDATE numbers SET bytes = ? WHERE number < ?", (b"", 1)) == 1
        assert execute("UPDATE numbers SET bytes = ? WHERE number < ?", (b"", 0)) == 0
    assert numbers(engine) == list(range(count))
    direct.close()


def fail(direct: DirectTransactions, error: type[BaseException]) -> None:
    with direct.begin() as execute:
        execute(INSERT, [(7, b"")])
        if error is IntegrityError:
            execute(INSERT, [(7, b"")])
        elif error is OperationalError:
            execute("INSERT INTO nothing VALUES (?)", (1,))
        raise error


@pytest.mark.parametrize("error", [IntegrityError, OperationalError, KeyboardInterrupt])
def test_after_an_error_nothing_is_written_and_the_next_one_works(
    engine: sa.Engine, error: type[BaseException]
) -> None:
    direct = DirectTransactions(engine)
    with pytest.raises(error):
        fail(direct, error)
    with direct.begin() as execute:
        execute(INSERT, [(9, b"")])
    assert numbers(engine) == [9]
    direct.close()


def test_a_file_that_is_away_for_a_while(engine: sa.Engine, tmp_path: Path) -> None:
    engine.dispose()
    direct = DirectTransactions(engine)
    (tmp_path / "here").rename(tmp_path / "elsewhere")
    with pytest.raises(OperationalError, match="unable to open"), direct.begin():
        pass
    (tmp_path / "elsewhere").rename(tmp_path / "here")
    with direct.begin() as execute:
        execute(INSERT, [(1, b"")])
    assert numbers(engine) == [1]
    direct.close()
