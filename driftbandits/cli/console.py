"""Tables and progress in the terminal."""

import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from driftbandits.experiments.effects import FAILS, HOLDS, UNDECIDED
from driftbandits.experiments.experiment import Experiment, Line
from driftbandits.experiments.metrics import Summary
from driftbandits.experiments.ranking import is_field, kinds_of, scores, standings
from driftbandits.experiments.results import Results
from driftbandits.experiments.tuning import how_tuned
from driftbandits.report.style import duration, number
from driftbandits.report.wording import deciding, hanging_text, verdict_text
from driftbandits.running.compute import Failed
from driftbandits.running.planning import PieceJob
from driftbandits.running.watcher import Watcher
from driftbandits.simulation.threads import available_cores

VERDICT_STYLES = {HOLDS: "bold blue", FAILS: "bold red", UNDECIDED: "bold dim"}


class Outlook:
    """How much of the work is done, and how long the rest will take.

    A step of one policy may cost a thousand times that of another, so each policy has its own rate.
    It is taken from the time between its reports, or from the times that a cluster reports. A
    policy without a report yet gets the mean rate of the others.
    """

    def __init__(self, jobs: Sequence[PieceJob], kept: Sequence[PieceJob] = ()) -> None:
        self._left: dict[str, float] = defaultdict(float)
        self._done: dict[str, float] = defaultdict(float)
        for job in jobs:
            self._left[policy_name(job)] += job.steps
        for job in kept:
            self._done[policy_name(job)] += job.steps
        self._timed: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])  # seconds, steps
        self._last_news: dict[
            PieceJob, tuple[float, int]
        ] = {}  # when the last report came, steps until then
        self.cores = available_cores()

    clock = staticmethod(time.monotonic)

    def advanced(self, job: PieceJob, steps: int, seconds: float | None = None) -> None:
        now, name = self.clock(), policy_name(job)
        last, before = self._last_news.pop(job, (None, 0))
        if seconds is None and last is not None:
            seconds = now - last
        if seconds is not None:
            self._timed[name][0] += seconds
            self._timed[name][1] += steps
        if before + steps < job.steps:
            self._last_news[job] = now, before + steps
        self._left[name] -= steps
        self._done[name] += steps

    def failed(self, job: PieceJob) -> None:
        self._left[policy_name(job)] -= job.steps

    def _cost(self, steps: dict[str, float]) -> float:
        rates = {name: seconds / n for name, (seconds, n) in self._timed.items() if n}
        if not rates:
            return sum(steps.values())
        usual = sum(rates.values()) / len(rates)
        return sum(count * rates.get(name, usual) for name, count in steps.items())

    def share(self) -> float:
        done, left = self._cost(self._done), self._cost(self._left)
        return done / (done + left) if done + left else 1.0

    def seconds_left(self) -> float | None:
        timed = any(steps for _, steps in self._timed.values())
        return self._cost(self._left) / self.cores if timed else None


def policy_name(job: PieceJob) -> str:
    return job.piece.policy.split("(")[0]


class LineByLine(Watcher):
    """For a log file: a line for each finished policy and each verdict."""

    def __init__(self) -> None:
        self._begin = time.monotonic()

    def say(self, text: str) -> None:
        click.echo(text, err=True)

    def begin(self, jobs: Sequence[PieceJob], kept: Sequence[PieceJob]) -> None:
        if kept:
            self.say(f"{len(kept)} finished pieces found, {len(jobs)} to do")

    def failed(self, job: PieceJob, why: Failed) -> None:
        piece = job.piece
        what = f"{piece.policy} in {piece.environment}, runs from {piece.first_run}"
        self.say(f"failed: {what}: {why.node}: {why.reason}")

    def line_done(self, experiment: Experiment, line: Line, seconds: float) -> None:
        passed = duration(time.monotonic() - self._begin)
        self.say(f"{passed:>7}  {experiment.name}: {line.label} ({duration(seconds)} of one core)")

    def experiment_done(self, results: Results) -> None:
        for claim in results.claims:
            self.say(f"         {results.experiment.name}: {verdict_text(claim)}: {claim['text']}")


