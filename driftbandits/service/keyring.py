"""Who may do what: keys that only their holders know, each with a role.

A key has 256 random bits, so that its digest cannot be guessed back, and needs no slow hash.
"""

import hashlib
import secrets
import time
from collections import OrderedDict
from functools import lru_cache
from urllib.parse import urlsplit

from driftbandits.service.refusals import Refusal
from driftbandits.service.store import Store

ROLES = {
    "decide": "make decisions and send rewards",
    "read": "see bandits, their series, their logs and the metrics",
    "admin": "everything: create and delete bandits, change arms",
}
KNOWN_FOR = 5.0  # seconds until the store is asked again
REMEMBERED = 10_000
LOOPBACK = ("localhost", "127.0.0.1", "::1")


def new_key() -> str:
    return "db_" + secrets.token_urlsafe(32)


def digest_of(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


class Keyring:
    def __init__(self, store: Store, open_to_all: bool) -> None:
        self._store, self._open_to_all = store, open_to_all
        self._known: OrderedDict[str, tuple[float, str | None]] = OrderedDict()

    def check_origin(self, host: str | None, origin: str | None) -> None:
        """Without keys, whoever is on this machine may ask; a web page from elsewhere may not."""
        if self._open_to_all:
            judge_origin(host, origin)

    def check_cached(self, header: str | None, role: str) -> bool:
        """Whether the caller is known and may; False asks for `check`, which asks the store."""
        if self._open_to_all:
            return True
        key = key_in(header)
        found = self._known.get(digest_of(key))
        if found is None or time.monotonic() - found[0] > KNOWN_FOR:
            return False
        judge(found[1], role)
        return True

    def check(self, header: str | None, role: str) -> None:
        digest = digest_of(key_in(header))
        held = self._store.key_role(digest)
        self._known[digest] = time.monotonic(), held
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        judge(held, role)


@lru_cache(maxsize=1000)  # of those that may
def judge_origin(host: str | None, origin: str | None) -> None:
    if name_of(host) not in LOOPBACK:
        message = f"without keys, the Host must be one of {', '.join(LOOPBACK)}, got {host!r}"
        raise Refusal(403, "foreign_host", message, "ask it by its loopback address")
    if origin is not None and origin.partition("://")[2] != host:
        message = f"without keys, a page of {origin!r} may not ask"
        raise Refusal(403, "foreign_origin", message, "use keys for pages of your own")


def name_of(host: str | None) -> str | None:
    try:
        return urlsplit(f"//{host or ''}").hostname
    except ValueError:  # as for a bracket without its other half
        return None


def key_in(header: str | None) -> str:
    if not header:
        remedy = (
            "send the header `Authorization: Bearer KEY`; `driftbandits keys create` makes keys"
        )
        raise Refusal(401, "no_key", "this service wants a key", remedy)
    scheme, _, key = header.partition(" ")
    if scheme.lower() != "bearer" or not key.strip():
        remedy = "write it as `Authorization: Bearer KEY`"
        raise Refusal(401, "bad_header", "the Authorization header cannot be read", remedy)
    return key.strip()


def judge(held: str | None, wanted: str) -> None:
    if held is None:
        remedy = "`driftbandits keys list` shows the keys there are"
        raise Refusal(401, "unknown_key", "this key is not known, or was revoked", remedy)
    if held not in (wanted, "admin"):
        message = f"this needs a key with the role {wanted!r}; this one has {held!r}"
        raise Refusal(403, "wrong_role", message, f"`driftbandits keys create --role {wanted}`")
