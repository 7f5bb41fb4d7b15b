"""The command line: parse, call, print. JAX is imported by the commands that need it."""

import json
import os
import sys
from pathlib import Path

import click

from driftbandits import __version__
from driftbandits.check import InputError

KINDS = ["policies", "environments"]


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="driftbandits")
def cli() -> None:
    """Bandits whose rewards drift: compare policies, see which one copes.

    \b
    Policies and environments are written as a name with settings in brackets:
      recurrent      "recurrent(energy=0)"      "sinusoidal(num_arms=5, max_consecutive=10)"

    \b
    Start with:
      driftbandits list
      driftbandits compare -e sinusoidal -p recurrent -p thompson --horizon 5000 --runs 8
    """


@cli.command("list")
@click.argument("kind", type=click.Choice(KINDS), required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def list_(kind: str | None, as_json: bool) -> None:
    """Show the policies and environments, with their settings and defaults."""
    from driftbandits.catalogue import catalogue
    from driftbandits.console import print_catalogue

    listing = catalogue([kind] if kind else KINDS)
    if as_json:
        click.echo(json.dumps(listing, indent=2))
    else:
        print_catalogue(listing)


@cli.command()
@click.option("-e", "--environment", required=True, help='As in "sinusoidal(period=5000)".')
@click.option(
    "-p", "--policy", "policies", required=True, multiple=True,
    help='As in "recurrent(energy=0)"; give it once for each policy.',
)  # fmt: skip
@click.option("-T", "--horizon", type=int, default=10_000, show_default=True, help="Pulls per run.")
@click.option("-n", "--runs", type=int, default=20, show_default=True, help="Repetitions.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of everything random.")
@click.option("--measure", default="regret", show_default=True, help="One of those above.")
@click.option("--plot", type=click.Path(path_type=Path), help="Draw the curves: png, svg or pdf.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
def compare(
    environment: str,
    policies: tuple[str, ...],
    horizon: int,
    runs: int,
    seed: int,
    measure: str,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Let policies pull in the same worlds, and rank them.

    Prints the mean over the runs at the horizon with its 95% bootstrap interval, best first. The
    same seed gives the same numbers on any number of cores.

    \b
    Measures:
      regret            expected, against the best arm of the moment
      mean_regret       the same per pull
      realised_regret   on sampled rewards of all arms, the paper's formula
      policy_regret     against the oracle on its own trajectory (where pulls change the world)
      own_count_regret  against the best arm at the policy's own counts (another name for regret)

    \b
    Examples:
      driftbandits compare -e sinusoidal -p recurrent -p "recurrent(energy=0)" -p thompson
      driftbandits compare -e "bernoulli(max_consecutive=10)" -p swa -p thompson --plot limit.png
      driftbandits compare -e rotting -p swa -p fewa -T 30000 --measure policy_regret --json
    """
    from driftbandits.comparison import compare as run
    from driftbandits.console import keep_compiled_programs, print_comparison, progress_bar
    from driftbandits.report.curves import check_figure_path, draw_curves

    if plot:
        check_figure_path(plot)
    keep_compiled_programs()
    with progress_bar() as progress:
        comparison = run(
            policies,
            environment,
            horizon=horizon,
            runs=runs,
            seed=seed,
            measure=measure,
            progress=progress,
        )
    if as_json:
        click.echo(json.dumps(comparison.as_json(), indent=2))
    else:
        print_comparison(comparison)
    if plot:
        click.echo(f"figure: {draw_curves(comparison, plot)}", err=as_json)


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
    except OSError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(1)
    except (KeyboardInterrupt, click.Abort):
        click.echo("\nstopped", err=True)
        os._exit(130)  # the threads of a simulation would keep the interpreter waiting


if __name__ == "__main__":
    main()
