"""The runner: nothing is lost, nothing stale is used, nobody else's folder is touched."""

import json
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from driftbandits import (
    Experiment,
    compare,
    read_results,
    run_experiments,
)
from driftbandits.check import InputError
from driftbandits.experiments.files import experiment_from
from driftbandits.running import planning, provenance, runner
from driftbandits.running.compute import Failed
from driftbandits.running.planning import plan
from driftbandits.running.progress import Failures
from driftbandits.running.runner import run_experiment
from driftbandits.running.store import finished
from driftbandits.running.watcher import Watcher
from driftbandits.simulation.engine import WIDEST
from driftbandits.simulation.threads import AHEAD, WorkError, call_on_threads

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


def test_how_many_pieces_are_read_together_changes_nothing(tmp_path: Path, monkeypatch) -> None:
    many = tiny(runs=3 * WIDEST + 5, horizon=10)
    together = run_experiment(many, tmp_path)
    monkeypatch.setattr(runner, "TOGETHER", 3)
    apart = run_experiment(many, tmp_path)
    assert apart.table.equals(together.table)
    assert apart.table["run"].n_unique() == many.runs


def test_a_tiny_experiment_from_end_to_end(tmp_path: Path) -> None:
    found = run_experiment(tiny(runs=20), tmp_path)
    table = pl.read_parquet(tmp_path / "tiny" / "results.parquet")
    assert table.columns == [
        "line", "policy", "environment", "swept", "run", "time",
        "regret", "realised_regret", "expected_reward", "reward", "best_pulls", "changes",
        "pulls",
    ]  # fmt: skip
    assert table.height == 2 * 20 * 300
    last = table.filter(pl.col("time") == 300, pl.col("line") == "chance").sort("run")
    np.testing.assert_array_equal(last["regret"], found.values["chance"][:, -1])
    assert last["pulls"].list.sum().to_list() == [300] * 20
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

    def fingerprint(text: str) -> str:
        code.write_text(text)
        return provenance.fingerprint_of.__wrapped__("core")

    plain = fingerprint("def f(x):\n    return x + 1\n")
    assert fingerprint('"""A docstring."""\ndef f(x):\n    "One."\n    return x+1  # so\n') == plain
    assert fingerprint("def f(x):\n    return x + 2\n") != plain
    assert fingerprint("") != plain


def test_a_piece_is_shaped_by_what_it_is_made_of() -> None:
    needed = provenance.imported_by(
        ["simulation.engine", "policies.eff_fewa", "environments.wheel"]
    )
    engine = {"core", "numerics.random_keys", "simulation.delays", "simulation.traces"}
    assert engine | {"policies.fewa", "numerics.arms"} <= needed
    assert not needed & {"policies.ucb", "environments.rotting", "policies", "numerics.beta"}
    package = Path(provenance.__file__).parents[1] / "policies" / "tracker"
    of_tracker = {f"policies.tracker.{path.stem}" for path in package.glob("[!_]*.py")}
    needed |= provenance.imported_by(["policies.tracker.policy"])
    assert of_tracker <= needed
    no_numbers = {"check", "choice", "catalogue", "simulation.threads", "simulation.devices"}
    assert not needed & no_numbers
    assert all(provenance.path_of(name).exists() for name in needed | no_numbers)


def test_each_module_is_parsed_once(monkeypatch) -> None:
    provenance.parsed.cache_clear()
    provenance.fingerprint_of.cache_clear()
    parsed, parse = [], provenance.ast.parse

    def counted(text: str, *args: object, **more: object) -> object:
        parsed.append(text)
        return parse(text, *args, **more)

    monkeypatch.setattr(provenance.ast, "parse", counted)
    for policy in ("ucb", "thompson", "ucb(scale=2)"):
        provenance.code_fingerprint(policy, "bernoulli")
    modules = [text for text in parsed if text.startswith('"""')]  # not "ucb(scale=2)"
    assert len(modules) == len(set(modules)) > 5


def test_settings_do_not_change_the_code() -> None:
    codes = {
        provenance.code_fingerprint(policy, world)
        for policy in ("ucb", "thompson")
        for world in ("bernoulli", "sinusoidal", "bernoulli(max_consecutive=3)")
    }
    assert len(codes) == 6
    settings = provenance.code_fingerprint("ucb(scale=2)", "bernoulli(num_arms=3)")
    assert settings == provenance.code_fingerprint("ucb", "bernoulli")


def test_other_code_does_not_use_old_pieces(tmp_path: Path, monkeypatch) -> None:
    run_experiment(tiny(), tmp_path)
    monkeypatch.setattr(planning, "code_fingerprint", lambda *_: "other")
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


def test_two_experiments_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="named differently from each other"):
        run_experiments([tiny(), tiny(runs=2)], tmp_path)


def test_a_few_calls_are_submitted_at_a_time() -> None:
    """So that a wait does not look through all that are still to come."""
    drawn = 0

    def calls() -> Iterator[Callable[[object], int]]:
        nonlocal drawn
        for number in range(500):
            drawn += 1
            yield lambda _, number=number: number

    done = 0
    for index, number in call_on_threads(calls(), cores=3):
        assert index == number
        done += 1
        assert drawn - done < AHEAD * 3
    assert done == drawn == 500


def test_failed_pieces_with_one_cause_are_told_together() -> None:
    (line,) = plan(tiny(policies={"chance": "uniform"}, runs=WIDEST * 30, claims=[]))
    failures = Failures(30)
    failures.raise_if_any()
    for piece in reversed(line.pieces[1:]):
        failures.add(piece, Failed("node a", "no disk"))
    with pytest.raises(WorkError) as error:
        failures.raise_if_any()
    first, second, last = str(error.value).splitlines()
    assert first == "29 of 30 pieces could not be computed:"
    assert second.startswith(
        f"  uniform in bernoulli(num_arms=3), runs from {WIDEST}, {2 * WIDEST}, "
    )
    assert second.endswith(f", {20 * WIDEST} and 9 more: node a: no disk")
    assert last.endswith("the same command tries again only these")
