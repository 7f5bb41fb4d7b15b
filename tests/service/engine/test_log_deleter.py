"""Logs of deleted bandits go in the background, also after a restart."""

import time
from pathlib import Path

import sqlalchemy as sa

from driftbandits.service.engine import log_deleter
from driftbandits.service.engine.log_deleter import LogDeleter
from driftbandits.service.store.records import Entry
from driftbandits.service.store.store import Store
from tests.service.store.databases import decisions, new

WAIT = 60  # seconds, on a busy machine


def wait_until_gone(store: Store, bandit: int) -> None:
    end = time.monotonic() + WAIT
    while store.events(bandit, 0) and time.monotonic() < end:
        time.sleep(0.01)
    assert store.events(bandit, 0) == []


def test_it_deletes_what_was_left_and_what_it_is_woken_for(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(log_deleter, "PAGE", 2)
    store = Store(f"sqlite:///{tmp_path}/bandits.sqlite")
    left, later = new(store, "left"), new(store, "later")
    for lease in (left, later):
        store.append([Entry(lease, 0, decisions(1, 9))])
    store.delete_bandit(left)
    deleter = LogDeleter(store)
    deleter.start()
    wait_until_gone(store, left.bandit)
    assert len(store.events(later.bandit, 0)) == 9
    store.delete_bandit(later)
    deleter.wake()
    wait_until_gone(store, later.bandit)
    deleter.stop()
    store.close()


def test_a_database_that_is_away_is_tried_again(caplog) -> None:
    class Away:
        calls = 0

        def delete_page(self, _: int) -> bool:
            self.calls += 1
            if self.calls == 1:
                raise sa.exc.OperationalError("", {}, Exception("gone"))
            return False

    store = Away()
    deleter = LogDeleter(store)  # type: ignore[arg-type]
    deleter.start()
    end = time.monotonic() + WAIT
    while store.calls < 2 and time.monotonic() < end:
        deleter.wake()
        time.sleep(0.01)
    deleter.stop()
    assert store.calls >= 2
    assert any("not deleted yet" in message for message in caplog.messages)
