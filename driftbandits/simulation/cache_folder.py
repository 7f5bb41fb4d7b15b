"""Where compiled programs are cached between processes, if at all.

The library caches nothing by default; the command line does. The environment variable
DRIFTBANDITS_CACHE decides for both: "on", "off", or a folder.
"""

import os
from pathlib import Path

VARIABLE = "DRIFTBANDITS_CACHE"

WORDS = {
    **dict.fromkeys(["on", "1", "true", "yes"], True),
    **dict.fromkeys(["off", "0", "false", "no"], False),
}

Cache = bool | str | Path  # in the usual folder, nowhere, or in this folder

_default = False


def cache_folder(cache: Cache | None = None) -> Path | None:
    """The cache folder, or None for no cache; without an argument, the default."""
    chosen = by_default() if cache is None else cache
    if isinstance(chosen, bool):
        return usual_folder() if chosen else None
    return Path(chosen).expanduser()


def by_default() -> Cache:
    told = os.environ.get(VARIABLE, "")
    return {"": _default, **WORDS}.get(told.lower(), told)


def keep_by_default() -> None:
    """Turns the cache on in the command line's own process, unless the variable is set."""
    global _default
    _default = True


def usual_folder() -> Path:
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "driftbandits"
