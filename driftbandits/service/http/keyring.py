"""Who may do what: each key has a role, and only digests of keys are stored.

A key has 256 random bits, so a fast hash is enough.
"""

import hashlib
import secrets
import time
from collections import OrderedDict
from functools import lru_cache
from urllib.parse import urlsplit

from driftbandits.service import errors
from driftbandits.service.store.store import Store

CACHE_SECONDS = 5.0  # until the store is asked again about a key
CACHE_SIZE = 10_000
LOOPBACK = ("localhost", "127.0.0.1", "::1")


def new_key() -> str:
    return "db_" + secrets.token_urlsafe(32)


def digest_of(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


class Keyring:
    def __init__(self, store: Store, open_to_all: bool) -> None:
        self._store, self._open_to_all = store, open_to_all
        self._roles: OrderedDict[str, tuple[float, str | None]] = OrderedDict()  # when asked, role

    def check_origin(self, host: str | None, origin: str | None) -> None:
        """Without keys, allows programs on this machine, but no pages of other sites."""
        if self._open_to_all:
            check_loopback(host, origin)

    def check_cached(self, header: str | None, role: str) -> bool:
        """Checks a key from the cache; returns False if `check` must ask the store."""
        if self._open_to_all:
            return True
        found = self._roles.get(digest_of(key_from(header)))
        if found is None or time.monotonic() - found[0] > CACHE_SECONDS:
            return False
        check_role(found[1], role)
        return True

    def check(self, header: str | None, role: str) -> None:
        digest = digest_of(key_from(header))
        found = self._store.key_role(digest)
        self._roles[digest] = time.monotonic(), found
        while len(self._roles) > CACHE_SIZE:
            self._roles.popitem(last=False)
        check_role(found, role)


@lru_cache(maxsize=1000)  # errors are not cached
def check_loopback(host: str | None, origin: str | None) -> None:
    if name_of(host) not in LOOPBACK:
        raise errors.foreign_host(host, LOOPBACK)
    if origin is not None and origin.partition("://")[2] != host:
        raise errors.foreign_origin(origin)


def name_of(host: str | None) -> str | None:
    """The host without its port."""
    try:
        return urlsplit(f"//{host or ''}").hostname
    except ValueError:  # for example a single bracket
        return None


def key_from(header: str | None) -> str:
    if not header:
        raise errors.no_key()
    scheme, _, key = header.partition(" ")
    if scheme.lower() != "bearer" or not key.strip():
        raise errors.bad_header()
    return key.strip()


def check_role(role: str | None, wanted: str) -> None:
    if role is None:
        raise errors.unknown_key()
    if role not in (wanted, "admin"):
        raise errors.wrong_role(role, wanted)
