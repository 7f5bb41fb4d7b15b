"""The commands of the service: `serve` and `keys`."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import click

from driftbandits.check import fail, whole


@click.command()
@click.option(
    "--data", type=click.Path(path_type=Path, file_okay=False), default=Path("driftbandits-data"),
    show_default=True, help="Folder of the embedded database.",
)  # fmt: skip
@click.option("--database", metavar="URL", help="PostgreSQL instead: postgresql://USER@HOST/NAME.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=int, default=8000, show_default=True, help="0 takes a free one.")
@click.option("--url", help="Where other workers reach this one.  [default: http://HOST:PORT]")
@click.option("--without-keys", is_flag=True, help="Ask for no key; on loopback addresses only.")
def serve(
    data: Path,
    database: str | None,
    host: str,
    port: int,
    url: str | None,
    without_keys: bool,
) -> None:
    """Serve decisions over HTTP, from a log that loses nothing.

    A decision or a reward is answered when it is committed: killed at any moment, the service goes
    on where it was. With PostgreSQL several workers on several hosts share the bandits; each
    bandit has one worker at a time, and the others forward to it.

    At its first start it makes a key and shows it; `driftbandits keys` makes more.

    \b
    Examples:
      driftbandits serve --without-keys
      driftbandits serve --data /var/lib/driftbandits --host 0.0.0.0
      driftbandits serve --database postgresql://bandits@db/bandits --url http://10.0.0.7:8000
    """
    from driftbandits.compute import keep_compiled_programs
    from driftbandits.service.server import serve as run

    whole(**{"--port": port}, at_least=0, at_most=65535)
    keep_compiled_programs()
    run(data, database, host, port, url, without_keys)


def store_options(command: Callable[..., None]) -> Callable[..., None]:
    """Where the service keeps its keys."""
    folder = click.Path(path_type=Path, file_okay=False)
    data = click.option("--data", type=folder, default=Path("driftbandits-data"), show_default=True)
    return data(click.option("--database", metavar="URL")(command))


@click.group()
def keys() -> None:
    """Make, list and revoke the keys of a service.

    \b
    Roles:
      decide   make decisions and send rewards
      read     see bandits, their series, their logs and the metrics
      admin    everything
    """


@keys.command("create")
@click.option("--role", type=click.Choice(["decide", "read", "admin"]), required=True)
@click.option("--label", default="", help="To know it by.")
@store_options
def create_key(role: str, label: str, data: Path, database: str | None) -> None:
    """Make a key; it is shown only now."""
    from driftbandits.service.keyring import digest_of, new_key
    from driftbandits.service.server import opened

    key = new_key()
    with opened(data, database) as store:
        store.add_key(digest_of(key), role, label)
    click.echo(key)


@keys.command("list")
@store_options
def list_keys(data: Path, database: str | None) -> None:
    """Show the keys that there are, by the start of their digests."""
    from driftbandits.service.server import opened

    with opened(data, database) as store:
        for key in store.keys():  # noqa: SIM118
            made = datetime.fromtimestamp(key.created, UTC).strftime("%Y-%m-%d %H:%M")
            click.echo(f"{key.digest[:12]}  {key.role:6}  {made}  {key.label}")


@keys.command("revoke")
@click.argument("digest")
@store_options
def revoke_key(digest: str, data: Path, database: str | None) -> None:
    """Revoke a key, by the start of its digest; workers notice within seconds."""
    from driftbandits.service.server import opened

    with opened(data, database) as store:
        if not store.revoke_key(digest):
            fail("DIGEST", "the start of exactly one digest of `driftbandits keys list`", digest)
    click.echo(f"revoked {digest}")
