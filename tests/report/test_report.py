"""The report: every number on the page and in the tables is that of the runs."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from driftbandits import InputError, compare, draw_curves, run_experiments, write_report
from driftbandits.experiments.effects import FAILS
from driftbandits.experiments.experiment import Experiment, Sweep
from driftbandits.experiments.files import experiment_from
from driftbandits.experiments.verdicts import Curves, judge
from driftbandits.report.curves import apart, curves_figure, thinned
from driftbandits.report.findings import best_of_finals, best_of_ranking
from driftbandits.report.style import LOOKS, duration, looks_of, number
from driftbandits.report.tables import final_table
from driftbandits.running.folder import StoreError, locked
from driftbandits.running.store import read_results
from tests.running.test_runner import tiny
from tools.publish.finals import finals

SWEPT = Experiment(
    "swept", "A sweep",
    environments=(("bernoulli", "bernoulli(num_arms=3)"),),
    policies=(("window", "swa"),),
    sweep=Sweep("policy", "alpha", (0.1, 0.2)),
    horizon=100, runs=3,
)  # fmt: skip
WORLDS = Experiment(
    "worlds", "Two worlds",
    environments=(("three", "bernoulli(num_arms=3)"), ("four", "bernoulli(num_arms=4)")),
    policies=(("chance", "uniform"),),
    horizon=100, runs=1,
)  # fmt: skip
DISCS = experiment_from(
    "discs",
    {
        "title": "Discs",
        "drawing": "best_arms",
        "times": [0, 500],
        "environments": {"turning": "rotating_wheel"},
    },
)
BOUND = experiment_from(
    "bound",
    {
        "title": "A bound <that> is & isn't",
        "drawing": "ratio_bound",
        "claims": [{"text": "It holds.", "counterexample": "ratio_bound"}],
    },
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A report with one experiment of each kind."""
    place = tmp_path_factory.mktemp("report")
    run_experiments([tiny(runs=20), SWEPT, WORLDS, DISCS, BOUND], place)
    write_report(place)
    return place


def test_every_experiment_has_its_figures_and_tables(folder: Path) -> None:
    for name in ("tiny", "swept", "worlds", "discs", "bound"):
        assert (folder / name / "figure.png").read_bytes().startswith(b"\x89PNG")
        assert b"<svg" in (folder / name / "figure.svg").read_bytes()
    for name in ("tiny", "swept", "worlds"):
        assert (folder / name / "table.csv").exists()
        assert (folder / name / "curves.csv").exists()


def test_the_page_needs_no_network(folder: Path) -> None:
    page = (folder / "report.html").read_text()
    addresses = re.findall(r'(?:src|href)="([^"]{0,40})', page)
    assert addresses
    assert all(address.startswith(("#", "data:")) for address in addresses)
    assert "url(" not in page
    assert "@import" not in page


def test_the_page_says_what_was_found(folder: Path) -> None:
    page = (folder / "report.html").read_text()
    claims = json.loads((folder / "claims.json").read_text())
    assert {claim["experiment"]: claim["verdict"] for claim in claims} == {
        "tiny": "holds",
        "bound": "does not hold",
    }
    for claim in claims:
        assert page.count(claim["text"]) == 2, "in the summary and in its section"
        for evidence in claim["evidence"]:
            assert number(evidence["mean"]) in page
    assert "A bound &lt;that&gt; is &amp; isn&#39;t" in page
    assert "uniform" in page
    assert "bernoulli(num_arms=3)" in page
    assert "one run" in page


def test_final_values(folder: Path) -> None:
    table = pl.read_csv(folder / "tiny" / "table.csv")
    values = read_results(folder / "tiny").values
    assert table["line"].to_list() == ["sliding window", "chance"], "the lowest first"
    assert table["rank"].to_list() == [1, 2]
    for row in table.iter_rows(named=True):
        final = values[row["line"]][:, -1]
        for name, value in (
            ("mean", final.mean()),
            ("median", np.median(final)),
            ("percentile_95", np.quantile(final, 0.95)),
            ("worst", final.max()),
        ):
            assert row[name] == pytest.approx(value, rel=1e-4), name
        assert row["low"] < row["mean"] < row["high"]


