"""The command line: parse, call, print. JAX is imported by the commands that need it."""

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from driftbandits import __version__
from driftbandits.check import InputError, fail, known, whole
from driftbandits.service_commands import keys, serve
from driftbandits.work import WorkError

if TYPE_CHECKING:
    from driftbandits.experiment import Experiment

KINDS = ["policies", "environments", "experiments"]
PAPER = "paper/"  # the shipped experiments of the paper

jobs_option = click.option(
    "-j", "--jobs", type=int, help="Cores to use; without it all of them. The numbers are the same."
)
on_option = click.option(
    "--on", metavar="ray[://HOST:PORT]",
    help="Compute on a Ray cluster: the one at hand (else one is started here), or by its address.",
)  # fmt: skip


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="driftbandits")
def cli() -> None:
    """Bandits whose rewards drift: compare policies, check claims, decide for real users.

    \b
    Policies and environments are written as a name with settings in brackets:
      tracker        "tracker(width=2)"        "sinusoidal(num_arms=5, max_consecutive=10)"

    The policy to start with is tracker: it finds out by itself how fast rewards drift.

    \b
    Start with:
      driftbandits compare
      driftbandits explain tracker
      driftbandits list
      driftbandits compare -e abrupt -p tracker -p ucb --horizon 5000 --runs 8
      driftbandits reproduce --quick
      driftbandits serve --without-keys
    """


