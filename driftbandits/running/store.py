"""Results on disk, a folder for each experiment.

DIR/<experiment>/results.parquet      all runs of all lines (docs/reference/results.md)
DIR/<experiment>/experiment.json, provenance.json, claims.json
"""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import polars as pl

from driftbandits.error_text import first_line
from driftbandits.experiments.experiment import Experiment
from driftbandits.experiments.files import as_table, experiment_from
from driftbandits.experiments.results import Results, as_it_is
from driftbandits.experiments.tuning import apply_tuning
from driftbandits.running.folder import StoreError, write_json
from driftbandits.running.parquet import read_metadata, write_parquet

TABLE = "results.parquet"


def write_results(folder: Path, results: Results) -> None:
    """Writes the numbers, the experiment and its verdicts into one file, so they always match."""
    experiment = as_table(results.experiment)
    write_json(folder / "provenance.json", results.provenance)
    metadata = {"experiment": experiment, "claims": results.claims}
    write_parquet(folder / TABLE, results.table, metadata)
    write_json(folder / "experiment.json", experiment)
    write_json(folder / "claims.json", results.claims)


def finished(folder: Path) -> list[Path]:
    """The folders of finished experiments, in alphabetical order."""
    return sorted(path.parent for path in folder.glob(f"*/{TABLE}"))


def stored_experiment(folder: Path) -> Experiment:
    """The experiment of a folder, without its table."""
    try:
        metadata = read_metadata(folder / TABLE)
    except Exception as error:
        raise unreadable(folder, error) from error
    return experiment_from(folder.name, metadata["experiment"])


def unreadable(folder: Path, error: Exception) -> StoreError:
    return StoreError(
        f"{folder} cannot be read ({first_line(error)}); repeat the command that made "
        "it, which reuses finished work"
    )


def table_on_disk(results: Results, folder: Path) -> Results:
    """The same results, with a table that is read from their folder when it is first used."""
    return replace(results, make_table=partial(pl.read_parquet, folder / TABLE))


def read_results(folder: str | Path) -> Results:
    """Reads the results of one experiment from its folder.

    Args:
        folder: The folder of one experiment: `results/mine/NAME` for results that were written to
            `results/mine`.

    Returns:
        What `run_experiment` returned when it wrote them.

    Raises:
        StoreError: If the folder cannot be read.

    Example:
        ```python
        from driftbandits import compare, read_results

        compare(["ucb", "uniform"], horizon=200, runs=4, out="results/mine")
        results = read_results("results/mine/comparison")
        print(results.final()["ucb"].mean)
        ```
    """
    folder = Path(folder)
    try:
        metadata = read_metadata(folder / TABLE)
        provenance = json.loads((folder / "provenance.json").read_text())
        table = pl.read_parquet(folder / TABLE)
    except Exception as error:
        raise unreadable(folder, error) from error
    experiment, claims = experiment_from(folder.name, metadata["experiment"]), metadata["claims"]
    if experiment.drawing:
        return Results.of_drawing(experiment, provenance, claims, table)
    times = table["time"].unique().sort().to_numpy()
    values = {
        str(label): part[experiment.measure].to_numpy().reshape(-1, len(times))
        for (label,), part in table.group_by("line", maintain_order=True)
    }
    lines, shown = apply_tuning(experiment, values)
    return Results(
        experiment=experiment,
        lines=lines,
        times=times,
        values=shown,
        provenance=provenance,
        claims=claims,
        make_table=partial(as_it_is, table),
    )
