"""An agent in one file: a line that says what it is, with a checksum, then its arrays.

    driftbandits agent 2 SHA256
    NumPy's npz, without pickle: `about` is JSON, `state` the policy's arrays by their paths

A file that is damaged, or of a newer version, is refused before anything is built from it.
"""

import hashlib
import io
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftbandits import __version__, check
from driftbandits.agents.decision_book import DecisionBook
from driftbandits.agents.old_state_paths import renamed
from driftbandits.agents.open_decisions import OpenDecision
from driftbandits.agents.reward_verdicts import PastDecision
from driftbandits.agents.settings import settings_of
from driftbandits.atomic_file import write_atomically

VERSION = 2
PAGE = 1000  # decisions
FIRST_LINE = re.compile(rb"driftbandits agent ([1-9]\d*) ([0-9a-f]{64})\n")


def write_book(book: DecisionBook, path: Path) -> None:
    write_atomically(path, to_bytes(book))


def read_book(path: Path) -> DecisionBook:
    return from_bytes(path.read_bytes(), str(path))


def to_bytes(book: DecisionBook) -> bytes:
    return packed(arrays_of(freeze(book)))


def packed(arrays: dict[str, np.ndarray]) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    body = buffer.getvalue()
    digest = hashlib.sha256(body).hexdigest()
    return b"driftbandits agent %d %s\n" % (VERSION, digest.encode()) + body


def from_bytes(content: bytes, name: str = "the agent") -> DecisionBook:
    found = FIRST_LINE.match(content[:128])
    if not found:
        check.fail(name, "a file that Agent.save wrote", content[:20])
    if int(found[1]) > VERSION:
        rule = f"of version {VERSION} or older (install a newer driftbandits to read it)"
        check.fail(name, rule, f"version {int(found[1])}")
    body = content[found.end() :]
    if hashlib.sha256(body).hexdigest().encode() != found[2]:
        message = f"{name} is damaged (its checksum does not match); use an older copy"
        raise check.InputError(message)
    with np.load(io.BytesIO(body), allow_pickle=False) as arrays:
        return restored(dict(arrays), name, int(found[1]))


class FrozenBook(NamedTuple):
    """A book at one moment, which any thread may write down while the book goes on.

    Rows of tickets must not be used again meanwhile (`OpenDecisions.hold`).
    """

    about: dict[str, Any]
    open: dict[str, OpenDecision]
    past: dict[str, PastDecision]
    tickets: np.ndarray
    slots: int
    state: dict[str, np.ndarray]


def freeze(book: DecisionBook) -> FrozenBook:
    """Copies only what the book changes in place."""
    about = {
        "driftbandits": __version__,
        **book.settings._asdict(),
        "arms": list(book.arms.names),
        "retired": book.arms.retired,
        **book.counts._asdict(),
        "clock": book.now,
    }
    waiting, past = dict(book.open.waiting), dict(book.past)
    state = book.learner.state()
    return FrozenBook(about, waiting, past, book.open.tickets, book.arms.slots, state)


def arrays_of(book: FrozenBook) -> dict[str, np.ndarray]:
    """`laws` is how files have always called the probabilities."""
    waiting = [[id, x.arm, x.probabilities.size, x.time] for id, x in book.open.items()]
    answered = [
        [id, x.arm, x.probabilities.size, x.reward, x.expired] for id, x in book.past.items()
    ]
    about = json.dumps(book.about, default=plain)[:-1]
    about += f', "open": [{as_json(waiting)}], "answered": [{as_json(answered)}]}}'
    probabilities = [kept.probabilities for kept in book.open.values()]
    probabilities += [kept.probabilities for kept in book.past.values()]
    return {
        "about": np.frombuffer(about.encode(), np.uint8),
        "laws": np.concatenate([np.zeros(0, np.float32), *probabilities]),
        "tickets": book.tickets[[kept.row for kept in book.open.values()]],
        "slots": np.array(book.slots),
        **{f"state{path}": array for path, array in book.state.items()},
    }


def as_json(rows: list[Any]) -> str:
    """Page by page, as no other thread runs while one is encoded."""
    pages = (rows[first : first + PAGE] for first in range(0, len(rows), PAGE))
    return ", ".join(json.dumps(page, default=plain)[1:-1] for page in pages)


def plain(number: np.generic) -> object:
    """A setting may have been given as one of NumPy's numbers."""
    return number.item()


def restored(arrays: dict[str, np.ndarray], name: str, version: int) -> DecisionBook:
    about = json.loads(arrays["about"].tobytes())
    book = DecisionBook(about["arms"], settings_of(about))
    if arrays["slots"] > len(about["arms"]):
        book.widen(int(arrays["slots"]))
    for arm in about["retired"]:
        book.retire_arm(arm)
    state = {
        path.removeprefix("state"): array
        for path, array in arrays.items()
        if path.startswith("state")
    }
    if version == 1:
        state = renamed(state, about["policy"])
    try:
        book.learner.set_state(state, about["decisions"])
    except ValueError:
        rule = f"of a policy whose memory is as in driftbandits {__version__}"
        check.fail(name, rule, f"{about['policy']} of driftbandits {about['driftbandits']}")
    book.now, book.rewards, book.expired = (about[key] for key in ("clock", "rewards", "expired"))
    restore_decisions(book, about, arrays["laws"], arrays["tickets"])
    return book


def restore_decisions(
    book: DecisionBook, about: dict[str, Any], probabilities: np.ndarray, tickets: np.ndarray
) -> None:
    first = 0

    def next_probabilities(size: int) -> np.ndarray:
        nonlocal first
        first += size
        return probabilities[first - size : first].copy()

    rows = book.open.put(tickets)
    for (id, arm, size, time), row in zip(about["open"], rows, strict=True):
        book.open.waiting[id] = OpenDecision(arm, next_probabilities(size), time, row)
    for id, arm, size, reward, expired in about["answered"]:
        book.past[id] = PastDecision(arm, next_probabilities(size), reward, expired)
