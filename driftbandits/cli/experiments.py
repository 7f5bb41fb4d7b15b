"""The commands that simulate: `compare`, `run`, `reproduce`, and `report` for what they wrote.

What a command needs to finish its work is imported before the work begins, so that a missing
package is noticed first.
"""

import json
import threading
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click

from driftbandits.check import fail, integer, known
from driftbandits.simulation.cache_folder import keep_by_default
from driftbandits.simulation.threads import WorkError

if TYPE_CHECKING:
    from driftbandits.experiments.experiment import Experiment

PAPER = "paper/"  # the shipped experiments of the paper

jobs_option = click.option(
    "-j", "--jobs", type=int, help="Cores to use.  [default: all; the numbers are the same]"
)
on_option = click.option(
    "--on", metavar="ray[://HOST:PORT]",
    help="Compute on a Ray cluster: the running one (or a new one on this machine), or by address.",
)  # fmt: skip


@click.command()
@click.option(
    "-e", "--environment", default="sinusoidal", show_default=True,
    help='For example "sinusoidal(period=5000)".',
)  # fmt: skip
@click.option(
    "-p", "--policy", "policies", multiple=True,
    help='For example "tracker(width=2)"; repeat it for each policy.  '
    "[default: tracker, thompson, uniform]",
)  # fmt: skip
@click.option("-T", "--horizon", type=int, default=10_000, show_default=True, help="Pulls per run.")
@click.option("-n", "--runs", type=int, default=20, show_default=True, help="Repetitions.")
@click.option("--seed", type=int, default=0, show_default=True, help="Random seed.")
@click.option("--measure", default="regret", show_default=True, help="One of the measures above.")
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False),
    help="Keep the runs in this folder, to continue after a kill, and write a report.",
)  # fmt: skip
@jobs_option
@click.option("--plot", type=click.Path(path_type=Path), help="Draw the curves: png, svg or pdf.")
@click.option("--json", "in_json", is_flag=True, help="Print one JSON object instead of a table.")
def compare(
    environment: str,
    policies: tuple[str, ...],
    horizon: int,
    runs: int,
    seed: int,
    measure: str,
    out: Path | None,
    jobs: int | None,
    plot: Path | None,
    in_json: bool,
) -> None:
    """Simulate policies in the same worlds and rank them.

    Prints the mean over the runs at the horizon with its 95% interval, best first, then
    the 95th percentile and the worst run; below it the median of each mean that hangs on a few
    runs. The same seed gives the same numbers on any number of cores.

    \b
    Measures:
      regret            expected, against the best arm at each pull
      mean_regret       the same per pull
      realised_regret   on the sampled rewards of all arms (the paper's formula)
      policy_regret     against the oracle on its own trajectory (where pulls change the rewards)
      own_count_regret  against the best arm at the policy's own counts (another name for regret)
      window_regret     per pull, over the last twentieth of the horizon
      best_share        share of pulls on a best arm
      recovery_time     mean steps after a change until half of the pulls are of a best arm again

    \b
    Examples:
      driftbandits compare
      driftbandits compare -e abrupt -p tracker -p ucb -p glr_ucb
      driftbandits compare -e "bernoulli(max_consecutive=10)" -p tracker -p swa --plot limit.png
      driftbandits compare -e rotting -p swa -p fewa -T 30000 --measure policy_regret --json
    """
    if plot:
        from driftbandits.report.curves import check_figure_path, draw_curves

        check_figure_path(plot)
    if out:
        from driftbandits.report.page import write_report
    from driftbandits.cli.console import print_finals, watching
    from driftbandits.running.comparison import POLICIES, as_json
    from driftbandits.running.comparison import compare as compare_policies

    check_jobs(jobs)
    keep_by_default()
    # For the intervals; it takes a while, and Python is idle while XLA simulates.
    threading.Thread(target=import_module, args=("scipy.special",)).start()
    with watching(quiet=True) as watcher:
        results = compare_policies(
            policies or POLICIES,
            environment,
            horizon=horizon,
            runs=runs,
            seed=seed,
            measure=measure,
            out=out,
            cores=jobs,
            watcher=watcher,
        )
    if in_json:
        click.echo(json.dumps(as_json(results), indent=2))
    else:
        print_finals(results)
    if plot:
        click.echo(f"figure: {draw_curves(results, plot)}", err=in_json)
    if out:
        click.echo(f"report: {write_report(out, results=[results])}", err=in_json)


