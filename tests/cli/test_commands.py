"""The command line, as a person or a script meets it."""

import inspect
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from rich.console import Console

from driftbandits import ENVIRONMENTS, MEASURES, POLICIES, __version__, compare
from driftbandits.choice import settings_of
from driftbandits.cli import console, main
from driftbandits.experiments.effects import FAILS, UNDECIDED
from driftbandits.experiments.files import shipped
from driftbandits.report.style import number
from tests.running.test_runner import TINY

SMALL = ["--horizon", "60", "--runs", "3"]
COMMAND = [sys.executable, "-m", "driftbandits"]
DEFAULTS = {name: p.default for name, p in inspect.signature(compare).parameters.items()}


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Runs the command line in this process; returns its exit code."""
    monkeypatch.setattr(sys, "argv", ["driftbandits", *arguments])
    try:
        main.main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def own_cache(folder: Path) -> dict[str, str]:
    """An environment in which compiled programs are kept in a folder, as for a new user."""
    theirs = ("JAX_", "DRIFTBANDITS_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(theirs)}
    return kept | {"XDG_CACHE_HOME": str(folder)}


@pytest.mark.parametrize("module", ["driftbandits", "driftbandits.cli"])
def test_a_module_that_is_the_command_line(module: str) -> None:
    command = [sys.executable, "-m", module, "--version"]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert out.endswith(f"{__version__}\n")


def test_help_does_not_import_jax() -> None:
    code = (
        "import sys; sys.argv = ['driftbandits', 'compare', '--help']\n"
        "from driftbandits.cli.main import main\n"
        "main()\n"
        "assert not {'jax', 'numpy', 'matplotlib'} & set(sys.modules), 'help is slow'"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for measure in MEASURES:
        assert measure in out.stdout, "the help explains every measure"


def test_list_shows_every_name_and_setting(monkeypatch, capsys) -> None:
    assert run(monkeypatch, "list") == 0
    out = capsys.readouterr().out
    for table in (POLICIES, ENVIRONMENTS):
        for name, factory in table.items():
            assert f"  {name}: " in out
            assert all(f"{setting}=" in out for setting in settings_of(factory))


def test_list_as_json(monkeypatch, capsys) -> None:
    assert run(monkeypatch, "list", "policies", "--json") == 0
    listing = json.loads(capsys.readouterr().out)
    assert list(listing) == ["policies"]
    assert listing["policies"]["recurrent"]["settings"]["energy"] == 0.1


def test_compare_as_json_is_what_python_says(monkeypatch, capsys) -> None:
    policies = ["uniform", "swa(alpha=0.1)"]
    arguments = [x for policy in policies for x in ("--policy", policy)]
    assert run(monkeypatch, "compare", "-e", "bernoulli", *arguments, *SMALL, "--json") == 0
    out = json.loads(capsys.readouterr().out)
    assert {k: v for k, v in out.items() if k != "policies"} == {
        "environment": "bernoulli",
        "horizon": 60,
        "runs": 3,
        "seed": 0,
        "measure": "regret",
    }
    finals = compare(policies, "bernoulli", horizon=60, runs=3).final()
    assert set(out["policies"]) == set(policies)
    for policy, final in finals.items():
        assert out["policies"][policy] == pytest.approx(final.as_json())
        assert final.low <= final.mean <= final.high
        assert final.median <= final.percentile_95 <= final.worst


def test_compare_without_names_takes_the_defaults(monkeypatch, capsys) -> None:
    assert run(monkeypatch, "compare", "--help") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert f"[default: {', '.join(DEFAULTS['policies'])}]" in shown
    assert f"[default: {DEFAULTS['environment']}]" in shown
    assert run(monkeypatch, "compare", *SMALL, "--json") == 0
    out = json.loads(capsys.readouterr().out)
    assert out["environment"] == DEFAULTS["environment"]
    assert set(out["policies"]) == set(DEFAULTS["policies"])
    finals = compare(horizon=60, runs=3).final()
    for policy, final in finals.items():
        assert out["policies"][policy] == pytest.approx(final.as_json())


def test_the_second_compare_traces_and_compiles_nothing(tmp_path: Path) -> None:
    code = (
        "import sys, jax.monitoring\n"
        "jax.monitoring.register_event_duration_secs_listener(\n"
        "    lambda event, _, **named: print(event, named, file=sys.stderr))\n"
        "from driftbandits.cli.main import main; main()"
    )

    def one_more() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", code, "compare", *SMALL]
        told = {"env": own_cache(tmp_path), "capture_output": True, "text": True, "check": True}
        return subprocess.run(command, **told)

    first = one_more()
    assert "backend_compile_duration" in first.stderr
    assert len(list(tmp_path.rglob("*.programs"))) == len(DEFAULTS["policies"])
    second = one_more()
    assert second.stderr == ""
    assert second.stdout == first.stdout


def test_compare_ranks_best_first_and_draws(monkeypatch, capsys, tmp_path: Path) -> None:
    figure = tmp_path / "new" / "curves.png"
    policies = ["-p", "uniform", "-p", "oracle"]
    code = run(monkeypatch, "compare", "-e", "rotting", *policies, *SMALL, "--plot", str(figure))
    out = capsys.readouterr()
    assert code == 0
    assert out.out.index("oracle") < out.out.index("uniform")
    assert f"figure: {figure}" in out.out
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert out.err == "", "quiet where there is no terminal"


def test_the_ranking_shows_how_bad_it_gets(monkeypatch, capsys) -> None:
    policies = ["-p", "uniform", "-p", "discounted_thompson(discount=0.99)"]
    arguments = ["compare", "-e", "rotting", *policies, *SMALL, "--measure", "best_share"]
    assert run(monkeypatch, *arguments, "--json") == 0
    finals = json.loads(capsys.readouterr().out)["policies"]
    for width in (80, 120):
        monkeypatch.setattr(console, "standard_output", partial(Console, width=width))
        assert run(monkeypatch, *arguments) == 0
        lines = capsys.readouterr().out.splitlines()
        assert max(map(len, lines)) <= width
        rows = [[cell.strip() for cell in line.split("│")] for line in lines]
        for row, final in zip(
            [row for row in rows if row[1:2] > ["0"]], finals.values(), strict=True
        ):
            shown = [number(final[name]) for name in ("mean", "percentile_95", "worst")]
            assert [row[3], *row[5:7]] == shown
            assert final["worst"] <= final["percentile_95"] <= final["median"], "more is better"


def test_a_mean_that_hangs_on_a_run_is_told_below_the_ranking(capsys) -> None:
    results = compare(["uniform", "swa"], "bernoulli", horizon=60, runs=20)
    console.print_finals(results)
    assert "of the mean" not in capsys.readouterr().out
    values = {**results.values, "swa": results.values["swa"].copy()}
    values["swa"][5] += 1000
    console.print_finals(replace(results, values=values))
    told = capsys.readouterr().out.splitlines()[-1]
    assert re.fullmatch(r"swa: 1 of 20 runs makes \d\d% of the mean, median .* \(.* to .*\)", told)


def test_verdicts_say_what_would_decide_and_both_where_mean_and_median_disagree(capsys) -> None:
    entry = {"what": "b - a", "mean": 1.0, "low": -1.0, "high": 3.0, "verdict": UNDECIDED}
    median = {"median": -2.0, "low": -3.0, "high": -1.0, "verdict": FAILS}
    claim = {
        "experiment": "x",
        "text": "So.",
        "verdict": UNDECIDED,
        "by_median": FAILS,
        "why": "about 60 runs would decide it, if the estimate stays",
        "evidence": [{**entry, "few_runs": "1 of 20 runs makes 60% of it", "median": median}],
    }
    console.print_verdicts([claim])
    cells = [line.split("│")[1:-1] for line in capsys.readouterr().out.splitlines() if "│" in line]
    verdict, by = (" ".join(" ".join(row[k] for row in cells).split()) for k in (2, 3))
    assert verdict == "undecided; by the median: does not hold"
    assert by == (
        "b - a: 1 (-1 to 3); 1 of 20 runs makes 60% of it, median -2 (-3 to -1); "
        "about 60 runs would decide it, if the estimate stays"
    )


def test_policy_regret_brings_the_oracle_along(monkeypatch, capsys) -> None:
    arguments = ["-e", "rotting", "-p", "uniform", *SMALL, "--measure", "policy_regret", "--json"]
    assert run(monkeypatch, "compare", *arguments) == 0
    out = json.loads(capsys.readouterr().out)
    assert list(out["policies"]) == ["uniform"]
    assert out["policies"]["uniform"]["mean"] == pytest.approx(15, abs=4)


def test_one_run_has_no_interval(monkeypatch, capsys) -> None:
    arguments = ["compare", "-e", "rotting", "-p", "uniform", "-T", "20", "--runs", "1"]
    assert run(monkeypatch, *arguments, "--json") == 0
    assert json.loads(capsys.readouterr().out)["policies"]["uniform"]["low"] is None
    assert run(monkeypatch, *arguments) == 0
    assert "one run" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-e", "sinusoidl", "-p", "swa"], "environment must be one of"),
        (["-e", "sinusoidl", "-p", "swa"], "did you mean 'sinusoidal'?"),
        (["-e", "sinusoidl", "-p", "swa"], "more (see `driftbandits list environments`), got"),
        (["-e", "rotting", "-p", "tompson"], "more (see `driftbandits list policies`), got"),
        (["-e", "shocks(x=1)", "-p", "swa"], "more (see `driftbandits explain shocks`), got"),
        (["-e", "rotting", "-p", "tompson"], "did you mean 'thompson'?"),
        (["-e", "rotting", "-p", "swa(window=3)"], "a setting of swa must be one of alpha"),
        (["-e", "rotting", "-p", "swa(alpha=-1)"], "alpha must be a positive number, got -1"),
        (["-e", "rotting", "-p", "recurrent(hidden=0)"], "hidden must be a whole number"),
        (["-e", "rotting", "-p", "recurrent(epsilon=1.5)"], "epsilon must be a probability"),
        (["-e", "rotting", "-p", "swa", "--horizon", "0"], "horizon must be a whole number of"),
        (["-e", "rotting", "-p", "swa", "--runs", "-2"], "runs must be a whole number of"),
        (["-e", "rotting", "-p", "swa", "--seed", "-2"], "seed must be a whole number of"),
        (["-e", "rotting", "-p", "swa", "--measure", "x"], "measure must be one of regret"),
        (["-e", "rotting", "-p", "swa", "--horizon", "many"], "'many' is not a valid integer"),
        (["-e", "rotting", "-p", "swa", "--plot", "curves.xyz"], "plot must be a file name ending"),
        (["-e", "rotting", "-p", "swa", "--plot", "/dev/null/a.png"], "plot must be a file that"),
        (["-e", "rotting", "-p", "swa", "--plot", "tests"], "plot must be"),
    ],
)
def test_a_mistake_is_one_line_and_code_2(monkeypatch, capsys, arguments, message) -> None:
    def work(*_: object, **__: object) -> None:
        pytest.fail("the work has started")

    monkeypatch.setattr("driftbandits.running.in_memory.compute_on_threads", work)
    assert run(monkeypatch, "compare", *arguments) == 2
    err = capsys.readouterr().err
    assert message in err
    assert "Traceback" not in err


def test_a_figure_that_exists_is_kept_when_it_cannot_be_drawn_anew(monkeypatch, tmp_path) -> None:
    old = tmp_path / "old.png"
    old.write_bytes(b"old")
    assert run(monkeypatch, "compare", "-e", "x", "-p", "swa", "--plot", str(old)) == 2
    assert old.read_bytes() == b"old"
    assert (
        run(monkeypatch, "compare", "-e", "x", "-p", "y", "--plot", str(tmp_path / "n/n.png")) == 2
    )
    assert not (tmp_path / "n").exists(), "a refused call leaves nothing behind"


def test_compare_keeps_its_runs_where_it_is_told_to(monkeypatch, capsys, tmp_path: Path) -> None:
    arguments = ["compare", "-e", "rotting", "-p", "uniform", *SMALL, "--out", str(tmp_path)]
    for _ in range(2):
        assert run(monkeypatch, *arguments) == 0
        assert f"report: {tmp_path / 'report.html'}" in capsys.readouterr().out
    assert len(list((tmp_path / "pieces").glob("*.parquet"))) == 1


def test_list_experiments(monkeypatch, capsys) -> None:
    assert run(monkeypatch, "list", "experiments") == 0
    out = capsys.readouterr().out
    for name in shipped():
        assert f"  {name}: " in out


def test_run_says_what_it_found(monkeypatch, capsys, tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(TINY)
    out = tmp_path / "out"
    sizes = ["--runs", "3", "--horizon", "200", "--seed", "7"]
    assert run(monkeypatch, "run", str(tmp_path / "tiny.toml"), "--out", str(out), *sizes) == 0
    shown = capsys.readouterr()
    assert "regret after 200 pulls, 3 runs, seed 7" in shown.out
    assert "A window beats chance." in shown.out
    assert f"report: {out / 'report.html'}" in shown.out
    finished = [line for line in shown.err.splitlines() if " of one core)" in line]
    assert len(finished) == 2, "one line for each finished policy"


def test_explain_tells_all(monkeypatch, capsys) -> None:
    for name, text in {"sw_ucb": "## Settings", "delayed": "geometric(mean=100)"}.items():
        assert run(monkeypatch, "explain", name) == 0
        assert text in capsys.readouterr().out
    assert run(monkeypatch, "explain", "sw_ubc") == 2
    assert "did you mean 'sw_ucb'?" in capsys.readouterr().err


def a_folder(place: Path, *, quick: str = "") -> Path:
    """Two small experiments, one of them over three problems."""
    place.mkdir()
    size = f"horizon = 40\nruns = 3\n{quick}\n"
    field = 'environments = { a = "bernoulli(num_arms=2)", b = "rotting", c = "bernoulli" }'
    policies = (
        'policies = { ucb = "ucb", chance = "uniform" }\ntuning = { ucb = { scale = [0.1] } }'
    )
    (place / "one.toml").write_text(f'title = "One"\n{size}{field}\n{policies}\n')
    two = 'environment = "bernoulli(num_arms=2)"\npolicies = { chance = "uniform" }'
    (place / "two.toml").write_text(f'title = "Two"\n{size}{two}\n')
    return place


def test_run_takes_a_folder_and_ranks_a_field(monkeypatch, capsys, tmp_path: Path) -> None:
    monkeypatch.chdir(a_folder(tmp_path / "mine.v2"))
    assert run(monkeypatch, "run", ".") == 0
    out = capsys.readouterr().out
    assert "One: over 3 problems, tuned" in out
    assert "One: over 3 problems, default settings" in out
    page = tmp_path / "mine.v2" / "results" / "mine.v2" / "report.html"
    assert "Ranking over the problems" in page.read_text()
    assert {path.name for path in page.parent.glob("*/results.parquet")} == {"results.parquet"}
    assert (page.parent / "one" / "ranking.csv").exists()


def test_quick_is_refused_where_a_file_has_none(monkeypatch, capsys, tmp_path: Path) -> None:
    folder = a_folder(tmp_path / "mine")
    assert run(monkeypatch, "run", str(folder), "--quick") == 2
    assert (
        "--quick must be left out for a file without the key `quick`, got 'one'"
        in capsys.readouterr().err
    )
    empty = tmp_path / "empty"
    empty.mkdir()
    assert run(monkeypatch, "run", str(empty)) == 2
    assert "a folder with at least one TOML file" in capsys.readouterr().err


def test_run_quick_takes_the_small_size(monkeypatch, tmp_path: Path) -> None:
    quick = "quick = { runs = 3, horizon = 20 }"
    monkeypatch.chdir(tmp_path)
    file = a_folder(tmp_path / "mine", quick=quick) / "two.toml"
    assert run(monkeypatch, "run", str(file), "--quick") == 0
    written = json.loads((tmp_path / "results/two-quick/two/experiment.json").read_text())
    assert written["horizon"] == 20


def test_run_goes_to_a_folder_of_its_own(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tiny.toml").write_text(TINY)
    assert run(monkeypatch, "run", "tiny.toml", "--runs", "2", "--horizon", "20") == 0
    assert Path("results/tiny/report.html").exists()
    assert run(monkeypatch, "report", "results/tiny", "--title", "Another title") == 0
    assert "<h1>Another title</h1>" in Path("results/tiny/report.html").read_text()


def test_reproduce_takes_figures_by_name(monkeypatch, capsys, tmp_path: Path) -> None:
    figures = ["--figure", "2", "--figure", "theorem_1"]
    assert run(monkeypatch, "reproduce", "--quick", *figures, "--out", str(tmp_path)) == 0
    assert "does not hold" in capsys.readouterr().out
    assert sorted(path.parent.name for path in tmp_path.glob("*/results.parquet")) == [
        "figure_2", "theorem_1",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["run", "missing.toml"],
            "experiment must be a TOML file that exists, or one of data/segm",
        ),
        (["run", "paper/figure_1e"], "did you mean 'paper/figure_1"),
        (["run", "paper/figure_1b", "--runs", "0"], "runs must be a whole number of at least 1"),
        (["run", "paper/figure_1b", "--horizon", "-1"], "horizon must be a whole number of"),
        (["run", "paper/figure_1b", "--seed", "-1"], "seed must be a whole number of"),
        (["run"], "Missing argument"),
        (["reproduce", "--figure", "1e"], "figure must be one of 1a, 1b, 1c, 1d, 2, 3a, 3b, 4"),
        (["report", "missing"], "DIR must be a folder with at least one finished experiment"),
        (["list", "figures"], "'figures' is not one of"),
    ],
)
def test_a_mistake_in_a_run_is_one_line_and_code_2(monkeypatch, capsys, arguments, message) -> None:
    assert run(monkeypatch, *arguments) == 2
    err = capsys.readouterr().err
    assert message in err
    assert "Traceback" not in err
    assert not Path("results/figure_1b").exists()


def test_interrupt_ends_at_once_with_one_line(tmp_path: Path) -> None:
    arguments = ["compare", "-e", "sinusoidal", "-p", "uniform", "-T", "100000000", "-n", "1"]
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=own_cache(tmp_path),
    )
    try:
        time.sleep(8)
        assert process.poll() is None, "it should have been at work"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    finally:
        process.kill()
    assert process.returncode == 130
    assert out == ""
    assert err.split() == ["stopped"]


def test_progress_bar_on_a_terminal(tmp_path: Path) -> None:
    """Python's pty stands for the terminal."""
    code = (
        "import os, pty, sys\n"
        f"sys.exit(os.waitstatus_to_exitcode(pty.spawn({COMMAND!r} + sys.argv[1:])))"
    )
    arguments = ["compare", "-e", "rotting", "-p", "uniform", *SMALL]
    out = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env=own_cache(tmp_path) | {"TERM": "xterm", "COLUMNS": "100"},
        check=True,
    )
    assert "100%" in out.stdout
    assert "95% interval" in out.stdout
    assert list(tmp_path.glob("driftbandits/*")), "compiled programs are kept for the next call"
