"""Where compiled programs are kept between processes, if at all.

The library keeps none unless it is asked to; the command line does. The environment variable
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
    """The folder, or None to keep nothing; of no choice, the one by default."""
    chosen = by_default() if cache is None else cache
    if isinstance(chosen, bool):
        return usual_folder() if chosen else None
    return Path(chosen).expanduser()


def by_default() -> Cache:
    told = os.environ.get(VARIABLE, "")
    return {"": _default, **WORDS}.get(told.lower(), told)


def keep_by_default() -> None:
    """For a process of our own: keeps programs unless the user's environment says otherwise."""
    global _default
    _default = True


def usual_folder() -> Path:
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "driftbandits"
