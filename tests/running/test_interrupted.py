"""Killed, broken, locked, full: what is finished is kept, and the user is told."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from driftbandits.running.folder import StoreError, locked
from driftbandits.running.runner import run_experiment
from driftbandits.simulation.engine import WIDEST
from tests.running.test_runner import TINY, Count, counted, pieces, tiny
from tests.uncovered import without_coverage

SLOW = TINY.replace("300", "30_000").replace("runs = 6", f"runs = {4 * WIDEST + 4}")


def launch(file: Path, out: Path) -> subprocess.Popen:
    command = [sys.executable, "-m", "driftbandits", "run", str(file), "--out", str(out)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, env=without_coverage(), **pipes)


def wait_for(condition, process: subprocess.Popen) -> None:
    while not condition():
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("uninterrupted")
    (folder / "tiny.toml").write_text(SLOW)
    process = launch(folder / "tiny.toml", folder / "out")
    _, err = process.communicate()
    assert process.returncode == 0, err
    return folder


def test_killed_and_called_again_it_ends_the_same(uninterrupted: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for wanted in (1, 3):
        process = launch(uninterrupted / "tiny.toml", out)
        wait_for(lambda wanted=wanted: len(pieces(out)) >= wanted, process)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    kept = {path: path.stat().st_mtime_ns for path in pieces(out)}
    assert 3 <= len(kept) < 10, "of the ten pieces"
    process = launch(uninterrupted / "tiny.toml", out)
    output, err = process.communicate()
    assert process.returncode == 0, err
    assert f"{len(kept)} finished pieces found" in err
    assert "report:" in output
    assert {path: path.stat().st_mtime_ns for path in kept} == kept, "computed again"
    for name in ("results.parquet", "claims.json", "table.csv", "curves.csv", "figure.svg"):
        ours, theirs = (folder / "tiny" / name for folder in (out, uninterrupted / "out"))
        assert ours.read_bytes() == theirs.read_bytes(), name


def test_a_second_process_says_who_holds_the_folder(uninterrupted: Path, tmp_path: Path) -> None:
    first = launch(uninterrupted / "tiny.toml", tmp_path)
    wait_for((tmp_path / ".holder.json").exists, first)
    first.send_signal(signal.SIGSTOP)  # or it might be done before the second one has started
    second = launch(uninterrupted / "tiny.toml", tmp_path)
    _, err = second.communicate()
    first.send_signal(signal.SIGCONT)
    assert second.returncode == 1
    assert f"is in use by process {first.pid} on " in err
    assert "Traceback" not in err
    _, err = first.communicate()
    assert first.returncode == 0, err


def test_a_killed_process_holds_nothing(uninterrupted: Path, tmp_path: Path) -> None:
    process = launch(uninterrupted / "tiny.toml", tmp_path)
    wait_for((tmp_path / ".holder.json").exists, process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    with locked(tmp_path):
        who = json.loads((tmp_path / ".holder.json").read_text())
    assert who["process"] == os.getpid()


@pytest.mark.parametrize("damage", ["cut", "garbage", "empty", "swapped"])
def test_a_broken_piece_is_named_and_the_rest_is_kept(tmp_path: Path, damage: str) -> None:
    run_experiment(tiny(), tmp_path)
    first, second = pieces(tmp_path)
    content = first.read_bytes()
    first.write_bytes(
        {
            "cut": content[: len(content) // 2],
            "garbage": b"x" * 100,
            "empty": b"",
            "swapped": second.read_bytes(),
        }[damage]
    )
    with pytest.raises(StoreError, match="delete it and repeat the command") as error:
        run_experiment(tiny(), tmp_path)
    assert str(first) in str(error.value)
    first.unlink()
    assert counted(tmp_path) == (1, 1)
    assert pieces(tmp_path) == [first, second]


def test_a_full_disk_is_told_and_what_is_finished_is_kept(tmp_path: Path, monkeypatch) -> None:
    written = 0

    def fsync(descriptor: int) -> None:
        nonlocal written
        written += 1
        if written > 2:  # after the lock's note and the first piece
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(StoreError, match=r"could not be written: No space left.*is kept"):
        run_experiment(tiny(), tmp_path)
    assert len(pieces(tmp_path)) == 1
    assert not list(tmp_path.rglob(".*.parquet*")), "no half-written file is left"
    monkeypatch.undo()
    assert counted(tmp_path) == (1, 1)


def test_a_broken_piece_is_told_before_the_work_begins(tmp_path: Path) -> None:
    run_experiment(tiny(), tmp_path)
    pieces(tmp_path)[0].write_bytes(b"x")
    watcher = Count()
    with pytest.raises(StoreError, match="cannot be read"):
        run_experiment(tiny(runs=100), tmp_path, watcher=watcher)
    assert not hasattr(watcher, "jobs")


def test_what_a_killed_process_left_half_written_is_removed(tmp_path: Path) -> None:
    run_experiment(tiny(), tmp_path)
    draft = tmp_path / "pieces" / ".uniform-00000.parquet.123"
    draft.write_bytes(b"half")
    run_experiment(tiny(), tmp_path)
    assert not draft.exists()
    assert not (tmp_path / ".holder.json").exists()


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be used for results"):
        run_experiment(tiny(), tmp_path / "file")
