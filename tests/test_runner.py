"""The runner: nothing is lost, nothing stale is used, nobody else's folder is touched."""

import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from driftbandits import (
    Experiment,
    compare,
    planning,
    provenance,
    read_results,
    results,
    run_experiments,
    runner,
)
from driftbandits.check import InputError
from driftbandits.cluster import Failed
from driftbandits.console import Outlook
from driftbandits.experiment import experiment_from
from driftbandits.planning import Job, plan
from driftbandits.results import StoreError, finished
from driftbandits.runner import Watcher, run_experiment
from driftbandits.simulation import WIDEST
from driftbandits.work import AHEAD, WorkError, available_cores, work_off

TINY = """
title = "Tiny"
environment = "bernoulli(num_arms=3)"
policies = { chance = "uniform", "sliding window" = "swa" }
horizon = 300
runs = 6

[[claims]]
text = "A window beats chance."
lower = "sliding window"
higher = "chance"
"""


def tiny(**changes: object) -> Experiment:
    return experiment_from("tiny", {**tomllib.loads(TINY), **changes})


class Count(Watcher):
    """Remembers how many pieces were to do and how many were kept."""

    def begin(self, jobs, kept) -> None:
        self.jobs, self.kept = len(jobs), len(kept)


def counted(folder: Path, *experiments: Experiment) -> tuple[int, int]:
    watcher = Count()
    run_experiments(experiments or [tiny()], folder, watcher=watcher)
    return watcher.jobs, watcher.kept


def pieces(folder: Path) -> list[Path]:
    return sorted((folder / "pieces").glob("*.parquet"))


def test_a_tiny_experiment_from_end_to_end(tmp_path: Path) -> None:
    found = run_experiment(tiny(), tmp_path)
    table = pl.read_parquet(tmp_path / "tiny" / "results.parquet")
    assert table.columns == [
        "line", "policy", "environment", "swept", "run", "time",
        "regret", "realised_regret", "expected_reward", "reward", "pulls",
    ]  # fmt: skip
    assert table.height == 2 * 6 * 300
    last = table.filter(pl.col("time") == 300, pl.col("line") == "chance").sort("run")
    np.testing.assert_array_equal(last["regret"], found.values["chance"][:, -1])
    assert last["pulls"].list.sum().to_list() == [300] * 6
    (claim,) = json.loads((tmp_path / "tiny" / "claims.json").read_text())
    assert claim["verdict"] == "holds"
    assert claim["evidence"][0]["low"] > 0


def test_results_read_back_as_they_were(tmp_path: Path) -> None:
    written = run_experiment(tiny(), tmp_path)
    read = read_results(tmp_path / "tiny")
    assert read.experiment == written.experiment
    assert read.provenance == written.provenance
    np.testing.assert_array_equal(read.times, written.times)
    for label, values in written.values.items():
        np.testing.assert_array_equal(read.values[label], values)


def test_numbers_are_those_of_a_comparison(tmp_path: Path) -> None:
    found = run_experiment(tiny(), tmp_path).values["chance"]
    again = compare(["uniform"], "bernoulli(num_arms=3)", horizon=300, runs=6).values["uniform"]
    np.testing.assert_array_equal(found, again)


def test_provenance_is_in_every_piece(tmp_path: Path) -> None:
    run_experiment(tiny(), tmp_path)
    for path in pieces(tmp_path):
        about = json.loads(pl.read_parquet_metadata(path)["driftbandits"])
        names = {
            "piece",
            "experiments",
            "driftbandits",
            "revision",
            "packages",
            "seconds",
            "finished",
        }
        assert names <= {*about}
        assert about["experiments"] == ["tiny"]
        assert about["piece"]["seed"] == 0
        assert about["piece"]["policy"].startswith(("uniform", "swa(alpha=0.2, "))


def test_a_second_call_computes_nothing_and_changes_nothing(tmp_path: Path) -> None:
    assert counted(tmp_path) == (2, 0)
    before = (tmp_path / "tiny" / "results.parquet").read_bytes()
    assert counted(tmp_path) == (0, 2)
    assert (tmp_path / "tiny" / "results.parquet").read_bytes() == before


@pytest.mark.parametrize(
    ("changes", "to_do"),
    [
        ({"title": "Another title"}, 0),
        ({"runs": 3}, 0),
        ({"runs": WIDEST + 6}, 2),  # the second block of runs of each policy
        ({"horizon": 200}, 2),
        ({"seed": 1}, 2),
        ({"environment": "bernoulli(num_arms=4)"}, 2),
        ({"environment": "bernoulli(num_arms=3, max_consecutive=5)"}, 2),
        ({"policies": {"chance": "uniform", "sliding window": "swa(alpha=0.3)"}}, 1),
        ({"policies": {"chance": "uniform", "sliding window": "swa(alpha=0.2)"}}, 0),
    ],
)
def test_a_changed_experiment_computes_what_has_changed(tmp_path: Path, changes, to_do) -> None:
    run_experiment(tiny(), tmp_path)
    changed = tiny(**changes)
    assert counted(tmp_path, changed)[0] == to_do
    np.testing.assert_array_equal(
        read_results(tmp_path / "tiny").values["sliding window"],
        run_experiment(changed, tmp_path / "fresh").values["sliding window"],
    )


def test_code_is_told_by_what_it_does(tmp_path: Path, monkeypatch) -> None:
    code = tmp_path / "core.py"
    monkeypatch.setattr(provenance, "PACKAGE", tmp_path)
    monkeypatch.setattr(provenance, "SHAPE_NUMBERS", ["core.py"])

    def fingerprint(text: str) -> str:
        code.write_text(text)
        return provenance.code_fingerprint.__wrapped__()

    plain = fingerprint("def f(x):\n    return x + 1\n")
    assert fingerprint('"""A docstring."""\ndef f(x):\n    "One."\n    return x+1  # so\n') == plain
    assert fingerprint("def f(x):\n    return x + 2\n") != plain
    assert fingerprint("") != plain