def test_the_page_shows_how_bad_it_gets(folder: Path) -> None:
    page = (folder / "report.html").read_text()
    for final in read_results(folder / "tiny").final().values():
        for value in (final.mean, final.median, final.percentile_95, final.worst):
            assert f'<td class="num">{number(value)}</td>' in page


def test_the_published_table_shows_how_bad_it_gets(folder: Path) -> None:
    results = read_results(folder / "tiny")
    rows = finals(final_table(results)).splitlines()[2:]
    for row, (label, final) in zip(rows, results.final().items(), strict=True):
        shown = [cell.strip() for cell in row.strip("|").split("|")]
        assert [shown[0], shown[1]] == [label, number(final.mean)]
        assert shown[3:] == [number(x) for x in (final.median, final.percentile_95, final.worst)]
    assert "one run" in finals(final_table(read_results(folder / "worlds")))


def page_text(page: Path) -> str:
    return " ".join(
        re.sub(r"<style>.*?</style>|<[^>]*>", " ", page.read_text(), flags=re.S).split()
    )


def test_the_page_opens_with_what_was_found(folder: Path) -> None:
    """What holds, then what does not, then who was best where nothing is decided."""
    header = page_text(folder / "report.html").split("to the top")[0]
    places = [
        header.index(text)
        for text in (
            "✓ holds tiny : A window beats chance.",
            "✗ does not hold bound : It holds.",
            "swept : The lowest cumulative regret is that of window, alpha=0.",
            "worlds : The lowest cumulative regret is that of chance on",
        )
    ]
    assert places == sorted(places)
    assert "undecided" not in header


@pytest.fixture(scope="module")
def doubtful(tmp_path_factory) -> Path:
    """A report with a claim that is undecided, and a mean that hangs on one run in twenty."""
    place = tmp_path_factory.mktemp("doubtful")
    claims = [
        {"text": "Chance is no worse.", "lower": "chance", "higher": "luck"},
        {"text": "A window beats chance.", "lower": "window", "higher": "chance"},
    ]
    policies = {"chance": "uniform", "luck": "epsilon_greedy(epsilon=1.0)", "window": "swa"}
    found = run_experiments([tiny(runs=20, policies=policies, claims=claims)], place)
    assert [claim["verdict"] for claim in found[0].claims] == ["undecided", "holds"]
    values = dict(found[0].values)
    values["chance"] = np.where(np.arange(20)[:, None] == 3, 1000.0, values["window"])
    write_report(place, results=[replace(found[0], values=values)])
    return place


def test_undecided_is_not_what_a_reader_meets_first(doubtful: Path) -> None:
    text = page_text(doubtful / "report.html")
    assert text.index("✓ holds tiny : A window beats chance.") < text.index("undecided")
    assert "1 of 2 claims is undecided with this many runs: which, and what would decide it" in text
    assert text.count("Chance is no worse.") == 2, "in its section and among the undecided"
    why = json.loads((doubtful / "claims.json").read_text())[0]["why"]
    assert "decide it" in why
    assert text.count(f"{why[0].upper()}{why[1:]}.") == 2
    assert "#undecided" in (doubtful / "report.html").read_text()


def test_a_mean_that_hangs_on_a_run_is_told(doubtful: Path) -> None:
    table = pl.read_csv(doubtful / "tiny" / "table.csv")
    row = table.filter(pl.col("line") == "chance").row(0, named=True)
    assert row["few_runs"] == 1
    assert row["median_low"] < row["median"] < row["median_high"] < row["mean"]
    told = f"1 of 20 runs makes {100 * row['few_share']:.0f}% of the mean, median"
    shown = f"{number(row['median'])} ({number(row['median_low'])} to {number(row['median_high'])})"
    text = page_text(doubtful / "report.html")
    assert "These means hang on a few runs: chance: " in text
    assert f"{told} {shown}" in text
    assert f"chance: {told} {shown}." in finals(table)
    assert table.filter(pl.col("line") != "chance")["few_runs"].to_list() == [0, 0]


