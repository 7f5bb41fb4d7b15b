"""What each environment beyond the paper's is: formulas, moments of change, what is refused."""

import os
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import polars as pl
import pytest

from driftbandits import ENVIRONMENTS, InputError, build_environment, simulate
from driftbandits.choice import parse, with_defaults
from driftbandits.core import Environment
from driftbandits.environments.adversarial import adversarial
from driftbandits.environments.random_walk import reflect
from driftbandits.environments.sleeping import sleeping
from driftbandits.keys import key_at
from driftbandits.parts import tables
from driftbandits.parts.tables import fingerprint_of_file, read_table

KEY = jax.random.key(7)


def course(choice: str | Environment, steps: int, arm: int = 0, seed: int = 7) -> dict:
    """What an environment shows, pays and is, over some pulls of one arm."""
    environment = build_environment(choice) if isinstance(choice, str) else choice

    def step(state, key):
        seen = environment.observe(key, state)
        rewards = environment.rewards(key, state, seen.context)
        era = -1 if environment.era is None else environment.era(state)
        row = {**seen._asdict(), **rewards._asdict(), "era": era}
        return environment.advance(state, jnp.int32(arm)), row

    @jax.jit
    def go(key):
        return jax.lax.scan(step, environment.init(key), jax.random.split(key, steps))[1]

    return jax.tree.map(np.asarray, go(jax.random.key(seed)))


def means_after(environment: Environment, state: object, context: object = ()) -> np.ndarray:
    context = jnp.asarray(context, jnp.float32)
    return np.asarray(environment.rewards(KEY, state, context).mean)


def refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        build_environment(text)


# Changes at moments


def test_abrupt_redraws_everything_at_the_given_steps() -> None:
    seen = course("abrupt(num_arms=4, times=[3, 4, 9])", 12)
    changed = np.flatnonzero((np.diff(seen["mean"], axis=0) != 0).all(axis=1)) + 1
    assert changed.tolist() == [3, 4, 9]
    assert (np.diff(seen["mean"], axis=0) != 0).any(axis=1).sum() == 3
    assert seen["era"].tolist() == [0] * 3 + [1] + [2] * 5 + [3] * 3


def test_abrupt_has_its_hazard_and_uniform_means() -> None:
    steps, hazard = 20_000, 0.05
    seen = course(f"abrupt(num_arms=3, hazard={hazard})", steps)
    moments = (np.diff(seen["mean"], axis=0) != 0).all(axis=1)
    assert moments.mean() == pytest.approx(hazard, abs=4 * (hazard / steps) ** 0.5)
    assert np.array_equal(np.diff(seen["era"]), moments)
    drawn = seen["mean"][1:][moments]
    assert np.abs(drawn.mean(axis=0) - 0.5).max() < 4 * (1 / 12 / len(drawn)) ** 0.5
    assert np.abs(np.corrcoef(drawn[:-1].ravel(), drawn[1:].ravel())[0, 1]) < 4 / drawn.size**0.5
    lengths = np.diff(np.flatnonzero(moments))
    assert lengths.std() == pytest.approx(1 / hazard, rel=0.15), "geometric, without memory"
    other = course(f"abrupt(num_arms=3, hazard={hazard})", 200, seed=8)
    assert not np.array_equal(seen["mean"][:200], other["mean"])


def test_abrupt_without_hazard_is_bernoulli() -> None:
    assert (np.diff(course("abrupt(hazard=0)", 200)["mean"], axis=0) == 0).all()


def test_random_walk_steps_and_reflects() -> None:
    environment = build_environment("random_walk(num_arms=50, step=0.2)")
    state = environment.init(KEY)
    for time in range(1, 30):
        after = environment.advance(state, jnp.int32(0))
        moved = np.asarray(state.theta, float) + 0.2 * np.asarray(
            jax.random.normal(key_at(state.words, jnp.int32(time)), (50,)), float
        )
        moved = np.where(moved < 0, -moved, np.where(moved > 1, 2 - moved, moved))
        np.testing.assert_allclose(after.theta, moved, atol=1e-6)
        state = after
    assert (np.asarray(state.theta) >= 0).all()
    assert (np.asarray(state.theta) <= 1).all()


