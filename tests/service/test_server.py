"""How a worker starts and ends: which folder it locks, what lease it has, and what keeps it."""

import subprocess
import sys
from math import inf
from pathlib import Path

import pytest

from driftbandits import InputError
from driftbandits.service.server import lock_folder, one_of_many, serve, single_worker

COMPILING = """
import threading, time
from driftbandits.service.server import leave
threading.Thread(target=time.sleep, args=(3600,), name="driftbandits-compiling_0").start()
print("said", end="")
leave()
"""


def test_a_thread_that_compiles_does_not_keep_a_worker_from_ending() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", COMPILING], capture_output=True, text=True, timeout=300, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "said", "")


def test_an_sqlite_file_belongs_to_one_process_however_it_is_named(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/bandits.sqlite"
    lock = lock_folder(tmp_path, by_database=False)
    with pytest.raises(InputError, match="--database must be in a folder that no other service"):
        serve(tmp_path, database, "127.0.0.1", 0, None, without_keys=True)
    lock.release()
    lock_folder(tmp_path, by_database=True).release()


def test_a_worker_that_is_alone_is_the_same_after_a_restart() -> None:
    assert single_worker("http://a") == ("alone", "http://a", inf)
    one, other = one_of_many("http://a"), one_of_many("http://a")
    assert one.name != other.name
    assert one.may_expire
