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

    Policies and environments are written as a name, with settings in brackets if there are any.
    Put quotes around brackets in a shell:

    \b
        tracker
        "tracker(width=2)"
        "sinusoidal(num_arms=5, max_consecutive=10)"

    Examples:

    \b
        driftbandits compare
        driftbandits list
        driftbandits explain tracker
        driftbandits compare -e abrupt -p tracker -p ucb --horizon 5000 --runs 8
        driftbandits reproduce --quick
        driftbandits serve --without-keys
    """


@cli.command("list")
@click.argument("kind", type=click.Choice(KINDS), required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def list_(kind: str | None, as_json: bool) -> None:
    """List policies, environments and experiments.

    Each is shown with a one-line description and its settings with their defaults. Name a kind to
    list only policies, only environments or only experiments.

    Examples:

    \b
        driftbandits list
        driftbandits list policies
        driftbandits list environments --json
    """
    from driftbandits.catalogue import catalogue, print_catalogue

    listing = catalogue([kind] if kind else KINDS)
    if as_json:
        click.echo(json.dumps(listing, indent=2))
    else:
        print_catalogue(listing)


@cli.command()
@click.argument("name")
def explain(name: str) -> None:
    """Explain a policy, an environment or a transformation.

    Prints what NAME does, its formula, when to use it, and what each setting means. The names are
    those of `driftbandits list`.

    Examples:

    \b
        driftbandits explain tracker
        driftbandits explain sinusoidal
        driftbandits explain delayed
    """
    from driftbandits.explanations import print_explanation

    print_explanation(name)


for command in (compare, run, reproduce, report, serve, keys):
    cli.add_command(command)


def main() -> None:
    """Runs the command line. A user's mistake is reported in one line, with exit code 2."""
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
