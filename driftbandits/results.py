"""Results on disk: pieces while the work goes on, one table when it is done.

    DIR/pieces/*.parquet        finished blocks of runs, named by everything that shaped them
    DIR/<experiment>/results.parquet      all runs of all lines; `docs/results.md` has the columns
    DIR/<experiment>/experiment.json, provenance.json, claims.json

A file appears whole or not at all, so that a process may be killed at any moment.
"""

import hashlib
import io
import json
import os
import re
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from filelock import FileLock, Timeout

from driftbandits.experiment import Experiment, Line
from driftbandits.experiment_file import as_table, experiment_from
from driftbandits.metrics import MORE_IS_BETTER, Summary, summarise
from driftbandits.traces import Trace
from driftbandits.tuning import settle

CUMULATED = ["regret", "realised_regret", "expected_reward", "reward", "best_pulls", "changes"]


class StoreError(OSError):
    """The disk does not do what it should; told in one line, with the remedy."""


class Results(NamedTuple):
    """What an experiment gave."""

    experiment: Experiment
    lines: list[Line]  # what is shown
    times: np.ndarray  # (points,)
    values: dict[str, np.ndarray]  # label of a line: (runs, points) of the experiment's measure
    table: pl.DataFrame  # everything; of a drawing: its numbers
    provenance: dict[str, Any]
    claims: list[dict[str, Any]]  # with their verdicts

    def final(self) -> dict[str, Summary]:
        """Each line's measure at the horizon, best mean first."""
        measure = self.experiment.measure
        sign = -1 if measure in MORE_IS_BETTER else 1
        finals = {label: summarise(values[:, -1], measure) for label, values in self.values.items()}
        return dict(sorted(finals.items(), key=lambda item: sign * item[1].mean))


def write_file(path: Path, content: bytes) -> None:
    """Writes a file so that it is there whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise StoreError(
            f"{path} could not be written: {error.strerror or error}; what is finished is kept, "
            "the same command goes on from there"
        ) from error


def write_json(path: Path, content: Any) -> None:
    write_file(path, (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode())


def write_parquet(path: Path, table: pl.DataFrame, about: Mapping[str, Any] | None = None) -> None:
    buffer = io.BytesIO()
    table.write_parquet(buffer, metadata={"driftbandits": json.dumps(about)} if about else None)
    write_file(path, buffer.getvalue())


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Keeps a second process out of the folder, and tells it who is inside.

    The system lets go of the lock when the process ends, however it ends.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / ".lock")
        lock.acquire(timeout=0)
    except Timeout:
        raise StoreError(
            f"{folder} is in use by {holder(folder)}; wait for it or stop it"
        ) from None
    except OSError as error:
        raise StoreError(f"{folder} cannot be used for results: {error.strerror}") from error
    try:
        who = {"process": os.getpid(), "machine": socket.gethostname()}
        command = " ".join([Path(sys.argv[0]).name, *sys.argv[1:]])
        since = time.strftime("%Y-%m-%d %H:%M:%S")
        write_json(folder / ".holder.json", {**who, "since": since, "command": command})
        for draft in folder.glob("pieces/.*.parquet.*"):  # of a process that was killed
            draft.unlink(missing_ok=True)
        yield
    finally:
        (folder / ".holder.json").unlink(missing_ok=True)
        lock.release()


def holder(folder: Path) -> str:
    try:
        who = json.loads((folder / ".holder.json").read_text())
        return (
            f"process {who['process']} on {who['machine']} since {who['since']} ({who['command']})"
        )
    except (OSError, ValueError, KeyError):
        return "another process"


class Piece(NamedTuple):
    """A block of runs of one policy in one environment: all that shapes its numbers."""

    policy: str  # with every setting written out
    environment: str
    horizon: int
    record_every: int
    seed: int
    first_run: int
    code: str  # of the program that makes the numbers

    def path(self, folder: Path) -> Path:
        digest = hashlib.sha256(json.dumps(self).encode()).hexdigest()[:16]
        name = re.sub(r"\W+", "-", self.policy.split("(")[0])
        return folder / "pieces" / f"{name}-{self.first_run:05d}-{digest}.parquet"


def write_piece(folder: Path, piece: Piece, trace: Trace, provenance: Mapping[str, Any]) -> None:
    table = as_frame(trace, piece.first_run)
    write_parquet(piece.path(folder), table, {"piece": piece._asdict(), **provenance})


def read_about(path: Path) -> dict[str, Any]:
    """What a Parquet file says about itself."""
    about: dict[str, Any] = json.loads(pl.read_parquet_metadata(path)["driftbandits"])
    return about


def check_piece(folder: Path, piece: Piece) -> dict[str, Any]:
    """A piece's provenance, which ends its file: who can read it has a whole piece."""
    path = piece.path(folder)
    with told_as_broken(path):
        about = read_about(path)
        if about["piece"] != piece._asdict():
            raise ValueError("it is not the piece that its name says")
        return about


