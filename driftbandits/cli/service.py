"""The commands `serve` and `keys`."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import click

from driftbandits.check import fail, integer
from driftbandits.simulation.cache_folder import keep_by_default


def store_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the options that name the database of the service."""
    data = click.option(
        "--data",
        type=click.Path(path_type=Path, file_okay=False),
        default=Path("driftbandits-data"),
        show_default=True,
        help="Folder of the SQLite database.",
    )
    database = click.option(
        "--database", metavar="URL", help="Use PostgreSQL instead: postgresql://USER@HOST/NAME."
    )
    return data(database(command))


@click.command()
@store_options
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=int,
    default=8000,
    show_default=True,
    help="Port to listen on; 0 picks a free one.",
)
@click.option(
    "--url", help="Address at which other workers reach this one.  [default: http://HOST:PORT]"
)
@click.option("--without-keys", is_flag=True, help="Require no key; on loopback addresses only.")
def serve(
    data: Path,
    database: str | None,
    host: str,
    port: int,
    url: str | None,
    without_keys: bool,
) -> None:
    """Serve decisions over HTTP, with a durable log.

    Every decision and reward is committed before it is answered, so nothing is lost if the service
    is killed. With PostgreSQL, workers on several hosts share the bandits: one worker owns each
    bandit at a time, and the others forward to it.

    The first start creates a key and prints it; `driftbandits keys` creates more.

    Compiled programs are cached in ~/.cache/driftbandits, which makes the next start faster. Set
    the environment variable DRIFTBANDITS_CACHE to use another folder, or to "off".

    \b
    Examples:
      driftbandits serve --without-keys
      driftbandits serve --data /var/lib/driftbandits --host 0.0.0.0
      driftbandits serve --database postgresql://bandits@db/bandits --host 0.0.0.0 \\
        --url http://10.0.0.7:8000
    """
    from driftbandits.service.server import serve as run

    integer(**{"--port": port}, at_least=0, at_most=65535)
    keep_by_default()
    run(data, database, host, port, url, without_keys)


@click.group()
def keys() -> None:
    """Create, list and revoke keys.

    \b
    Roles:
      decide   make decisions and send rewards
      read     see bandits, their charts, logs and metrics
      admin    everything
    """


@keys.command("create")
@click.option(
    "--role", type=click.Choice(["decide", "read", "admin"]), required=True, help="What it may do."
)
@click.option("--label", default="", help="What the key is for.")
@store_options
def create_key(role: str, label: str, data: Path, database: str | None) -> None:
    """Create a key and print it; it is not shown again."""
    from driftbandits.service.http.keyring import digest_of, new_key
    from driftbandits.service.server import open_store

    key = new_key()
    with open_store(data, database) as store:
        store.add_key(digest_of(key), role, label)
    click.echo(key)


@keys.command("list")
@store_options
def list_keys(data: Path, database: str | None) -> None:
    """List all keys by the start of their digests."""
    from driftbandits.service.server import open_store

    with open_store(data, database) as store:
        for key in store.keys():  # noqa: SIM118
            made = datetime.fromtimestamp(key.created, UTC).strftime("%Y-%m-%d %H:%M")
            click.echo(f"{key.digest[:12]}  {key.role:6}  {made}  {key.label}")


@keys.command("revoke")
@click.argument("digest")
@store_options
def revoke_key(digest: str, data: Path, database: str | None) -> None:
    """Revoke the key whose digest starts with DIGEST; workers notice within five seconds."""
    from driftbandits.service.server import open_store

    with open_store(data, database) as store:
        if not store.revoke_key(digest):
            fail("DIGEST", "the start of one digest in `driftbandits keys list`", digest)
    click.echo(f"revoked {digest}")
