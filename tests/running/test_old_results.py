"""Results folders of older versions are read, and their report can be written anew."""

import csv
import shutil
from pathlib import Path

import pytest

from driftbandits import read_results, write_report

OLD = Path(__file__).with_name("old_results")


LATER = ["low", "high", "median_low", "median_high", "few_runs", "few_share"]


def rows_of(folder: Path) -> list[dict[str, str]]:
    """The final table without what later versions draw otherwise or have added."""
    rows = csv.DictReader((folder / "tiny" / "table.csv").read_text().splitlines())
    return [{name: x for name, x in row.items() if name not in LATER} for row in rows]


@pytest.mark.parametrize("version", ["0.7.0"])
def test_an_old_folder_is_read(version: str, tmp_path: Path) -> None:
    folder = shutil.copytree(OLD / version, tmp_path / version)
    expected = rows_of(folder)
    results = read_results(folder / "tiny")
    assert results.experiment.title == "Tiny"
    assert [claim["verdict"] for claim in results.claims] == ["undecided"]
    found = {policy: final.mean for policy, final in results.final().items()}
    assert found == {row["line"]: pytest.approx(float(row["mean"])) for row in expected}
    (folder / "tiny" / "table.csv").unlink()
    assert "A window beats chance." in write_report(folder).read_text()
    assert rows_of(folder) == expected
