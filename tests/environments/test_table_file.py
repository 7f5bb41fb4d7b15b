"""Environments from files: what is read, replayed and refused, and the tables that river ships."""

import os
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from driftbandits import InputError, build_environment, simulate
from driftbandits.environments import table_file
from driftbandits.environments.adversarial import adversarial
from driftbandits.environments.table_file import fingerprint_of_file
from driftbandits.environments.table_reader import read_table
from tests.environments.courses import course

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
    with pytest.raises(InputError, match=message):
        build_environment(f"table(file={str(path)!r}{settings})")


def test_files_that_are_none_are_refused(tmp_path: Path) -> None:
    wrong = tmp_path / "log.parquet"
    wrong.write_text("a,b\n1,2\n")
    text = tmp_path / "log.txt"
    text.write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match=r"file must be a CSV or Parquet .*, got 'no/such.csv'"):
        build_environment('table(file="no/such.csv")')
    with pytest.raises(InputError, match=r"file must be a CSV or Parquet file that can be read"):
        build_environment(f"table(file={str(tmp_path)!r})")
    with pytest.raises(InputError, match=r"file must be a table that can be read"):
        build_environment(f"table(file={str(wrong)!r})")
    with pytest.raises(InputError, match=r"file must be a name that ends with .csv, .csv.gz or"):
        build_environment(f"table(file={str(text)!r})")
    with pytest.raises(
        InputError, match=r"file must be the name of a file, or river:<name>, got None"
    ):
        build_environment("table(file=none)")
    with pytest.raises(
        InputError, match=r"file must be the name of a file, or river:<name>, got 3"
    ):
        build_environment("adversarial(file=3)")


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
    with pytest.raises(
        InputError, match=r"file must be a CSV or Parquet file that can be read, got 'log.csv'"
    ):
        build_environment(choice)


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
    with pytest.raises(InputError, match=r"the name after river: must be one of .* mean 'sp500'"):
        build_environment('table(file="river:sp50")')
    monkeypatch.setitem(table_file.RIVER_FILES, "sp500", "not_yet.csv.gz")
    with pytest.raises(InputError, match=r"takes a newer one: pip install --upgrade 'drift"):
        read_table("river:sp500")
    monkeypatch.setattr(table_file.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(InputError, match=r'^file=river:image_segments needs the extra "data": pip'):
        read_table("river:image_segments")


def test_contexts_of_real_data_are_worth_something() -> None:
    world = 'table(file="river:image_segments", order="shuffled")'
    found = partial(simulate, environment=world, horizon=1000, runs=4)
    linear, without_context = (
        found(policy).regret[:, -1].mean() for policy in ("lin_ts", "thompson")
    )
    assert linear < 0.6 * without_context
