"""The commands that simulate: `compare`, `run` and `reproduce`, and `report` for their results.

What a command needs at the end is imported before the work begins, so that a missing package is
reported at once.
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

folder_type = click.Path(path_type=Path, file_okay=False)
jobs_option = click.option(
    "-j",
    "--jobs",
    type=int,
    help="Number of cores to use; the results do not depend on it.  [default: all]",
)
on_option = click.option(
    "--on", metavar="ray[://HOST:PORT]",
    help='Compute on a Ray cluster: "ray" for the one that is running, or else a new one on this '
    "machine; ray://HOST:PORT for one elsewhere.  [default: compute here]",
)  # fmt: skip


@click.command()
@click.option(
    "-e", "--environment", default="sinusoidal", show_default=True,
    help='The environment, for example "sinusoidal(period=5000)"; see `list environments`.',
)  # fmt: skip
@click.option(
    "-p", "--policy", "policies", multiple=True,
    default=["tracker", "thompson", "uniform"], show_default=True,
    help='A policy, for example "tracker(width=2)"; repeat it for each one; see `list policies`.',
)  # fmt: skip
@click.option("-T", "--horizon", type=int, default=10_000, show_default=True, help="Pulls per run.")
@click.option(
    "-n", "--runs", type=int, default=20, show_default=True,
    help="Independent repetitions; more make the intervals narrower.",
)  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True, help="Random seed.")
@click.option("--measure", default="regret", show_default=True, help="One of the measures above.")
@click.option(
    "--out", type=folder_type,
    help="Store the runs in this folder, so that an interrupted command resumes, and write a "
    "report there.  [default: store nothing]",
)  # fmt: skip
@jobs_option
@click.option(
    "--plot", type=click.Path(path_type=Path),
    help="Draw the curves into this file, which ends in .png, .svg or .pdf.  [default: no figure]",
)  # fmt: skip
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

    The table has the best policy first. It shows the mean over the runs with its 95% interval, the
    95th percentile and the worst run, all after the last pull. If a few runs dominate a mean, the
    median is printed below the table. The same seed gives the same numbers with any number of
    cores.

    Measures:

    \b
        regret            expected, against the best arm at each pull
        mean_regret       the same per pull
        realised_regret   on the sampled rewards of all arms (the paper's formula)
        policy_regret     against the oracle's own trajectory (where pulls change the rewards)
        own_count_regret  against the best arm at the policy's own counts (the same as regret)
        window_regret     per pull, over the last twentieth of the horizon
        best_share        share of pulls of a best arm
        recovery_time     mean pulls after a change until half of them are of a best arm

    Examples:

    \b
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
    from driftbandits.running.comparison import as_json
    from driftbandits.running.comparison import compare as compare_policies

    check_jobs(jobs)
    keep_by_default()
    # For the intervals; it takes a while, and Python is idle while XLA simulates.
    threading.Thread(target=import_module, args=("scipy.special",)).start()
    with watching(quiet=True) as watcher:
        results = compare_policies(
            policies,
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
@click.option("--quick", is_flag=True, help="Run at the small size that the file gives as `quick`.")
@click.option(
    "--out", type=folder_type,
    help="Folder for the results.  [default: results/NAME, or results/NAME-quick with --quick]",
)  # fmt: skip
@click.option(
    "-n", "--runs", type=int, help="Independent repetitions.  [default: those of the file]"
)
@click.option("-T", "--horizon", type=int, help="Pulls per run.  [default: that of the file]")
@click.option("--seed", type=int, help="Random seed.  [default: that of the file]")
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
    """Run experiment files, judge their claims and write a report.

    FILE is a TOML file, a folder of TOML files, or the name of an experiment or of a folder of
    experiments that come with the package; see `driftbandits list experiments`.

    Finished work is stored with the results. If the command is interrupted, repeat it and it
    resumes. More runs cost only the new ones.

    Examples:

    \b
        driftbandits run paper/figure_1b --runs 8 --horizon 2000
        driftbandits run field --quick
        driftbandits run mine.toml --out results/mine --jobs 2
        driftbandits run mine.toml --on ray://head:10001
    """
    from driftbandits.experiments.files import read_experiments

    found = read_experiments(file)
    for experiment in found:
        if quick and not (experiment.quick or experiment.drawing):
            fail("--quick", "left out for a file without the key `quick`", experiment.name)
    chosen = [experiment.made_quick() if quick else experiment for experiment in found]
    experiments = [experiment.with_size(runs, horizon, seed) for experiment in chosen]
    place = Path(file).resolve()
    name = (place.name if place.is_dir() else place.stem) + ("-quick" if quick else "")
    run_and_report(experiments, out or Path("results") / name, jobs, on)


@click.command()
@click.option("--quick", is_flag=True, help="Use fewer runs and pulls; takes about five minutes.")
@click.option(
    "--figure", "figures", multiple=True,
    help="Only this figure, for example 1b; repeat it for several.  [default: all]",
)  # fmt: skip
@click.option(
    "--out", type=folder_type,
    help="Folder for the results.  [default: results/paper, or results/quick with --quick]",
)  # fmt: skip
@jobs_option
@on_option
def reproduce(
    quick: bool, figures: tuple[str, ...], out: Path | None, jobs: int | None, on: str | None
) -> None:
    """Reproduce the figures of the paper and judge its claims.

    The full size takes about an hour on two cores. If the command is interrupted, repeat it and it
    resumes.

    Examples:

    \b
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
@click.option("--title", help="Title of the page.  [default: made from the experiments]")
def report(folder: Path, title: str | None) -> None:
    """Write the report of a folder of results again.

    DIR is the folder that `run`, `reproduce` or `compare --out` has written. Nothing is simulated:
    the page, the figures, the tables and claims.json are made from the stored results.

    Examples:

    \b
        driftbandits report results/paper
        driftbandits report results/mine --title "Which policy for our shop?"
    """
    from driftbandits.report.page import write_report

    click.echo(f"report: {write_report(folder, title)}")


def check_jobs(jobs: int | None) -> None:
    if jobs is not None:
        integer(jobs=jobs)


def run_and_report(
    experiments: "list[Experiment]", out: Path, jobs: int | None, on: str | None
) -> None:
    """Runs experiments and writes their report, for `run` and `reproduce`."""
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
