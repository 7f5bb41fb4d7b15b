"""Settings chosen by trial, and rankings over problems."""

import numpy as np
import pytest

from driftbandits import InputError, read_results, run_experiment
from driftbandits.cli.console import print_finals, print_ranking
from driftbandits.experiments.experiment import Experiment
from driftbandits.experiments.files import as_table, experiment_from
from driftbandits.experiments.metrics import paired_difference
from driftbandits.experiments.ranking import Scores, ranks_of, scores, shares, standings
from driftbandits.experiments.tuning import apply_tuning
from driftbandits.report.field import ranking_table
from driftbandits.report.page import write_report
from driftbandits.report.tables import final_table

FIELD = {
    "title": "Three problems",
    "environments": {
        "even": "bernoulli(num_arms=2)",
        "odd": "bernoulli(num_arms=3)",
        "r": "rotting",
    },
    "policies": {"ucb": "ucb", "swa": "swa", "uniform": "uniform"},
    "tuning": {"ucb": {"scale": [0.1, 3.0]}},
    "horizon": 60,
    "runs": 6,
    "points": 20,
    "measure": "policy_regret",
}


def field(**changes: object) -> Experiment:
    return experiment_from("field", {**FIELD, **changes})


def test_candidates_are_lines_of_their_own() -> None:
    grid = {"ucb": {"scale": [0.1, 3.0]}, "swa": {"alpha": [0.5, 1], "doubling": [True]}}
    labels = [line.label for line in field(tuning=grid, environments={"x": "rotting"}).lines()]
    assert labels == [
        "ucb", "ucb, scale=0.1", "ucb, scale=3.0",
        "swa", "swa, alpha=0.5, doubling=true", "swa, alpha=1, doubling=true", "uniform",
    ]  # fmt: skip
    assert experiment_from("field", as_table(field())) == field()


def test_the_first_third_chooses_and_the_others_judge() -> None:
    experiment = field(environments={"x": "rotting"})
    values = {line.label: np.full((6, 3), 5.0) for line in experiment.lines()}
    values["ucb, scale=3.0"][:2] = 1.0  # good where it counts for the choice
    values["ucb, scale=3.0"][2:] = 9.0
    values["ucb, scale=0.1"][:2] = 2.0
    lines, judged = apply_tuning(experiment, values)
    assert [line.label for line in lines] == ["ucb", "ucb tuned", "swa", "uniform"]
    assert next(line for line in lines if line.label == "ucb tuned").policy == "ucb(scale=3.0)"
    assert judged["ucb tuned"].shape == (4, 3)
    assert (judged["ucb tuned"] == 9).all(), "the choice is not judged by the runs that made it"


def test_in_hindsight_all_runs_choose_and_judge() -> None:
    experiment = field(environments={"x": "rotting"}, hindsight=True, runs=2)
    values = {line.label: np.full((2, 3), 5.0) for line in experiment.lines()}
    values["ucb, scale=3.0"][:] = [[1.0], [9.0]]  # good in the first run, as good as the default
    values["ucb, scale=0.1"][:] = [[6.0], [2.0]]
    lines, judged = apply_tuning(experiment, values)
    assert next(line for line in lines if line.label == "ucb tuned").policy == "ucb(scale=0.1)"
    np.testing.assert_array_equal(judged["ucb tuned"], values["ucb, scale=0.1"])
    assert {len(runs) for runs in judged.values()} == {2}
    values["ucb, scale=0.1"] += 5
    assert apply_tuning(experiment, values).lines[1].policy == "ucb", "the default, not a worse one"


def test_a_quick_look_without_tuning_has_no_hindsight() -> None:
    quick = field(hindsight=True, quick={"runs": 2, "tuning": False}).made_quick()
    assert not quick.hindsight
    assert experiment_from("field", as_table(quick)) == quick
    assert field(hindsight=True, quick={"runs": 2}).made_quick().hindsight


@pytest.mark.parametrize(
    ("changes", "shown", "text"),
    [({}, 4, "best on the first 2 runs; the other 4"), ({"hindsight": True}, 6, "in hindsight")],
)
def test_the_report_says_how_it_was_tuned(tmp_path, capsys, changes, shown: int, text: str) -> None:
    results = run_experiment(field(**changes), tmp_path)
    assert {len(values) for values in results.values.values()} == {shown}
    again = read_results(tmp_path / "field")
    assert {len(values) for values in again.values.values()} == {shown}
    assert set(final_table(again)["runs"]) == {shown}
    assert text in write_report(tmp_path).read_text()
    print_ranking(again)
    print_finals(again)
    assert capsys.readouterr().out.count(text) == 2


