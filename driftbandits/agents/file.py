"""An agent in one file: a line that says what it is, with a checksum, then its arrays.

    driftbandits agent 3 SHA256
    NumPy's npz, without pickle: `about` is JSON, `state` the policy's arrays by their paths

A file that is damaged, or of a newer version, is refused before anything is built from it.
"""

import hashlib
import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from driftbandits import __version__, check
from driftbandits.agents import old_tracker_states
from driftbandits.agents.decision_book import DecisionBook
from driftbandits.agents.old_state_paths import renamed
from driftbandits.agents.open_decisions import OpenDecision
from driftbandits.agents.reward_verdicts import PastDecision
from driftbandits.agents.settings import AgentSettings
from driftbandits.atomic_file import write_atomically
from driftbandits.choice import parse

VERSION = 3
FIRST_LINE = re.compile(rb"driftbandits agent ([1-9]\d*) ([0-9a-f]{64})\n")


def write_book(book: DecisionBook, path: Path) -> None:
    write_atomically(path, to_bytes(book))


def read_book(path: Path) -> DecisionBook:
    return from_bytes(path.read_bytes(), str(path))


def to_bytes(book: DecisionBook) -> bytes:
    return packed(arrays_of(book))


def packed(arrays: dict[str, np.ndarray]) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    body = buffer.getvalue()
    return b"driftbandits agent %d %s\n" % (VERSION, digest_of(body, VERSION)) + body


def digest_of(body: bytes, version: int) -> bytes:
    """Of the version too, since 3, so that no damaged one passes for that of an older file."""
    digest = hashlib.sha256(b"" if version < 3 else b"%d\n" % version)
    digest.update(body)
    return digest.hexdigest().encode()


def from_bytes(content: bytes, name: str = "the agent") -> DecisionBook:
    found = FIRST_LINE.match(content[:128])
    if not found:
        check.fail(name, "a file that Agent.save wrote", content[:20])
    if int(found[1]) > VERSION:
        rule = f"of version {VERSION} or older (install a newer driftbandits to read it)"
        check.fail(name, rule, f"version {int(found[1])}")
    body = content[found.end() :]
    if digest_of(body, int(found[1])) != found[2]:
        message = f"{name} is damaged (its checksum does not match); use an older copy"
        raise check.InputError(message)
    with np.load(io.BytesIO(body), allow_pickle=False) as arrays:
        return restored(dict(arrays), name, int(found[1]))


def arrays_of(book: DecisionBook) -> dict[str, np.ndarray]:
    """Copies; `laws` is how files have always called the probabilities."""
    waiting, past = book.open.waiting, book.past
    about = {
        "driftbandits": __version__,
        **book.settings._asdict(),
        "arms": book.arms.names,
        "retired": book.arms.retired,
        **book.counts._asdict(),
        "clock": book.now,
        "open": [
            [id, kept.arm, kept.probabilities.size, kept.time] for id, kept in waiting.items()
        ],
        "answered": [
            [id, kept.arm, kept.probabilities.size, kept.reward, kept.expired]
            for id, kept in past.items()
        ],
    }
    probabilities = [kept.probabilities for kept in waiting.values()]
    probabilities += [kept.probabilities for kept in past.values()]
    return {
        "about": np.frombuffer(json.dumps(about, default=plain).encode(), np.uint8),
        "laws": np.concatenate([np.zeros(0, np.float32), *probabilities]),
        "tickets": book.open.tickets_of(list(waiting)),
        "slots": np.array(book.arms.slots),
        **{f"state{path}": array for path, array in book.learner.state().items()},
    }


def plain(number: np.generic) -> object:
    """A setting may have been given as one of NumPy's numbers."""
    return number.item()


def restored(arrays: dict[str, np.ndarray], name: str, version: int) -> DecisionBook:
    about = json.loads(arrays["about"].tobytes())
    settings = AgentSettings(**{key: about[key] for key in AgentSettings._fields})
    book = DecisionBook(about["arms"], settings)
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
    if version <= 2 and parse("policy", about["policy"]).name == "tracker":
        state = old_tracker_states.completed(state)
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
