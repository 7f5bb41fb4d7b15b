"""Which extra installs a module that is missing."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

BROUGHT_BY = {
    "grpc": "ray",
    "gymnasium": "gymnasium",
    "httptools": "service",
    "jinja2": "report",
    "matplotlib": "report",
    "msgspec": "service",
    "polars": "report",  # and those of BROUGHT_FOR
    "prometheus_client": "service",
    "psycopg": "postgresql",
    "ray": "ray",
    "river": "data",
    "sqlalchemy": "service",
    "uvicorn": "service",
}
BROUGHT_FOR = {  # several extras bring polars: the one to name depends on what it is wanted for
    "driftbandits.cli.service": "service",
    "driftbandits.service": "service",
    "driftbandits.environments": "data",
}


def needs(what: str, extra: str) -> str:
    """What to install, in one line."""
    return f"{what} needs the extra \"{extra}\": pip install 'driftbandits[{extra}]'"


@contextmanager
def needed_for(what: str) -> Iterator[None]:
    """If an import in this context lacks an extra, the error says which one to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        message = remedy(what, error)
        if message is None:
            raise
        raise ModuleNotFoundError(message, name=error.name) from None


def remedy(what: str, error: ModuleNotFoundError) -> str | None:
    """What to install after `what` failed; None if the missing module is in no extra."""
    module = (error.name or "").partition(".")[0]
    extra = BROUGHT_BY.get(module)
    if module == "polars":
        extra = next(wanted_for(error.__traceback__), extra)
    return needs(what, extra) if extra else None


def wanted_for(trace: TracebackType | None) -> Iterator[str]:
    """The extras of our modules that an error passed through."""
    while trace is not None:
        name = trace.tb_frame.f_globals.get("__name__", "")
        yield from (
            extra for home, extra in BROUGHT_FOR.items() if f"{name}.".startswith(f"{home}.")
        )
        trace = trace.tb_next
