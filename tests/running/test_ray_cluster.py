"""A real Ray cluster of two nodes: the same numbers, whatever is lost on the way."""

import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import ray
from ray.cluster_utils import Cluster

from driftbandits import Experiment
from driftbandits.experiments.files import experiment_from
from driftbandits.running import planning, ray_cluster
from driftbandits.running.compute import Computed, Failed
from driftbandits.running.piece import Piece
from driftbandits.running.planning import plan
from driftbandits.running.runner import run_experiment, run_experiments
from driftbandits.running.watcher import Watcher
from driftbandits.simulation.engine import WIDEST
from driftbandits.simulation.threads import AHEAD, WorkError
from tests.cli.test_commands import run
from tests.conftest import CACHE
from tests.running.test_interrupted import wait_for
from tests.running.test_runner import TINY, pieces

# Ray leaves sockets and files to the garbage collector; JAX warns of Ray's forks.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:os.fork"),
]

NODE = {"num_cpus": 1, "object_store_memory": 80 * 2**20}
CLIENT_PORT = 23_000 + os.getpid() % 1000
LONG = TINY.replace("300", "3000").replace("runs = 6", f"runs = {4 * WIDEST + 4}")  # 10 pieces


def experiment(text: str = LONG, **changes: object) -> Experiment:
    return experiment_from("tiny", {**tomllib.loads(text), **changes})


@pytest.fixture(scope="module")
def nodes() -> Iterator[Cluster]:
    """Two nodes of one CPU each; this process is a driver, connected to the first one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(CACHE / "ray"))
        patch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
        patch.delenv("DRIFTBANDITS_CACHE", raising=False)
        for name, value in ray_cluster.QUIET.items():
            patch.setenv(name, value)
        head = {**NODE, "include_dashboard": False, "ray_client_server_port": CLIENT_PORT}
        two = Cluster(initialize_head=True, head_node_args=head)
        two.add_node(**NODE)
        patch.setenv("RAY_ADDRESS", two.address)
        with ray_cluster.connected("ray"):
            yield two
        two.shutdown()


def wait_for_cpus(number: int) -> None:
    """Ray takes a moment to notice that a node is gone."""
    end = time.monotonic() + 60
    while ray.cluster_resources().get("CPU") != number:
        assert time.monotonic() < end, ray.cluster_resources()
        time.sleep(0.1)


@pytest.fixture(scope="module")
def local(tmp_path_factory) -> Path:
    """The long experiment, computed in this process."""
    folder = tmp_path_factory.mktemp("local")
    run_experiment(experiment(), folder)
    return folder


def assert_same(ours: Path, theirs: Path) -> None:
    """Bit for bit: every piece's table, and the file of results as a whole."""
    assert [path.name for path in pieces(ours)] == [path.name for path in pieces(theirs)]
    for mine, other in zip(pieces(ours), pieces(theirs), strict=True):
        assert pl.read_parquet(mine).equals(pl.read_parquet(other))
    name = "tiny/results.parquet"
    assert (ours / name).read_bytes() == (theirs / name).read_bytes()


def test_numbers_are_those_of_one_machine(nodes: Cluster, tmp_path: Path) -> None:
    policies = {"chance": "uniform", "ours": "recurrent(energy=0.2)"}
    world = "bernoulli(max_consecutive=3)"
    asked = experiment(TINY, policies=policies, environment=world, runs=4, claims=[])
    for folder, on in ((tmp_path / "ray", "ray"), (tmp_path / "here", None)):
        run_experiment(asked, folder, on=on)
    assert len(pieces(tmp_path / "ray")) == 2
    assert_same(tmp_path / "ray", tmp_path / "here")


class RecordingWatcher(Watcher):
    """Records what it is called with, and does something at the first finished piece."""

    def __init__(self, at_first=lambda: None) -> None:
        self.finished: list[tuple[int, float]] = []
        self.cores: list[int] = []
        self.failures: list[Failed] = []
        self._at_first = at_first

    def begin(self, jobs, kept) -> None:
        self.jobs, self.kept = len(jobs), len(kept)

    def cores_used(self, cores: int) -> None:
        self.cores.append(cores)

    def advanced(self, job, steps, seconds=None) -> None:  # noqa: ARG002
        self.finished.append((steps, seconds))
        if len(self.finished) == 1:
            self._at_first()

    def failed(self, job, why) -> None:  # noqa: ARG002
        self.failures.append(why)