def test_the_default_is_a_candidate_too() -> None:
    experiment = field(environments={"x": "rotting"})
    values = {line.label: np.full((6, 1), 5.0) for line in experiment.lines()}
    values["ucb"][:2] = 0.0
    assert apply_tuning(experiment, values).lines[1].policy == "ucb"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tuning": {"exp4": {"x": [1]}}}, "tuning must be one of ucb, swa, uniform, got 'exp4'"),
        ({"tuning": {"ucb": {"scale": 3}}}, "tuning.ucb.scale must be a list of values, got 3"),
        ({"tuning": {"ucb": {"scale": []}}}, "tuning.ucb.scale must be different values, at least"),
        ({"tuning": {"ucb": {"scale": [1, 1]}}}, "tuning.ucb.scale must be different values"),
        ({"tuning": {"ucb": {}}}, "tuning.ucb must be a table such as"),
        ({"policies": {"ucb": "ucb", "ucb tuned": "ucb"}}, "policies must be without 'ucb tuned'"),
        ({"quick": {"environments": []}}, "quick.environments must be at least one, got"),
        ({"quick": {"environments": ["evn"]}}, "quick.environments must be one of .*did you mean"),
        ({"quick": {"tuning": 0}}, "quick.tuning must be true or false, got 0"),
        (
            {
                "quick": {"tuning": False},
                "claims": [{"text": "!", "lower": "ucb tuned on r", "higher": "swa on r"}],
            },
            "quick: .*ucb tuned on r",
        ),
        ({"tuning": {"ucb": {"colour": [3]}}}, "a setting of ucb must be .*, got 'colour'"),
        ({"tuning": {"ucb": 3}}, "tuning.ucb must be a table such as"),
        ({"runs": 2}, "runs must be at least 3 where something is tuned, got 2"),
        ({"hindsight": True, "tuning": {}}, "hindsight must be left out where nothing is tuned"),
        ({"points": 0}, "points must be a whole number of at least 1, got 0"),
        (
            {"sweep": {"environment": "max_consecutive", "values": [1, 2]}},
            "tuning must be left out where there is a sweep",
        ),
        ({"measure": "recovery_time"}, "measure must be another one in an environment whose drift"),
    ],
)
def test_mistakes_are_told(changes: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        field(**changes)


def test_a_field_from_end_to_end(tmp_path) -> None:
    results = run_experiment(field(), tmp_path)
    assert list(results.values) == [line.label for line in results.lines]
    assert all(values.shape == (4, 20) for values in results.values.values())
    again = read_results(tmp_path / "field")
    assert [line.policy for line in again.lines] == [line.policy for line in results.lines]
    for label, values in results.values.items():
        np.testing.assert_array_equal(again.values[label], values)
    table = ranking_table(again)
    assert set(table["policy"]) == {"ucb", "swa", "uniform"}
    assert table["tuned_rank"].to_list() == sorted(table["tuned_rank"].to_list())
    page = write_report(tmp_path).read_text()
    assert "Ranking over the problems" in page
    for name in ("figure.png", "curves.png", "ranking.csv", "table.csv"):
        assert (tmp_path / "field" / name).stat().st_size > 0


def test_tuned_scores_take_the_tuned_line_where_there_is_one(tmp_path) -> None:
    results = run_experiment(field(), tmp_path)
    default, tuned = scores(results, tuned=False), scores(results, tuned=True)
    assert default.policies == tuned.policies == ["ucb", "swa", "uniform"]
    np.testing.assert_array_equal(tuned.values[0, :, 0], results.values["ucb tuned on even"][:, -1])
    np.testing.assert_array_equal(default.values[2, :, 0], results.values["ucb on r"][:, -1])
    np.testing.assert_array_equal(default.values[:, :, 1:], tuned.values[:, :, 1:])


def test_ranks_share_ties() -> None:
    np.testing.assert_array_equal(ranks_of(np.array([3.0, 1.0, 3.0, 2.0])), [3.5, 1, 3.5, 2])


def test_standings_by_hand() -> None:
    generator = np.random.default_rng(0)
    noise = generator.normal(0, 0.1, size=(2, 30, 3))
    values = np.array([[1.0, 2.0, 2.0], [5.0, 1.0, 9.0]])[:, None, :] + noise
    table = {
        row.policy: row for row in standings(Scores(["a", "b", "c"], ["x", "y"], values, None))
    }
    expected = ranks_of(values.mean(axis=1)).mean(axis=0)
    assert [table[name].rank for name in "abc"] == expected.tolist()
    beaten = {"a": 0, "b": 0, "c": 0}
    for problem in values:
        for i, name in enumerate("abc"):
            for j in {0, 1, 2} - {i}:
                beaten[name] += int(paired_difference(problem[:, i], problem[:, j]).high < 0)
    assert {name: row.wins for name, row in table.items()} == beaten
    assert sum(row.wins for row in table.values()) == sum(row.losses for row in table.values())
    assert all(row.low <= row.rank <= row.high for row in table.values())


def test_shares_are_of_uniform_play() -> None:
    values = np.array([[[10.0, 40.0]], [[-5.0, 15.0]]])
    heat = shares(Scores(["good", "chance"], ["x", "y"], values, 1))
    np.testing.assert_allclose(heat, [[0.25, 0.0], [1.0, 1.0]])