@cli.command("list")
@click.argument("kind", type=click.Choice(KINDS), required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def list_(kind: str | None, as_json: bool) -> None:
    """Show policies and environments with their settings and defaults, and the experiments."""
    from driftbandits.catalogue import catalogue, print_catalogue

    listing = catalogue([kind] if kind else KINDS)
    if as_json:
        click.echo(json.dumps(listing, indent=2))
    else:
        print_catalogue(listing)


@cli.command()
@click.argument("name")
def explain(name: str) -> None:
    """Tell what a policy or an environment does, by which formula, and when to use it.

    \b
    Examples:
      driftbandits explain tracker
      driftbandits explain delayed
    """
    from driftbandits.catalogue import explain as text_of

    click.echo(text_of(name), nl=False)


@cli.command()
@click.option(
    "-e", "--environment", default="sinusoidal", show_default=True,
    help='As in "sinusoidal(period=5000)".',
)  # fmt: skip
@click.option(
    "-p", "--policy", "policies", multiple=True,
    help='As in "tracker(width=2)"; give it once for each policy.  '
    "[default: tracker, thompson, uniform]",
)  # fmt: skip
@click.option("-T", "--horizon", type=int, default=10_000, show_default=True, help="Pulls per run.")
@click.option("-n", "--runs", type=int, default=20, show_default=True, help="Repetitions.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of everything random.")
@click.option("--measure", default="regret", show_default=True, help="One of those above.")
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False),
    help="Keep the runs in this folder, to go on after a kill, and write a report.",
)  # fmt: skip
@jobs_option
@click.option("--plot", type=click.Path(path_type=Path), help="Draw the curves: png, svg or pdf.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
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
    as_json: bool,
) -> None:
    """Let policies pull in the same worlds, and rank them.

    Prints the mean over the runs at the horizon with its 95% bootstrap interval, best first, beside
    it what 95% of the runs are better than and the worst run. The same seed gives the same numbers
    on any number of cores.

    \b
    Measures:
      regret            expected, against the best arm of the moment
      mean_regret       the same per pull
      realised_regret   on sampled rewards of all arms, the paper's formula
      policy_regret     against the oracle on its own trajectory (where pulls change the world)
      own_count_regret  against the best arm at the policy's own counts (another name for regret)
      window_regret     per pull, over the last twentieth of the horizon
      best_share        share of pulls on an arm that was best at the moment
      recovery_time     mean steps until half of the pulls are of a best arm again after a change

    \b
    Examples:
      driftbandits compare
      driftbandits compare -e abrupt -p tracker -p ucb -p glr_ucb
      driftbandits compare -e "bernoulli(max_consecutive=10)" -p tracker -p swa --plot limit.png
      driftbandits compare -e rotting -p swa -p fewa -T 30000 --measure policy_regret --json
    """
    from driftbandits.comparison import POLICIES
    from driftbandits.comparison import as_json as in_json
    from driftbandits.comparison import compare as run
    from driftbandits.compute import keep_compiled_programs
    from driftbandits.console import print_finals, watching
    from driftbandits.report.curves import check_figure_path, draw_curves
    from driftbandits.report.page import write_report

    check_jobs(jobs)
    if plot:
        check_figure_path(plot)
    keep_compiled_programs()
    with watching(quiet=True) as watcher:
        results = run(
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
    if as_json:
        click.echo(json.dumps(in_json(results), indent=2))
    else:
        print_finals(results)
    if plot:
        click.echo(f"figure: {draw_curves(results, plot)}", err=as_json)
    if out:
        click.echo(f"report: {write_report(out)}", err=as_json)


@cli.command()
@click.argument("file")
@click.option("--quick", is_flag=True, help="The file's own small size, for a first look.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Where results go.")
@click.option("-n", "--runs", type=int, help="Instead of the file's.")
@click.option("-T", "--horizon", type=int, help="Instead of the file's.")
@click.option("--seed", type=int, help="Instead of the file's.")
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
    """Run an experiment file, or a folder of them, judge the claims, write a report.

    FILE is a TOML file, a folder of TOML files, or the name of a shipped one or of a shipped folder
    from `driftbandits list experiments`. Results go to results/NAME unless --out says otherwise
    (results/NAME-quick with --quick, which takes each file's own small size). Finished pieces are
    kept: killed at any moment, the same command goes on where it was, and more runs cost only the
    new ones.

    \b
    Examples:
      driftbandits run paper/figure_1b --runs 8 --horizon 2000
      driftbandits run field --quick
      driftbandits run mine.toml --out results/mine --jobs 2
      driftbandits run mine.toml --on ray://head:10001
    """
    from driftbandits.experiment_file import read_experiments

    found = read_experiments(file)
    for experiment in found:
        if quick and not (experiment.quick or experiment.drawing):
            fail("--quick", "left out where a file has no `quick`", experiment.name)
    chosen = [experiment.made_quick() if quick else experiment for experiment in found]
    experiments = [experiment.with_size(runs, horizon, seed) for experiment in chosen]
    place = Path(file).resolve()
    name = (place.name if place.is_dir() else place.stem) + ("-quick" if quick else "")
    run_and_report(experiments, out or Path("results") / name, jobs, on)


@cli.command()
@click.option("--quick", is_flag=True, help="Few runs, short horizons: a look in minutes.")
@click.option("--figure", "figures", multiple=True, help="Only this one, e.g. 1b; repeatable.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Where results go.")
@jobs_option
@on_option
def reproduce(
    quick: bool, figures: tuple[str, ...], out: Path | None, jobs: int | None, on: str | None
) -> None:
    """Run every figure of the paper again and judge its claims.

    Results go to results/paper, or results/quick with --quick. The full size takes an hour or two
    on two cores; killed at any moment, the same command goes on where it was.

    \b
    Examples:
      driftbandits reproduce --quick
      driftbandits reproduce --figure 1b --figure 4
      driftbandits reproduce --on ray
    """
    from driftbandits.experiment_file import read_experiment, shipped

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


@cli.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--title", help="Of the page.")
def report(folder: Path, title: str | None) -> None:
    """Write the report of a folder of results anew: page, figures, tables, claims.json."""
    from driftbandits.report.page import write_report

    click.echo(f"report: {write_report(folder, title)}")


def check_jobs(jobs: int | None) -> None:
    if jobs is not None:
        whole(jobs=jobs)


def run_and_report(
    experiments: "list[Experiment]", out: Path, jobs: int | None, on: str | None
) -> None:
    """What `run` and `reproduce` have in common."""
    from driftbandits.compute import keep_compiled_programs
    from driftbandits.console import print_finals, print_ranking, print_verdicts, watching
    from driftbandits.ranking import is_field
    from driftbandits.report.page import write_report
    from driftbandits.results import finished
    from driftbandits.runner import run_experiments

    check_jobs(jobs)
    keep_compiled_programs()
    try:
        with watching() as watcher:
            found = run_experiments(experiments, out, cores=jobs, on=on, watcher=watcher)
    except WorkError:
        if finished(out):  # the experiments that are complete
            click.echo(f"report: {write_report(out)}")
        raise
    for results in found:
        if is_field(results):
            print_ranking(results)
        elif len(found) == 1 and results.values:
            print_finals(results)
    page = write_report(out)
    names = {results.experiment.name for results in found}
    claims = json.loads((out / "claims.json").read_text())
    print_verdicts([claim for claim in claims if claim["experiment"] in names])
    click.echo(f"report: {page}")


cli.add_command(serve)
cli.add_command(keys)


def main() -> None:
    """Runs the command line; a user's mistake is one line and exit code 2, never a traceback."""
    try:
        cli(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except InputError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
    except (OSError, WorkError) as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(1)
    except (KeyboardInterrupt, click.Abort):
        click.echo("\nstopped", err=True)
        os._exit(130)  # the threads of a simulation would keep the interpreter waiting


if __name__ == "__main__":
    main()