def test_a_verdict_that_the_median_contradicts_says_both(tmp_path: Path) -> None:
    (found,) = run_experiments([tiny(runs=20)], tmp_path)
    worlds = np.arange(20)[:, None]
    window = 100 + found.values["chance"]
    values = {"sliding window": window, "chance": np.where(worlds < 2, 9000.0, window - 5)}
    curves = Curves(found.times, values, {})
    claims = [judge(claim, curves).as_json() for claim in found.experiment.parsed_claims()]
    assert [(claim["verdict"], claim["by_median"]) for claim in claims] == [("undecided", FAILS)]
    write_report(tmp_path, results=[replace(found, values=values, claims=claims)])
    text = page_text(tmp_path / "report.html")
    assert text.count("A window beats chance. By the mean; by the median: does not hold.") == 2
    assert "of the differences, median -5: does not hold" in text
    assert text.index("The lowest cumulative regret is that of") < text.index("undecided")


def test_a_ranking_and_a_share_of_pulls_tell_who_was_best() -> None:
    row = {"policy": "swa", "default_rank": 1.25, "default_low": 1.0, "default_high": 2.0}
    sentence = "The best mean rank over the problems is that of swa, 1.25 (1 to 2)."
    assert best_of_ranking([row, {}]) == sentence
    rows = [
        {"environment": "x", "line": "a on x", "mean": 0.5, "low": None, "high": None},
        {"environment": "x", "line": "b on x", "mean": 0.4, "low": None, "high": None},
        {"environment": "y", "line": "b on y", "mean": 0.9, "low": 0.8, "high": 1.0},
    ]
    assert best_of_finals(rows, "best_share") == (
        "The highest share of pulls so far on a best arm is that of a on x, 0.5; "
        "b on y, 0.9 (0.8 to 1)."
    )


def test_curves(folder: Path) -> None:
    table = pl.read_csv(folder / "tiny" / "curves.csv")
    results = read_results(folder / "tiny")
    assert table["time"].max() == 300
    chosen = table.filter(pl.col("line") == "chance")
    index = np.searchsorted(results.times, chosen["time"].to_numpy())
    expected = results.values["chance"].mean(axis=0)[index]
    np.testing.assert_allclose(chosen["mean"].to_numpy(), expected, atol=1e-5)


def test_a_report_can_be_written_again(folder: Path) -> None:
    before = (folder / "report.html").read_bytes()
    assert write_report(folder) == folder / "report.html"
    assert (folder / "report.html").read_bytes() == before


def test_a_quick_look_is_marked(tmp_path: Path) -> None:
    quick = tiny(quick={"runs": 2, "horizon": 50})
    for experiment, marked in ((quick, False), (quick.made_quick(), True)):
        run_experiments([experiment], tmp_path)
        assert ("A quick look." in write_report(tmp_path).read_text()) is marked


def test_nothing_to_report_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="at least one finished experiment"):
        write_report(tmp_path)


def test_numbers_and_verdicts_belong_together(tmp_path: Path) -> None:
    """A process killed between two files of an experiment leaves nothing that contradicts."""
    run_experiments([tiny()], tmp_path)
    (tmp_path / "tiny" / "experiment.json").write_text("{}")
    (tmp_path / "tiny" / "claims.json").write_text("[]")
    assert "A window beats chance." in write_report(tmp_path).read_text()


