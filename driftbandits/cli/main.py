"""The command line: parse, call, print. JAX is imported by the commands that need it."""

import json
import os
import sys

import click

from driftbandits import __version__
from driftbandits.check import InputError
from driftbandits.cli.experiments import compare, report, reproduce, run
from driftbandits.cli.service import keys, serve
from driftbandits.extras import remedy
from driftbandits.simulation.threads import WorkError

KINDS = ["policies", "environments", "experiments"]


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="driftbandits")
def cli() -> None:
    """Bandits whose rewards change over time: compare policies, check claims, decide for users.

    \b
    Policies and environments are written as a name with settings in brackets:
      tracker        "tracker(width=2)"        "sinusoidal(num_arms=5, max_consecutive=10)"

    Start with the policy tracker: it learns how fast rewards drift.

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
    """List policies and environments with their settings and defaults, and the experiments."""
    from driftbandits.catalogue import catalogue, print_catalogue

    listing = catalogue([kind] if kind else KINDS)
    if as_json:
        click.echo(json.dumps(listing, indent=2))
    else:
        print_catalogue(listing)


@cli.command()
@click.argument("name")
def explain(name: str) -> None:
    """Explain a policy or an environment: what it does, its formula, when to use it.

    \b
    Examples:
      driftbandits explain tracker
      driftbandits explain delayed
    """
    from driftbandits.catalogue import explain as text_of

    click.echo(text_of(name), nl=False)


for command in (compare, run, reproduce, report, serve, keys):
    cli.add_command(command)


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
    except ModuleNotFoundError as error:
        command = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
        message = remedy(f"driftbandits {command}".strip(), error)
        if message is None:
            raise
        click.echo(f"error: {message}", err=True)
        sys.exit(2)
    except (OSError, WorkError) as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(1)
    except (KeyboardInterrupt, click.Abort):
        click.echo("\nstopped", err=True)
        os._exit(130)  # the threads of a simulation would keep the interpreter waiting