@click.command()
@click.argument("file")
@click.option(
    "--quick", is_flag=True, help="The small size that the file defines, for a first look."
)
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), help="Folder for the results."
)
@click.option("-n", "--runs", type=int, help="Override the file's.")
@click.option("-T", "--horizon", type=int, help="Override the file's.")
@click.option("--seed", type=int, help="Override the file's.")
@jobs_option
@on_option
def run(
    file: str,
    quick: bool,
    out: Path | None,
    runs: int | None,
    horizon: int | None,
    seed: int | None,
    jobs: int | None,
    on: str | None,
) -> None:
    """Run an experiment file or a folder of them, judge the claims and write a report.

    FILE is a TOML file, a folder of TOML files, or the name of a shipped file or folder from
    `driftbandits list experiments`. Results go to results/NAME (results/NAME-quick with --quick)
    unless --out says otherwise. Finished pieces are kept: killed at any moment, the same command
    continues where it was, and more runs cost only the new ones.

    \b
    Examples:
      driftbandits run paper/figure_1b --runs 8 --horizon 2000
      driftbandits run field --quick
      driftbandits run mine.toml --out results/mine --jobs 2
      driftbandits run mine.toml --on ray://head:10001
    """
    from driftbandits.experiments.files import read_experiments

    found = read_experiments(file)
    for experiment in found:
        if quick and not (experiment.quick or experiment.drawing):
            fail("--quick", "left out where a file has no `quick`", experiment.name)
    chosen = [experiment.made_quick() if quick else experiment for experiment in found]
    experiments = [experiment.with_size(runs, horizon, seed) for experiment in chosen]
    place = Path(file).resolve()
    name = (place.name if place.is_dir() else place.stem) + ("-quick" if quick else "")
    run_and_report(experiments, out or Path("results") / name, jobs, on)


@click.command()
@click.option("--quick", is_flag=True, help="Few runs, short horizons: takes minutes.")
@click.option("--figure", "figures", multiple=True, help="Only this figure, e.g. 1b; repeatable.")
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), help="Folder for the results."
)
@jobs_option
@on_option
def reproduce(
    quick: bool, figures: tuple[str, ...], out: Path | None, jobs: int | None, on: str | None
) -> None:
    """Reproduce every figure of the paper and judge its claims.

    Results go to results/paper, or results/quick with --quick. The full size takes an hour or two
    on two cores; killed at any moment, the same command continues where it was.

    \b
    Examples:
      driftbandits reproduce --quick
      driftbandits reproduce --figure 1b --figure 4
      driftbandits reproduce --on ray
    """
    from driftbandits.experiments.files import read_experiment, shipped

    names = {
        name.removeprefix(f"{PAPER}figure_").removeprefix(PAPER): name
        for name in shipped()
        if name.startswith(PAPER)
    }
    for figure in figures:
        known("figure", figure, names)
    chosen = [read_experiment(name) for key, name in names.items() if not figures or key in figures]
    experiments = [experiment.made_quick() if quick else experiment for experiment in chosen]
    out = out or Path("results") / ("quick" if quick else "paper")
    run_and_report(experiments, out, jobs, on)


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--title", help="Title of the page.")
def report(folder: Path, title: str | None) -> None:
    """Rewrite the report of a folder of results: page, figures, tables, claims.json."""
    from driftbandits.report.page import write_report

    click.echo(f"report: {write_report(folder, title)}")


def check_jobs(jobs: int | None) -> None:
    if jobs is not None:
        integer(jobs=jobs)


def run_and_report(
    experiments: "list[Experiment]", out: Path, jobs: int | None, on: str | None
) -> None:
    """What `run` and `reproduce` have in common."""
    from driftbandits.cli.console import print_results, print_verdicts, watching
    from driftbandits.report.page import write_report
    from driftbandits.running.runner import run_experiments
    from driftbandits.running.store import finished

    check_jobs(jobs)
    keep_by_default()
    try:
        with watching() as watcher:
            found = run_experiments(experiments, out, cores=jobs, on=on, watcher=watcher)
    except WorkError:
        if finished(out):  # the experiments that are complete
            click.echo(f"report: {write_report(out)}")
        raise
    print_results(found)
    page = write_report(out, results=found)
    print_verdicts([claim for results in found for claim in results.named_claims()])
    click.echo(f"report: {page}")