def test_results_in_hand_make_the_report_that_the_folder_makes(tmp_path: Path) -> None:
    found = run_experiments([tiny(), replace(tiny(), name="other")], tmp_path)
    names = ["claims.json", "report.html", "tiny/table.csv", "tiny/curves.csv", "tiny/figure.svg"]

    def written() -> list[bytes]:
        return [(tmp_path / name).read_bytes() for name in names]

    write_report(tmp_path)
    from_disk = written()
    write_report(tmp_path, results=found[:1])
    assert written() == from_disk
    assert all("table" not in vars(results) for results in found), "tables stay on disk"


def test_a_report_keeps_out_of_a_folder_in_use(tmp_path: Path) -> None:
    run_experiments([tiny()], tmp_path)
    with locked(tmp_path), pytest.raises(StoreError, match="is in use by"):
        write_report(tmp_path)


def test_a_symmetric_log_scale_has_its_labels_at_the_ends(folder: Path) -> None:
    results = read_results(folder / "tiny")
    values = {"chance": results.values["chance"] - 50, "sliding window": results.values["chance"]}
    logged = replace(results, values=values, experiment=replace(results.experiment, scale="log"))
    axes = curves_figure(logged, looks_of(values)).axes[0]
    ends = [line for line in axes.lines if line.get_transform() == axes.transAxes]
    assert len(ends) == 2
    axes.figure.canvas.draw()
    for line, label in zip(ends, values, strict=True):
        point = axes.transData.transform((300, values[label][:, -1].mean()))
        height = axes.transAxes.inverted().transform(point)[1]
        assert line.get_ydata()[0] == pytest.approx(height, abs=1e-6)


def test_broken_results_are_told(tmp_path: Path) -> None:
    run_experiments([tiny()], tmp_path)
    (tmp_path / "tiny" / "results.parquet").write_bytes(b"x")
    with pytest.raises(StoreError, match="repeat the command that made it"):
        write_report(tmp_path)


def test_the_same_results_give_the_same_figure(tmp_path: Path) -> None:
    results = compare(["uniform", "swa"], "rotting", horizon=50, runs=2)
    for ending in ("png", "svg", "pdf"):
        first, second = (
            draw_curves(results, tmp_path / f"{name}.{ending}").read_bytes() for name in "ab"
        )
        assert first == second, ending


def test_a_policy_has_one_colour_everywhere() -> None:
    paper = ["ours", "no EC", "epsilon-greedy", "softmax T=2", "thompson", "swa", "fewa", "LinTS"]
    assert len({LOOKS[name][0] for name in [*paper, "NeuralLinear"]}) == 9
    for names in (["ours", "thompson"], ["thompson", "x", "ours"], ["y", "ours"]):
        looks = looks_of(names)
        assert looks["ours"] == LOOKS["ours"] == LOOKS["recurrent"]
        assert len(set(looks.values())) == len(names)
    assert looks_of(["x", "y"]) == looks_of(["y", "x"])
    many = looks_of([f"policy {n}" for n in range(20)])
    assert len(set(many.values())) == 20


def test_labels_are_moved_apart() -> None:
    places = apart([0.5, 0.51, 0.99, 1.4, 0.0], gap=0.1)
    assert min(np.diff(sorted(places))) > 0.0999
    assert 0 <= min(places) <= max(places) <= 1
    assert np.argsort(places).tolist() == [4, 0, 1, 2, 3]
    assert apart([0.2, 0.8], gap=0.1) == [0.2, 0.8]


def test_thinning_keeps_the_last_time() -> None:
    for points in (1, 7, 250, 251, 1000):
        chosen = thinned(np.arange(points))
        assert chosen[-1] == points - 1
        assert len(chosen) <= 250
        assert len(set(np.diff(chosen))) <= 1


def test_numbers_and_durations_as_people_read_them() -> None:
    assert [number(x) for x in (0.01234, 1.5, 123.456, 12345.6, -2000)] == [
        "0.0123", "1.5", "123.5", "12,346", "-2,000",
    ]  # fmt: skip
    assert [duration(x) for x in (3, 89, 600, 7200)] == ["3 s", "89 s", "10 min", "2.0 h"]
