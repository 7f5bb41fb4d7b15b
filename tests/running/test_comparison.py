"""A comparison in memory is one on disk, and builds every policy and environment once."""

import importlib
import pickle
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from driftbandits import (
    InputError,
    compare,
    compare_with,
    environments,
    external_policy,
    policies,
    read_experiment,
    read_results,
)
from driftbandits.running.drawings import drawing_results
from driftbandits.running.store import finished, table_on_disk
from driftbandits.running.watcher import Watcher

SMALL = {"environment": "bernoulli(num_arms=3)", "horizon": 60, "runs": 105}


class RecordingWatcher(Watcher):
    """Remembers every report but the times."""

    def __init__(self) -> None:
        self.reports: list[object] = []

    def begin(self, jobs, kept) -> None:
        self.reports.append(("begin", jobs, kept))

    def cores_used(self, cores) -> None:
        self.reports.append(("cores", cores))

    def advanced(self, job, steps, seconds=None) -> None:  # noqa: ARG002
        self.reports.append(("advanced", job, steps))

    def line_done(self, experiment, line, seconds) -> None:  # noqa: ARG002
        self.reports.append(("line", experiment, line))

    def experiment_done(self, results) -> None:
        self.reports.append(("experiment", results.experiment))


def without_code(report: object) -> str:
    """What is not kept has another digest of its code."""
    return re.sub(r"code='\w+'", "", repr(report))


@pytest.mark.parametrize("measure", ["regret", "policy_regret"])
def test_in_memory_it_gives_what_a_folder_keeps(tmp_path: Path, measure: str) -> None:
    in_memory, on_disk = RecordingWatcher(), RecordingWatcher()
    kept = compare(["uniform", "swa"], **SMALL, measure=measure, cores=1, watcher=in_memory)
    written = compare(
        ["uniform", "swa"], **SMALL, measure=measure, cores=1, watcher=on_disk, out=tmp_path
    )
    assert sorted(map(without_code, in_memory.reports)) == sorted(
        map(without_code, on_disk.reports)
    )
    assert kept.lines == written.lines
    np.testing.assert_array_equal(kept.times, written.times)
    for label, values in written.values.items():
        np.testing.assert_array_equal(kept.values[label], values)
    assert kept.table.equals(written.table)
    assert kept.table is kept.table, "it is made once"
    assert kept.provenance.keys() == written.provenance.keys()
    names = [[name[:-16] for name in each.provenance["pieces"]] for each in (kept, written)]
    assert names[0] == names[1]


def test_results_can_be_pickled(tmp_path: Path) -> None:
    given = {**SMALL, "runs": 3, "cores": 1}
    kept, written = compare(["uniform"], **given), compare(["uniform"], **given, out=tmp_path)
    first_arm = external_policy(object, pull=lambda *_: 0, update=lambda *_: None)
    (folder,) = finished(tmp_path)
    for results in [
        kept,
        written,
        read_results(folder),
        table_on_disk(written, folder),
        compare_with(kept, {"first arm": first_arm}),
        drawing_results(read_experiment("paper/theorem_1")),
    ]:
        again = pickle.loads(pickle.dumps(results))
        assert again.table.equals(results.table)
        assert again.final() == results.final()


def test_policies_and_environments_are_built_once(monkeypatch) -> None:
    built = []

    def counted(table: dict, name: str) -> None:
        factory = table[name]

        def build(*args: object, **settings: object) -> object:
            built.append(name)
            return factory(*args, **settings)

        build.__wrapped__ = factory  # its settings
        build.__module__ = factory.__module__
        monkeypatch.setitem(table, name, build)

    counted(policies.POLICIES, "ucb")
    counted(policies.POLICIES, "swa")
    counted(environments.ENVIRONMENTS, "flipping")
    compare(["ucb", "swa(alpha=0.21)"], "flipping(num_arms=4)", horizon=31, runs=105)
    assert sorted(built) == ["flipping", "swa", "ucb"]


def test_a_single_policy_needs_no_list() -> None:
    assert list(compare("uniform", "bernoulli", horizon=9, runs=2).final()) == ["uniform"]


def test_a_policy_of_ones_own_has_results_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are named by the code of its file, so that another version of it is computed anew."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # which a second file would be taken for
    file = tmp_path / "own_policies.py"
    found = []
    for scale in (0.3, 2.0):
        file.write_text(
            "from driftbandits.policies.ucb import ucb\n"
            f"def own(spec):\n    return ucb(spec, scale={scale})\n"
        )
        module = importlib.reload(importlib.import_module("own_policies"))
        monkeypatch.setitem(policies.POLICIES, "own", module.own)
        found.append(compare(["own"], **SMALL, out=tmp_path / "out").final()["own"].mean)
    scales = [compare([f"ucb(scale={scale})"], **SMALL).final() for scale in ("0.3", "2.0")]
    assert found == [next(iter(final.values())).mean for final in scales]
    monkeypatch.delitem(sys.modules, "own_policies")


def test_a_policy_without_source_is_refused_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: dict[str, Any] = {"__name__": "nowhere"}
    exec("from driftbandits.policies.ucb import ucb\ndef own(spec): return ucb(spec)", names)
    monkeypatch.setitem(policies.POLICIES, "own", names["own"])
    assert compare(["own"], **SMALL).final()["own"].mean > 0
    with pytest.raises(InputError, match=r"own must be defined in a file or a notebook's cell"):
        compare(["own"], **SMALL, out=tmp_path)