class Bar(LineByLine):
    """For a terminal: the same lines above a progress bar with the time left."""

    def __init__(self, bar: Progress) -> None:
        super().__init__()
        self._bar = bar
        self._lock = threading.Lock()

    def say(self, text: str) -> None:
        self._bar.console.print(text, markup=False, highlight=False)

    def begin(self, jobs: Sequence[PieceJob], kept: Sequence[PieceJob]) -> None:
        super().begin(jobs, kept)
        self._outlook = Outlook(jobs, kept)
        doing = "compiling" if jobs else "nothing to do"
        self._task = self._bar.add_task(doing, total=1.0, left="")
        self._bar.update(self._task, completed=self._outlook.share())

    def cores_used(self, cores: int) -> None:
        self._outlook.cores = cores

    def advanced(self, job: PieceJob, steps: int, seconds: float | None = None) -> None:
        with self._lock:
            self._outlook.advanced(job, steps, seconds)
            self._show()

    def failed(self, job: PieceJob, why: Failed) -> None:
        super().failed(job, why)
        with self._lock:
            self._outlook.failed(job)
            self._show()

    def _show(self) -> None:
        left = self._outlook.seconds_left()
        self._bar.update(
            self._task,
            description="running",
            completed=self._outlook.share(),
            left="" if left is None else f"about {duration(left)} left",
        )


@contextmanager
def watching(quiet: bool = False) -> Iterator[Watcher]:
    """A progress bar on a terminal; elsewhere lines, or nothing."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield Watcher() if quiet else LineByLine()
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
    )
    with Progress(*columns, console=console) as bar:
        yield Bar(bar)


def standard_output() -> Console:
    return Console(width=None if Console().is_terminal else 120, highlight=False)


def print_results(found: Sequence[Results]) -> None:
    """Prints the ranking of every field of policies, and of a single experiment."""
    for results in found:
        if is_field(results):
            print_ranking(results)
        elif len(found) == 1 and results.values:
            print_finals(results)


def print_finals(results: Results) -> None:
    """Prints the ranking at the horizon, best first."""
    experiment, runs = results.experiment, len(next(iter(results.values.values())))
    title = (
        f"{experiment.title}: {experiment.measure} after {experiment.horizon} pulls, "
        f"{runs} runs, seed {experiment.seed}"
    )
    table = Table()
    table.add_column("", no_wrap=True)
    table.add_column("policy", overflow="fold")  # what gives way on a narrow terminal
    for column in ("mean", "95% interval", "95th\npercentile", "worst\nrun"):
        table.add_column(column, justify="right", no_wrap=True)
    finals = results.final()
    for rank, (policy, final) in enumerate(finals.items(), start=1):
        missing = np.isnan(final.low)
        interval = "one run" if missing else f"{number(final.low)} to {number(final.high)}"
        bad = number(final.percentile_95), number(final.worst)
        table.add_row(str(rank), escape(policy), number(final.mean), interval, *bad)
    console = standard_output()
    console.print(f"[bold]{escape(title)}[/bold]")
    console.print(table)
    print_hanging(finals, runs)
    print_tuning(results.experiment)


def print_hanging(finals: Mapping[str, Summary], runs: int) -> None:
    """Prints which means are dominated by a few runs, if any."""
    for policy, final in finals.items():
        if text := hanging_text(final.as_json(), runs):
            standard_output().print(escape(f"{policy}: {text}"))


def print_ranking(results: Results) -> None:
    """Prints the mean rank of each policy over the problems of a field, best first."""
    for tuned in kinds_of(results):
        table = Table("", "policy")
        for column in ("mean rank", "95% interval", "wins", "losses"):
            table.add_column(column, justify="right")
        for place, standing in enumerate(standings(scores(results, tuned)), start=1):
            table.add_row(
                str(place),
                escape(standing.policy),
                f"{standing.rank:.1f}",
                f"{standing.low:.1f} to {standing.high:.1f}",
                str(standing.wins),
                str(standing.losses),
            )
        settings = "tuned" if tuned else "default settings"
        title = f"{results.experiment.title}: over {len(results.experiment.environments)} problems"
        standard_output().print(f"[bold]{escape(title)}, {settings}[/bold]", table, sep="\n")
    print_tuning(results.experiment)


def print_tuning(experiment: Experiment) -> None:
    if experiment.tuning:
        standard_output().print(how_tuned(experiment))


def print_verdicts(claims: list[dict[str, Any]]) -> None:
    """Prints all claims with their verdicts."""
    if not claims:
        return
    table = Table("experiment", "claim", "verdict", "by")
    for claim in claims:
        style = VERDICT_STYLES[claim["verdict"]]
        judged = f"[{style}]{verdict_text(claim)}[/{style}]"
        by = escape(deciding(claim))
        table.add_row(claim["experiment"], escape(claim["text"]), judged, by)
    standard_output().print(table)