def test_random_walk_has_the_stated_deviation_and_stays_uniform() -> None:
    seen = course("random_walk(num_arms=200)", 500)["mean"]
    inside = (seen[:-1] > 0.05) & (seen[:-1] < 0.95)
    assert np.diff(seen, axis=0)[inside].std() == pytest.approx(0.01, rel=0.02)
    assert seen.mean() == pytest.approx(0.5, abs=4 * (1 / 12 / 200) ** 0.5)


def test_reflection_holds_for_any_length() -> None:
    far = reflect(jnp.array([-0.25, 1.25, -1.25, 2.5, 3.75, 0.0, 1.0]))
    np.testing.assert_allclose(far, [0.25, 0.75, 0.75, 0.5, 0.25, 0, 1], atol=1e-6)


def test_flipping_swaps_best_and_worst_and_back() -> None:
    seen = course("flipping(num_arms=5, every=10)", 40)
    theta = seen["mean"][0]
    flipped = theta.copy()
    flipped[[theta.argmax(), theta.argmin()]] = theta.min(), theta.max()
    for time in range(40):
        expected = flipped if (time // 10) % 2 else theta
        np.testing.assert_array_equal(seen["mean"][time], expected)
    assert seen["era"].tolist() == sorted([0, 1, 2, 3] * 10)


def test_era_of_the_sine_is_the_best_arm() -> None:
    seen = course("sinusoidal(num_arms=4, period=60)", 120)
    np.testing.assert_array_equal(seen["era"], seen["mean"].argmax(axis=1))
    assert len(set(seen["era"].tolist())) > 1


def test_who_has_eras() -> None:
    having = {name for name in ENVIRONMENTS if build_environment(name).era is not None}
    assert having == {"abrupt", "flipping", "flipping_linear", "sinusoidal", "rotting"}
    assert build_environment('rotting(law="power")').era is None
    assert build_environment("bernoulli(max_consecutive=3, sleeping=0.5)").era is None


@pytest.mark.parametrize(
    "transformation",
    ["max_consecutive=2", "sleeping=0.5", "sleeping=[[1, 0], [1, 1]]", "noisy=1", "scaled=2"],
)
def test_transformations_keep_the_era(transformation: str) -> None:
    plain = course("flipping(num_arms=2, every=3)", 12)
    changed = course(f"flipping(num_arms=2, every=3, {transformation})", 12)
    np.testing.assert_array_equal(changed["era"], plain["era"])


# Changes by pulls


def test_default_rotting_is_the_paper_s_problem_bit_for_bit() -> None:
    environment = build_environment("rotting")
    for pulls, mean in (([9999, 7499], [0.5, 1.0]), ([0, 7500], [0.5, 0.4])):
        found = environment.rewards(KEY, jnp.array(pulls, jnp.int32), jnp.zeros(0))
        expected = jnp.array(mean) + 0.2**0.5 * jax.random.normal(KEY, (2,))
        np.testing.assert_array_equal(found.sampled, expected)
        np.testing.assert_array_equal(found.mean, jnp.array(mean))
    assert environment.spec == (2, 0, None, (0.0, 1.0), 0.2**0.5)
    assert [int(environment.era(jnp.array([0, n]))) for n in (7499, 7500)] == [1, 0]


@pytest.mark.parametrize("law", ["step", "geometric", "power"])
def test_rotting_laws(law: str) -> None:
    environment = build_environment(f'rotting(num_arms=6, law="{law}", life=20, variance=0.01)')
    state = environment.init(KEY)
    start, end, life = (np.asarray(x, float) for x in (state.start, state.end, state.life))
    assert (end <= start).all()
    assert (life >= 1).all()
    assert (life <= 39).all()
    formulas = {
        "step": lambda n: np.where(n < life, start, end),
        "geometric": lambda n: start * np.exp(-1 / life) ** n,
        "power": lambda n: start / np.sqrt(1 + n / life),
    }
    for n in (0, 1, 5, int(life[2]) - 1, int(life[2]), 100):
        pulls = np.arange(6) + n
        found = means_after(environment, state._replace(pulls=jnp.asarray(pulls, jnp.int32)))
        np.testing.assert_allclose(found, formulas[law](pulls), rtol=1e-5)
    assert environment.spec.noise == pytest.approx(0.1)
    after = environment.advance(environment.advance(state, jnp.int32(4)), jnp.int32(4))
    assert after.pulls.tolist() == [0, 0, 0, 0, 2, 0]


def test_rotting_lives_are_drawn_around_their_mean_per_run() -> None:
    environment = build_environment("rotting(num_arms=2000, life=50)")
    lives = np.asarray(environment.init(KEY).life)
    assert lives.mean() == pytest.approx(50, abs=4 * 29 / 2000**0.5)
    assert {lives.min(), lives.max()} == {1, 99}
    assert not np.array_equal(lives, environment.init(jax.random.key(1)).life)


def test_era_of_a_step_is_the_best_arm() -> None:
    choice = "rotting(num_arms=8, life=5)"
    best = int(course(choice, 1)["era"][0])
    seen = course(choice, 12, arm=best)
    np.testing.assert_array_equal(seen["era"], seen["mean"].argmax(axis=1))
    assert len(set(seen["era"].tolist())) == 2, "the best one fell"


def test_rising_follows_the_formula() -> None:
    environment = build_environment("rising(num_arms=5, pace=30)")
    state = environment.init(KEY)
    limit, pace = np.asarray(state.limit, float), np.asarray(state.pace, float)
    for arm in (2, 2, 4):
        state = environment.advance(state, jnp.int32(arm))
    n = np.array([0, 0, 2, 0, 1]) + 1
    np.testing.assert_allclose(
        means_after(environment, state), limit * (1 - np.exp(-n / pace)), rtol=1e-5
    )
    forever = state._replace(pulls=jnp.full(5, 10**6))
    np.testing.assert_allclose(means_after(environment, forever), limit, rtol=1e-6)
    assert (pace > 0).all()
    assert (pace <= 60).all()


def test_rising_means_grow_less_and_less() -> None:
    rise = np.diff(course("rising(num_arms=3, pace=20)", 60, arm=1)["mean"][:, 1].astype(float))
    assert (rise > 0).all()
    assert (np.diff(rise) < 1e-6).all()


# Contexts


def test_linear_is_linear() -> None:
    environment = build_environment("linear(num_arms=4, context_dim=3)")
    theta = np.asarray(environment.init(KEY).theta, float)
    np.testing.assert_allclose(np.linalg.norm(theta, axis=1), 1, rtol=1e-6)
    seen = course("linear(num_arms=4, context_dim=3)", 2000)
    np.testing.assert_allclose(seen["mean"], seen["context"] @ theta.T, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(seen["context"], axis=1), 1, rtol=1e-6)
    assert np.abs(seen["context"].mean(axis=0)).max() < 4 * (1 / 3 / 2000) ** 0.5
    assert (seen["sampled"] - seen["mean"]).std() == pytest.approx(0.1, rel=0.05)
    assert environment.spec.reward_range == (-1.0, 1.0)
    assert np.abs(seen["mean"]).max() <= 1 + 1e-6


def test_rotating_linear_turns_in_planes() -> None:
    environment = build_environment("rotating_linear(num_arms=3, context_dim=4, period=8)")
    state = environment.init(KEY)
    u, v = np.asarray(state.begin, float), np.asarray(state.later, float)
    np.testing.assert_allclose((u * v).sum(axis=1), 0, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(v, axis=1), 1, rtol=1e-5)
    context = np.array([0.5, -0.5, 0.5, 0.5])
    for time in range(20):
        angle = 2 * np.pi * time / 8
        expected = (np.cos(angle) * u + np.sin(angle) * v) @ context
        np.testing.assert_allclose(means_after(environment, state, context), expected, atol=1e-6)
        state = environment.advance(state, jnp.int32(0))


def test_flipping_linear_changes_sign_at_exact_steps() -> None:
    choice = "(num_arms=3, context_dim=2{})"
    plain = course("linear" + choice.format(""), 25)
    seen = course("flipping_linear" + choice.format(", every=10"), 25)
    sign = np.where((np.arange(25) // 10) % 2, -1, 1)
    np.testing.assert_allclose(seen["mean"], plain["mean"] * sign[:, None], atol=1e-6)
    assert seen["era"].tolist() == [0] * 10 + [1] * 10 + [2] * 5


# Tables

NUMBERS = np.array([[1.0, -2.0, 0.25], [0.5, 3.0, 0.0], [2.0, 1.0, 1.0], [0.0, 0.0, 4.5]])


def frame() -> pl.DataFrame:
    columns = {f"arm_{k}": NUMBERS[:, k] for k in range(3)}
    days = [f"2020-01-0{day}" for day in range(1, 5)]
    return pl.DataFrame({"day": days, "x": [10, 20, 30, 40], **columns, "y": [4, 3, 2, 1]})


def written(folder: Path, name: str, table: pl.DataFrame) -> str:
    path = folder / name
    table.write_parquet(path) if name.endswith(".parquet") else table.write_csv(path)
    return str(path)


@pytest.mark.parametrize("name", ["log.csv", "log.parquet"])
def test_table_as_written(tmp_path: Path, name: str) -> None:
    file = written(tmp_path, name, frame())
    choice = f'table(file={file!r}, context=["y", "x"])'
    seen = course(choice, 10)
    rows = np.arange(10) % 4
    np.testing.assert_array_equal(seen["mean"], NUMBERS[rows].astype(np.float32))
    np.testing.assert_array_equal(seen["sampled"], seen["mean"])
    np.testing.assert_array_equal(seen["context"], np.stack([4 - rows, 10 + 10 * rows], axis=1))
    spec = build_environment(choice).spec
    assert spec[:4] == (3, 2, None, (-2.0, 4.5))
    assert spec.noise == pytest.approx(NUMBERS.std(axis=0).max())


def test_table_shuffled_has_every_row_once_in_an_order_per_run(tmp_path: Path) -> None:
    rows = np.arange(30)
    file = written(tmp_path, "log.csv", pl.DataFrame({"a": rows, "b": -rows, "c": rows * 2}))
    choice = f'table(file={file!r}, context=["c"], order="shuffled")'
    seen, other = (course(choice, 60, seed=seed) for seed in (1, 2))
    assert sorted(seen["mean"][:30, 0]) == rows.tolist()
    np.testing.assert_array_equal(seen["mean"][:30], seen["mean"][30:])
    np.testing.assert_array_equal(seen["context"][:, 0], 2 * seen["mean"][:, 0])
    np.testing.assert_array_equal(seen["mean"][:, 1], -seen["mean"][:, 0])
    assert not np.array_equal(seen["mean"], other["mean"])
    assert not np.array_equal(seen["mean"][:30, 0], rows)


@pytest.mark.parametrize(
    ("settings", "arms", "contexts"),
    [
        ("", ["x", "arm_0", "arm_1", "arm_2", "y"], []),
        (', arms="arm_"', ["arm_0", "arm_1", "arm_2"], []),
        (', arms=["arm_2", "x"], context=["y"]', ["arm_2", "x"], ["y"]),
        (', context="arm"', ["x", "y"], ["arm_0", "arm_1", "arm_2"]),
        (", context=[]", ["x", "arm_0", "arm_1", "arm_2", "y"], []),
    ],
)
def test_which_columns_are_what(tmp_path, settings, arms, contexts) -> None:
    file = written(tmp_path, "log.csv", frame())
    seen = course(f"table(file={file!r}{settings})", 1)
    for found, names in ((seen["mean"], arms), (seen["context"], contexts)):
        np.testing.assert_array_equal(found[0], frame()[0, names].to_numpy().ravel())


def test_regret_of_a_table_is_realised(tmp_path: Path) -> None:
    file = written(tmp_path, "log.csv", frame().select("arm_0", "arm_1"))
    trace = simulate("uniform", f"table(file={file!r})", horizon=20, runs=2, record_every=1)
    np.testing.assert_array_equal(trace.regret, trace.realised_regret)
    best = trace.regret + trace.expected_reward
    np.testing.assert_allclose(np.diff(best, axis=1)[0, :4], [3, 2, 0, 1], atol=1e-6)


def test_booleans_and_blanks_are_numbers_where_they_can_be(tmp_path: Path) -> None:
    file = written(tmp_path, "log.parquet", pl.DataFrame({"a": [True, False], "b": [False, True]}))
    np.testing.assert_array_equal(read_table(file).rewards, np.eye(2))
    path = tmp_path / "log.csv"
    path.write_text("a,b\n 1 ,2e0\n-3,+4\n")
    np.testing.assert_array_equal(read_table(str(path)).rewards, [[1, 2], [-3, 4]])


@pytest.mark.parametrize(
    ("content", "settings", "message"),
    [
        ("", "", "file must be a table with at least one row, got"),
        ("a,b\n", "", "file must be a table with at least one row, got"),
        ("0.1,0.2\n1,2\n", "", "file must be a table whose first line names its columns"),
        ("a,b\n1,2\n3,4,5\n", "", "file must be a table that can be read"),
        ("a,b\n1,2\n3,four\n", "", "column b must be a finite number .*in row 2.*, got 'four'"),
        ("a,b\n1,x\n3,y\n", ', arms=["a", "b"]', "column b must be a .* in row 1 .*, got 'x'"),
        ("a,b\n1,2\n3,NaN\n", "", "column b must be a finite number in every row, .*, got 'NaN'"),
        ("a,b\n1,inf\n3,1\n", "", "column b must be a finite number in every row, .*, got 'inf'"),
        ("a,b\n1,1e39\n3,1\n", "", "column b must be a finite number in every row, .*'1e39'"),
        ("a,b\n1,2\n3\n", "", "column b must be a finite number in every row, .*, got None"),
        ("a,b\n1,2\n3,\n", ', context=["b"]', "column b must be a finite number .*, got None"),
        ("a,b\nx,y\n", "", r"arms must be at least one column of numbers, got \['a', 'b'\]"),
        ("a,b\n1,2\n", ', context=["a", "b"]', "arms must be at least one column of numbers"),
        ("a,bar\n1,2\n", ', arms=["a", "baz"]', "each of arms must be one of .* mean 'bar'"),
        ("a,b\n1,2\n", ', context=["c"]', "each of context must be one of a, b, got 'c'"),
        ("a,b\n1,2\n", ', arms="c"', "arms must be names, or how some of a, b begin, got 'c'"),
        ("a,b\n1,2\n", ", arms=3", "arms must be a list of names of columns, or .*, got 3"),
        ("a,b\n1,2\n", ', arms=["a", "a"]', "arms must be a list of different columns"),
        ("a,b\n1,2\n", ', arms=["a"], context=["a"]', "arms must be other columns than the c"),
        ("a,b\n1,2\n", ', order="random"', "order must be one of as written, shuffled, got"),
    ],
)
def test_bad_tables_are_refused(tmp_path, content, settings, message) -> None:
    path = tmp_path / "log.csv"
    path.write_text(content)
    refused(f"table(file={str(path)!r}{settings})", message)


def test_files_that_are_none_are_refused(tmp_path: Path) -> None:
    wrong = tmp_path / "log.parquet"
    wrong.write_text("a,b\n1,2\n")
    text = tmp_path / "log.txt"
    text.write_text("a,b\n1,2\n")
    refused('table(file="no/such.csv")', "file must be a CSV or Parquet .*, got 'no/such.csv'")
    refused(f"table(file={str(tmp_path)!r})", "file must be a CSV or Parquet file that can be read")
    refused(f"table(file={str(wrong)!r})", "file must be a table that can be read")
    refused(f"table(file={str(text)!r})", "file must be a name that ends with .csv, .csv.gz or")
    refused("table(file=none)", "file must be the name of a file, or river:<name>, got None")
    refused("adversarial(file=3)", "file must be the name of a file, or river:<name>, got 3")


def test_a_file_that_is_written_again_is_read_again(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "log.csv"
    choice = 'table(file="log.csv")'
    path.write_text("a,b\n1,2\n")
    first, mark = build_environment(choice), fingerprint_of_file(path)
    assert build_environment(choice) is first
    path.write_text("a,b\n5,6\n")
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1))
    assert course(choice, 1)["mean"].tolist() == [[5, 6]]
    assert fingerprint_of_file(path) != mark
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    refused(choice, "file must be a CSV or Parquet file that can be read, got 'log.csv'")


def test_fingerprint_is_that_of_the_content(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("abc")
    marks = {fingerprint_of_file(tmp_path / name) for name in ("a.csv", "b.csv")}
    assert marks == {"ba7816bf8f01cfea"}, "SHA-256 of abc, by the standard's own example"
    assert len(fingerprint_of_file("river:sp500")) == 16


def test_adversarial_plays_a_file_and_begins_again(tmp_path: Path) -> None:
    file = written(tmp_path, "plan.csv", frame().select("arm_0", "arm_2"))
    seen = course(f"adversarial(file={file!r})", 9)
    np.testing.assert_array_equal(
        seen["mean"], NUMBERS[np.arange(9) % 4][:, [0, 2]].astype(np.float32)
    )
    assert seen["context"].shape == (9, 0)


def test_adversarial_without_a_file_doubles_its_stretches() -> None:
    paid = course(adversarial(), 8191 + 5)["mean"].argmax(axis=1)
    ends = np.flatnonzero(np.diff(paid)) + 1
    assert ends[:12].tolist() == [2**n - 1 for n in range(1, 13)]
    leader = np.cumsum(2 * paid[:8191] - 1) > 0
    wrong = (leader[:-1] != paid[1:8191]).mean()
    assert wrong == pytest.approx(1 / 3, abs=0.01), "whoever follows the leader loses a third"


def test_river_s_stocks() -> None:
    table = read_table("river:sp500")
    assert table.rewards.shape == (1257, 10)
    assert table.contexts.shape == (1257, 0)
    np.testing.assert_allclose(table.rewards[0, :3], [1.042235, -1.809506, -0.753669], rtol=1e-6)
    two = read_table("river:sp500", arms=["MSFT", "AAPL"])
    np.testing.assert_array_equal(two.rewards, table.rewards[:, [7, 0]])


def test_river_s_image_segments() -> None:
    table = read_table("river:image_segments")
    assert table.rewards.shape == (2310, 7)
    np.testing.assert_array_equal(table.rewards.sum(axis=0), 330)
    np.testing.assert_array_equal(table.rewards.sum(axis=1), 1)
    assert table.contexts.shape == (2310, 18)
    np.testing.assert_allclose(table.contexts.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(table.contexts.std(axis=0), 1, rtol=1e-5)
    names = sorted(["brickface", "sky", "foliage", "cement", "window", "path", "grass"])
    assert [names[k] for k in table.rewards[:3].argmax(axis=1)] == ["path", "foliage", "sky"]


def test_river_is_asked_for_where_it_is_missing(monkeypatch) -> None:
    refused('table(file="river:sp50")', "the name after river: must be one of .* mean 'sp500'")
    monkeypatch.setitem(tables.RIVER_FILES, "sp500", "not_yet.csv.gz")
    with pytest.raises(InputError, match=r"takes a newer one: pip install 'driftbandits\[data\]'"):
        read_table("river:sp500")
    monkeypatch.setattr(tables.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(InputError, match=r"takes the package river: pip install 'driftbandits\[d"):
        read_table("river:image_segments")


# Transformations


def test_sleeping_arms_are_awake_with_the_probability() -> None:
    steps, probability = 20_000, 0.3
    awake = course(f"bernoulli(num_arms=3, sleeping={probability})", steps)["available"]
    assert awake.any(axis=1).all()
    nobody = (1 - probability) ** 3  # then one of three is woken
    expected = probability + nobody / 3
    error = 4 * (expected * (1 - expected) / steps) ** 0.5
    assert np.abs(awake.mean(axis=0) - expected).max() < error
    both = (awake[:, 0] & awake[:, 1]).mean()
    assert both == pytest.approx(probability**2, abs=4 * 0.3 / steps**0.5), "independently"


@pytest.mark.parametrize(("probability", "number"), [(0, 1), (1, 4)])
def test_sleeping_at_the_ends(probability: int, number: int) -> None:
    awake = course(f"bernoulli(num_arms=4, sleeping={probability})", 200)["available"]
    assert (awake.sum(axis=1) == number).all()
    assert awake.any(axis=0).all()


def test_sleeping_by_schedule_repeats() -> None:
    seen = course("flipping(num_arms=3, sleeping=[[1, 0, 1], [0, 1, 0], [1, 1, 1]])", 8)
    rows = [[1, 0, 1], [0, 1, 0], [1, 1, 1]]
    assert seen["available"].astype(int).tolist() == [rows[time % 3] for time in range(8)]


def test_sleeping_twice_leaves_somebody_awake() -> None:
    inner = build_environment("bernoulli(num_arms=3, sleeping=[[1, 0, 1]])")
    assert course(sleeping(inner, [[1, 1, 0], [0, 1, 0]]), 2)["available"].astype(int).tolist() == [
        [1, 0, 0],
        [1, 0, 1],
    ]
    awake = course(sleeping(inner, 0.0), 50)["available"]
    assert not awake[:, 1].any()
    assert (awake.sum(axis=1) == 1).all()


def test_sleeping_leaves_the_means_as_they_are() -> None:
    plain, drowsy = (course(f"random_walk({s})", 30) for s in ("", "sleeping=0.5"))
    np.testing.assert_array_equal(plain["mean"], drowsy["mean"])


def test_noise_adds_up() -> None:
    choice = "rotting(noisy=1.5)"
    seen = course(choice, 8000)
    assert (seen["sampled"] - seen["mean"]).var() == pytest.approx(0.2 + 1.5**2, rel=0.06)
    spec = build_environment(choice).spec
    assert spec.noise == pytest.approx((0.2 + 1.5**2) ** 0.5)
    assert spec.reward_range == (-3.0, 4.0)


def test_scaling_changes_unit_and_origin() -> None:
    plain, changed = course("wheel", 50), course("wheel(scaled=[4, -3])", 50)
    for part in ("sampled", "mean"):
        np.testing.assert_allclose(changed[part], 4 * plain[part] - 3, rtol=1e-5)
    spec = build_environment("wheel(scaled=[4, -3])").spec
    assert spec.reward_range == (-3.0, 197.0)
    assert spec.noise == pytest.approx(0.04)
    assert build_environment("linear(scaled=0.5)").spec.reward_range == (-0.5, 0.5)


def test_order_of_transformations_is_the_one_written_in_experiments_too() -> None:
    def low(text: str) -> float:
        written_out = str(with_defaults(parse("environment", text), ENVIRONMENTS))
        specs = [build_environment(t).spec for t in (text, written_out)]
        assert specs[0] == specs[1]
        return specs[0].reward_range[0]

    assert low("bernoulli(scaled=10, noisy=1)") == -2
    assert low("bernoulli(noisy=1, scaled=10)") == -20
    assert low("bernoulli(scaled=[1, 5], max_consecutive=2)") == 0
    assert low("bernoulli(max_consecutive=2, scaled=[1, 5])") == 5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("abrupt(num_arms=0)", "num_arms must be a whole number of at least 1, got 0"),
        ("abrupt(hazard=2)", r"hazard must be a probability in \[0, 1\], got 2"),
        ("abrupt(times=[])", r"times must be a list of rising whole numbers .*, got \[\]"),
        ("abrupt(times=5)", "times must be a list of rising whole numbers .*, got 5"),
        ("abrupt(times=[0, 5])", "each of times must be a whole number of at least 1, got 0"),
        ("abrupt(times=[5, 5])", r"times must be a list of rising .*, got \[5, 5\]"),
        ("abrupt(times=[5, 'x'])", "each of times must be a whole number of at least 1, got 'x'"),
        ("random_walk(step=-1)", "step must be a number of at least 0, got -1"),
        ("flipping(every=0)", "every must be a whole number of at least 1, got 0"),
        ("rotting(law='fast')", "law must be one of step, geometric, power, got 'fast'"),
        ("rotting(num_arms=0)", "num_arms must be a whole number of at least 1, got 0"),
        ("rotting(life=0)", "life must be a whole number of at least 1, got 0"),
        ("rotting(variance=0)", "variance must be a positive number, got 0"),
        ("rising(pace=0)", "pace must be a positive number, got 0"),
        ("linear(context_dim=0)", "context_dim must be a whole number of at least 1, got 0"),
        ("linear(deviation=0)", "deviation must be a positive number, got 0"),
        ("rotating_linear(context_dim=1)", "context_dim must be a whole number of at least 2"),
        ("flipping_linear(every=1.5)", "every must be a whole number of at least 1, got 1.5"),
        ("bernoulli(sleeping=1.5)", r"sleeping must be a probability in \[0, 1\], got 1.5"),
        ("bernoulli(sleeping=[])", r"sleeping must be a probability, or .*, got \[\]"),
        ("bernoulli(num_arms=2, sleeping=[[1, 0, 1]])", "a list of lists of 2 numbers 0 or 1"),
        ("bernoulli(num_arms=2, sleeping=[[1, 0], [0, 0]])", "0 or 1, not all 0, got"),
        ("bernoulli(num_arms=2, sleeping=[1, 0])", "sleeping must be a probability, or a list of"),
        ("bernoulli(num_arms=2, sleeping=[[1, 2]])", "sleeping must be a probability, or a list"),
        ("bernoulli(noisy=-1)", "noisy must be a number of at least 0, got -1"),
        ("bernoulli(scaled=0)", "scaled must be a positive number, or a pair .*, got 0"),
        ("bernoulli(scaled=[-1, 0])", r"scaled must be a positive number, .*, got \[-1, 0\]"),
        ("bernoulli(scaled=[1, 2, 3])", "scaled must be a positive number, or a pair"),
        ("bernoulli(scaled='two')", "scaled must be a positive number, or a pair .*, got 'two'"),
    ],
)
def test_bad_settings_are_refused(text: str, message: str) -> None:
    refused(text, message)


def test_contexts_of_real_data_are_worth_something() -> None:
    world = 'table(file="river:image_segments", order="shuffled")'
    found = partial(simulate, environment=world, horizon=1000, runs=4)
    linear, blind = (found(policy).regret[:, -1].mean() for policy in ("lin_ts", "thompson"))
    assert linear < 0.6 * blind