def read_piece(folder: Path, piece: Piece) -> Trace:
    path = piece.path(folder)
    with told_as_broken(path):
        return as_trace(pl.read_parquet(path))


@contextmanager
def told_as_broken(path: Path) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise StoreError(
            f"{path} cannot be read ({str(error).splitlines()[0]}); delete it and give the same "
            "command again: only this piece is computed anew"
        ) from error


def as_frame(trace: Trace, first_run: int = 0) -> pl.DataFrame:
    """One row per run and recorded time."""
    runs, points = trace.regret.shape
    columns = {
        "run": np.repeat(np.arange(first_run, first_run + runs), points),
        "time": np.tile(trace.times, runs),
        **{name: getattr(trace, name).ravel() for name in CUMULATED},
    }
    pulls = pl.Series("pulls", trace.pulls.reshape(runs * points, -1))
    return pl.DataFrame(columns).with_columns(pulls)


def as_trace(table: pl.DataFrame) -> Trace:
    """One policy's runs in one environment, from a piece or from a table of results."""
    if missing := [name for name in CUMULATED if name not in table.columns]:
        raise StoreError(
            f"the results have no {', '.join(missing)}, as an older version wrote them; give the "
            "command that made them again"
        )
    if isinstance(table.schema["pulls"], pl.List):
        arms = pl.col("pulls").list.to_array(len(table["pulls"][0]))
        table = table.with_columns(arms)
    times = table["time"].unique().sort().to_numpy()
    points = len(times)
    pulls = table["pulls"].to_numpy()
    return Trace(
        times,
        **{name: table[name].to_numpy().reshape(-1, points) for name in CUMULATED},
        pulls=pulls.reshape(-1, points, pulls.shape[-1]),
    )


def write_results(folder: Path, results: Results) -> None:
    """The numbers, the experiment and its verdicts are one file, so that they belong together."""
    experiment = as_table(results.experiment)
    write_json(folder / "provenance.json", results.provenance)
    about = {"experiment": experiment, "claims": results.claims}
    write_parquet(folder / "results.parquet", results.table, about)
    write_json(folder / "experiment.json", experiment)
    write_json(folder / "claims.json", results.claims)


def finished(folder: Path) -> list[Path]:
    """The folders of finished experiments, oldest name first."""
    return sorted(path.parent for path in folder.glob("*/results.parquet"))


def stored_experiment(folder: Path) -> Experiment:
    """The experiment of a folder, without its table."""
    try:
        about = read_about(folder / "results.parquet")
    except Exception as error:
        raise unreadable(folder, error) from error
    return experiment_from(folder.name, about["experiment"])


def unreadable(folder: Path, error: Exception) -> StoreError:
    return StoreError(
        f"{folder} cannot be read ({str(error).splitlines()[0]}); give the command that made "
        "it again: finished pieces are used"
    )


def read_results(folder: str | Path) -> Results:
    """Reads one experiment's folder back."""
    folder = Path(folder)
    try:
        about = read_about(folder / "results.parquet")
        provenance = json.loads((folder / "provenance.json").read_text())
        table = pl.read_parquet(folder / "results.parquet")
    except Exception as error:
        raise unreadable(folder, error) from error
    experiment = experiment_from(folder.name, about["experiment"])
    if experiment.drawing:
        return Results(experiment, [], np.zeros(0), {}, table, provenance, about["claims"])
    times = table["time"].unique().sort().to_numpy()
    values = {
        str(label): part[experiment.measure].to_numpy().reshape(-1, len(times))
        for (label,), part in table.group_by("line", maintain_order=True)
    }
    settled = settle(experiment, values)
    return Results(
        experiment, settled.lines, times, settled.values, table, provenance, about["claims"]
    )