def test_a_node_is_killed_in_the_middle(nodes: Cluster, local: Path, tmp_path: Path) -> None:
    (second,) = nodes.worker_nodes
    watcher = RecordingWatcher(lambda: nodes.remove_node(second, allow_graceful=False))
    try:
        run_experiment(experiment(), tmp_path, on="ray", watcher=watcher)
    finally:
        nodes.add_node(**NODE)
        wait_for_cpus(2)
    assert_same(tmp_path, local)
    assert watcher.cores[0] == 2
    assert [steps for steps, _ in watcher.finished] == [WIDEST * 3000] * 10
    assert all(seconds > 0 for _, seconds in watcher.finished)
    assert not watcher.failures


def launch(folder: Path, on: str, **environment: str) -> subprocess.Popen:
    (folder / "tiny.toml").write_text(LONG)
    command = ["-m", "driftbandits", "run", f"{folder}/tiny.toml", "--out", f"{folder}/out"]
    return subprocess.Popen(
        [sys.executable, *command, "--on", on],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


def test_the_driver_is_killed_and_started_again(
    nodes: Cluster, local: Path, tmp_path: Path
) -> None:
    """The first time on the cluster at hand, the second time through the Ray Client."""
    out = tmp_path / "out"
    first = launch(tmp_path, "ray")
    wait_for(lambda: len(pieces(out)) >= 2, first)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    kept = {path: path.stat().st_mtime_ns for path in pieces(out)}
    assert 2 <= len(kept) < 10
    second = launch(tmp_path, f"ray://127.0.0.1:{CLIENT_PORT}")
    output, err = second.communicate()
    assert second.returncode == 0, err
    said = err.splitlines()
    assert said[0] == f"{len(kept)} finished pieces found, {10 - len(kept)} to do"
    assert all(" of one core)" in line or " holds: " in line for line in said[1:]), err
    assert "report:" in output
    assert {path: path.stat().st_mtime_ns for path in kept} == kept, "computed again"
    assert_same(out, local)


def test_a_cluster_of_our_own_is_quiet(local: Path, tmp_path: Path) -> None:
    process = launch(tmp_path, "ray", RAY_ADDRESS="local")
    output, err = process.communicate()
    assert process.returncode == 0, err
    assert all(" of one core)" in line or " holds: " in line for line in err.splitlines()), err
    assert output.startswith("Tiny: regret")
    assert_same(tmp_path / "out", local)


def test_a_piece_that_kills_its_workers_is_named_and_the_rest_goes_on(
    nodes: Cluster, tmp_path: Path, monkeypatch, capsys
) -> None:
    def deadly(fields):
        if fields[0].startswith("swa") and fields[5] == WIDEST:
            os.kill(os.getpid(), signal.SIGKILL)
        return compute(fields)

    compute = ray_cluster.compute_sent
    small = experiment(TINY, runs=2 * WIDEST + 2, claims=[])
    other = Experiment(
        "other", "Other", environments=small.environments, policies=(("x", "uniform"),),
        horizon=300, runs=2 * WIDEST + 2,
    )  # fmt: skip
    with monkeypatch.context() as patch:
        patch.setattr(ray_cluster, "compute_sent", deadly)
        patch.setattr(ray_cluster, "RETRIES", 1)
        watcher = RecordingWatcher()
        with pytest.raises(WorkError) as error:
            run_experiments([small, other], tmp_path, on="ray", watcher=watcher)
    lines = str(error.value).splitlines()
    assert lines[0] == "1 of 6 pieces could not be computed:"
    assert lines[1].startswith("  swa(alpha=0.2, ")
    assert f"in bernoulli(num_arms=3), runs from {WIDEST}: a node" in lines[1]
    assert "WorkerCrashedError" in lines[1]
    assert lines[2] == "what is finished is kept; the same command tries again only these"
    assert len(watcher.failures) == 1
    assert len(pieces(tmp_path)) == 5
    assert (tmp_path / "other" / "results.parquet").exists(), "complete without that piece"
    assert not (tmp_path / "tiny").exists()
    assert "raylet" not in capsys.readouterr().out, "Ray's own account of it is not printed"
    again = RecordingWatcher()
    run_experiments([small, other], tmp_path, on="ray", watcher=again)
    assert (again.jobs, again.kept) == (1, 5)


def piece(**changes: object) -> Piece:
    (line,) = plan(experiment(TINY, policies={"chance": "uniform"}, claims=[]))
    return line.pieces[0]._replace(**changes)


def test_what_a_worker_refuses_comes_home_with_its_node(nodes: Cluster) -> None:
    asked = [piece(), piece(policy="unifrom")]
    outcomes = dict(ray_cluster.send_pieces(asked))
    assert isinstance(outcomes[0], Computed)
    assert outcomes[0].provenance["packages"]["numpy"] == np.__version__
    assert outcomes[1].node.startswith("node ")
    assert outcomes[1].reason.startswith("InputError: policy must be one of tracker")


def test_a_node_with_other_code_is_refused(nodes: Cluster, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(planning, "code_fingerprint", lambda *_: "another")
    with pytest.raises(WorkError, match=r"^node .* has another version of driftbandits or JAX"):
        run_experiment(experiment(TINY), tmp_path, on="ray")
    assert not pieces(tmp_path)


def test_a_node_without_our_code_is_told(nodes: Cluster, tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "only_here.py").write_text("def compute(fields): return fields")
    monkeypatch.syspath_prepend(tmp_path)
    from only_here import compute

    with pytest.raises(WorkError, match=r"^node [\d.]+ cannot load driftbandits: .*only_here"):
        list(ray_cluster.send_pieces([piece()], compute=compute))


@pytest.mark.parametrize(("limit", "most", "count"), [(None, AHEAD * 2, 1000), (1, 1, 30)])
def test_a_few_pieces_are_on_their_way_at_a_time(nodes: Cluster, limit, most, count) -> None:
    """Whatever their number: the driver draws from the pieces as there is room."""
    drawn, done = 0, set()

    def drawn_from() -> Iterator[Piece]:
        nonlocal drawn
        for first_run in range(count):
            drawn += 1
            yield piece(first_run=first_run)

    def echo(fields):
        return Failed("node", str(fields[5]))

    for index, outcome in ray_cluster.send_pieces(drawn_from(), limit, compute=echo):
        assert outcome.reason == str(index)
        done.add(index)
        assert drawn - len(done) < most
    assert len(done) == drawn == count


def test_a_connection_that_is_open_stays_open(nodes: Cluster) -> None:
    with ray_cluster.connected("ray"):
        pass
    assert ray.is_initialized()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--on", "spark"], 2, "on must be ray, or ray://HOST:PORT as in ray://head:10001, got"),
        (["--on", "ray://head"], 2, "on must be ray, or ray://HOST:PORT"),
        (["--jobs", "0"], 2, "jobs must be a whole number of at least 1, got 0"),
    ],
)
def test_mistakes_are_one_line(monkeypatch, capsys, tmp_path, arguments, code, message) -> None:
    file = tmp_path / "tiny.toml"
    file.write_text(TINY)
    assert run(monkeypatch, "run", str(file), "--out", f"{tmp_path}/out", *arguments) == code
    err = capsys.readouterr().err
    assert err.startswith(f"error: {message}")
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_the_command_reports_what_is_complete_and_ends_with_code_1(
    monkeypatch, capsys, tmp_path: Path
) -> None:
    """As if Ray had given up on each piece of one experiment."""

    def give_up(asked, on, cores, watcher):
        for job in asked:
            yield job, Failed("node b", "WorkerCrashedError: died")

    monkeypatch.setattr(ray_cluster, "compute_on_ray", give_up)
    out, figures = str(tmp_path / "out"), ["--figure", "theorem_1", "--figure", "1b"]
    assert run(monkeypatch, "reproduce", "--quick", "--out", out, "--on", "ray", *figures) == 1
    shown = capsys.readouterr()
    assert f"report: {out}/report.html" in shown.out
    assert (tmp_path / "out" / "theorem_1" / "figure.svg").exists()
    assert "failed: recurrent(" in shown.err
    assert "error: " in shown.err
    assert shown.err.endswith("the same command tries again only these\n")
    assert "Traceback" not in shown.err


@pytest.mark.parametrize(("on", "needed"), [("ray", "ray"), ("ray://head:10001", "grpc")])
def test_without_ray_it_says_what_to_install(monkeypatch, tmp_path: Path, on, needed) -> None:
    monkeypatch.setitem(sys.modules, needed, None)  # it cannot be imported
    message = f"on={on} needs the extra \"ray\": pip install 'driftbandits[ray]'"
    with pytest.raises(ModuleNotFoundError, match=f"^{re.escape(message)}$"):
        run_experiment(experiment(TINY), tmp_path, on=on)


@pytest.mark.parametrize(
    ("on", "address"), [("ray://127.0.0.1:1", ""), ("ray", "127.0.0.1:1"), ("ray", "nowhere")]
)
def test_an_address_where_nobody_is(monkeypatch, on: str, address: str) -> None:
    monkeypatch.setenv("RAY_ADDRESS", address)
    with pytest.raises(WorkError, match=r"^the Ray cluster at .* cannot be joined \(.+\); `ray st"):
        ray_cluster.join(on, None)