def test_other_code_does_not_use_old_pieces(tmp_path: Path, monkeypatch) -> None:
    run_experiment(tiny(), tmp_path)
    monkeypatch.setattr(planning, "code_fingerprint", lambda: "other")
    assert counted(tmp_path) == (2, 0)


def test_experiments_share_pieces(tmp_path: Path) -> None:
    other = Experiment(
        "other", "Other", environments=tiny().environments, policies=(("x", "uniform"),),
        horizon=300, runs=6,
    )  # fmt: skip
    assert counted(tmp_path, tiny(), other) == (2, 0)
    assert [path.name for path in finished(tmp_path)] == ["other", "tiny"]


def test_policy_regret_is_against_the_oracle(tmp_path: Path) -> None:
    rotting = tiny(environment="rotting", measure="policy_regret")
    found = run_experiment(rotting, tmp_path)
    assert list(found.values) == ["chance", "sliding window"]
    assert found.final()["chance"].mean == pytest.approx(75, abs=10)
    assert found.table["policy_regret"].null_count() == 0


SLOW = TINY.replace("300", "30_000").replace("runs = 6", f"runs = {4 * WIDEST + 4}")


def launch(file: Path, out: Path) -> subprocess.Popen:
    command = [sys.executable, "-m", "driftbandits.cli", "run", str(file), "--out", str(out)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


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
    second = launch(uninterrupted / "tiny.toml", tmp_path)
    _, err = second.communicate()
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
    with results.held(tmp_path):
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
    with pytest.raises(StoreError, match="delete it and give the same command again") as error:
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


def test_two_experiments_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="named differently from each other"):
        run_experiments([tiny(), tiny(runs=2)], tmp_path)


def test_what_a_killed_process_left_half_written_is_removed(tmp_path: Path) -> None:
    run_experiment(tiny(), tmp_path)
    draft = tmp_path / "pieces" / ".uniform-00000.parquet.123"
    draft.write_bytes(b"half")
    run_experiment(tiny(), tmp_path)
    assert not draft.exists()
    assert not (tmp_path / ".holder.json").exists()


def test_the_outlook_knows_that_policies_differ_in_cost() -> None:
    """Seconds per step are taken from the signs of life, and policies not yet seen from others."""
    tasks = {
        name: plan(tiny(policies={name: name}, runs=WIDEST, claims=[]))[0]
        for name in ("uniform", "swa")
    }
    jobs = [Job(task.pieces[0], task.width) for task in tasks.values()]
    outlook = Outlook(jobs)
    assert outlook.seconds_left() is None
    assert outlook.share() == 0
    clock = iter([0.0, 1.0, 2.0, 12.0])
    outlook.clock = lambda: next(clock)
    for job, steps in [(jobs[0], 100), (jobs[0], 100), (jobs[1], 100), (jobs[1], 100)]:
        outlook.moved(job, steps)  # 0.01 and 0.1 seconds per step
    total = 300 * sum(task.width for task in tasks.values()) // 2
    left = (total - 200) * (0.01 + 0.1)
    assert outlook.seconds_left() == pytest.approx(left / available_cores())
    assert outlook.share() == pytest.approx(200 / total)
    assert Outlook([], jobs).share() == 1


def test_the_outlook_takes_a_cluster_at_its_word() -> None:
    """One sign per piece, with its seconds; as many pieces at once as there are CPUs."""
    (task,) = plan(tiny(policies={"chance": "uniform"}, runs=WIDEST * 10, claims=[]))
    jobs = [Job(piece, task.width) for piece in task.pieces]
    outlook = Outlook(jobs)
    outlook.at_once = 4
    outlook.moved(jobs[0], jobs[0].steps, seconds=2.0)
    outlook.moved(jobs[1], jobs[1].steps, seconds=4.0)
    assert outlook.share() == pytest.approx(0.2)
    assert outlook.seconds_left() == pytest.approx(8 * 3.0 / 4)
    outlook.failed(jobs[2])
    assert outlook.seconds_left() == pytest.approx(7 * 3.0 / 4)


def test_a_few_jobs_are_handed_out_at_a_time() -> None:
    """So that a wait does not look through all that are still to come."""
    drawn = 0

    def jobs() -> Iterator[Callable[[object], int]]:
        nonlocal drawn
        for number in range(500):
            drawn += 1
            yield lambda _, number=number: number

    done = 0
    for index, number in work_off(jobs(), cores=3):
        assert index == number
        done += 1
        assert drawn - done < AHEAD * 3
    assert done == drawn == 500


def test_failed_pieces_with_one_cause_are_told_together() -> None:
    (task,) = plan(tiny(policies={"chance": "uniform"}, runs=WIDEST * 30, claims=[]))
    failures = runner.Failures()
    failures.tell(30)
    for piece in reversed(task.pieces[1:]):
        failures.add(piece, Failed("node a", "no disk"))
    with pytest.raises(WorkError) as error:
        failures.tell(30)
    first, second, last = str(error.value).splitlines()
    assert first == "29 of 30 pieces could not be computed:"
    assert second.startswith(
        f"  uniform in bernoulli(num_arms=3), runs from {WIDEST}, {2 * WIDEST}, "
    )
    assert second.endswith(f", {20 * WIDEST} and 9 more: node a: no disk")
    assert last.endswith("the same command tries again only these")


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be used for results"):
        run_experiment(tiny(), tmp_path / "file")
