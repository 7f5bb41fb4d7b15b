"""An agent in one file: a line that says what it is, with a checksum, then its arrays.

    driftbandits agent 3 SHA256
    NumPy's npz, without pickle: `about` is JSON, `state` the policy's arrays by their paths

A file that is damaged, or of a newer version, is refused before anything is built from it. One with
a right checksum and wrong contents is refused, too, and takes no more memory than one of its size.
"""

import hashlib
import json
import re
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from driftbandits import __version__, check
from driftbandits.agents import checks, old_tracker_states
from driftbandits.agents.array_file import read_arrays, write_arrays
from driftbandits.agents.decision_book import DecisionBook, spec_of
from driftbandits.agents.file_changes import Contents, continued
from driftbandits.agents.file_checks import (
    check_about,
    check_decisions,
    check_rehearsal,
    check_state,
    check_tickets,
)
from driftbandits.agents.learner import state_shapes, wanted_shapes
from driftbandits.agents.old_state_paths import renamed
from driftbandits.agents.open_decisions import OpenDecision
from driftbandits.agents.reward_verdicts import PastDecision
from driftbandits.agents.settings import settings_of
from driftbandits.atomic_file import write_atomically
from driftbandits.choice import parse
from driftbandits.error_text import first_line

VERSION = 3
# What reading wrong contents may raise.
WRONG = (
    ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError, EOFError,
    NotImplementedError, zipfile.BadZipFile,
)  # fmt: skip
FIRST_LINE = re.compile(rb"driftbandits agent ([1-9]\d*) ([0-9a-f]{64})\n")


def write_book(book: DecisionBook, path: Path) -> None:
    write_atomically(path, to_bytes(book))


def read_book(path: Path) -> DecisionBook:
    return from_bytes(path.read_bytes(), str(path))


def to_bytes(book: DecisionBook) -> bytes:
    return packed(contents_of(book))


def packed(contents: Contents) -> bytes:
    about = json.dumps(contents.about, default=plain).encode()
    body = write_arrays({"about": np.frombuffer(about, np.uint8), **contents.arrays})
    return b"driftbandits agent %d %s\n" % (VERSION, digest_of(body, VERSION)) + body


def digest_of(body: bytes, version: int) -> bytes:
    """Of the version too, since 3, so that no damaged one passes for that of an older file."""
    digest = hashlib.sha256(b"" if version < 3 else b"%d\n" % version)
    digest.update(body)
    return digest.hexdigest().encode()


def merged(content: bytes, changes: Sequence[bytes]) -> bytes:
    """A file and what has changed since as one file."""
    return packed(continued([unpacked(part, "it")[1] for part in (content, *changes)]))


def from_bytes(
    content: bytes, name: str = "the agent", changes: Sequence[bytes] = ()
) -> DecisionBook:
    """From a file, and what has changed since, in order (`file_changes`)."""
    parts = [unpacked(part, name) for part in (content, *changes)]
    try:
        return restored(continued([part for _, part in parts]), name, version=parts[-1][0])
    except check.InputError:
        raise
    except WRONG as error:
        raise unusable(name, error) from None


def is_intact(content: bytes) -> bool:
    """Whether its checksum is right."""
    found = FIRST_LINE.match(content[:128])
    if not found:
        return False
    return digest_of(content[found.end() :], int(found[1])) == found[2]


def unpacked(content: bytes, name: str) -> tuple[int, Contents]:
    """The version of a file, and what is in it."""
    found = FIRST_LINE.match(content[:128])
    if not found:
        check.fail(name, "a file that Agent.save wrote", content[:20])
    if int(found[1]) > VERSION:
        rule = f"of version {VERSION} or older (install a newer driftbandits to read it)"
        check.fail(name, rule, f"version {int(found[1])}")
    if not is_intact(content):
        message = f"{name} is damaged (its checksum does not match); use an older copy"
        raise check.InputError(message)
    try:
        arrays = read_arrays(content[found.end() :])
        return int(found[1]), Contents(json.loads(arrays.pop("about").tobytes()), arrays)
    except WRONG as error:
        raise unusable(name, error) from None


def unusable(name: str, error: Exception) -> check.InputError:
    return check.InputError(
        f"{name} does not hold an agent ({first_line(error)}); use an older copy"
    )


def contents_of(book: DecisionBook, ids: Iterable[str] | None = None) -> Contents:
    """Copies, of all open decisions or of some; `laws` is how files have always called the
    probabilities.
    """
    waiting, past = book.open.waiting, book.past
    if ids is not None:
        waiting = {id: waiting[id] for id in ids}
    about = {
        "driftbandits": __version__,
        **book.settings._asdict(),
        "arms": list(book.arms.names),
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
    arrays = {
        "laws": np.concatenate([np.zeros(0, np.float32), *probabilities]),
        "tickets": book.open.tickets_of(list(waiting)),
        "slots": np.array(book.arms.slots),
        **{f"state{path}": array for path, array in book.learner.state().items()},
    }
    return Contents(about, arrays)


def plain(number: np.generic) -> object:
    """A setting may have been given as one of NumPy's numbers."""
    return number.item()


def restored(contents: Contents, name: str, version: int) -> DecisionBook:
    about, arrays = contents
    check_about(about, arrays["slots"])
    check_decisions(about, arrays["laws"])
    settings = checks.settings(settings_of(about))
    paths = [path for path in arrays if path.startswith("state")]
    state = {path.removeprefix("state"): arrays[path] for path in paths}
    if version == 1:
        state = renamed(state, about["policy"])
    if version <= 2 and parse("policy", about["policy"]).name == "tracker":
        state = old_tracker_states.completed(state)
    spec = spec_of(settings, int(arrays["slots"]))
    if state_shapes(state) != wanted_shapes(settings.policy, spec):  # before any memory is taken
        rule = f"of a policy whose memory is as in driftbandits {__version__}"
        check.fail(name, rule, f"{about['policy']} of driftbandits {about['driftbandits']}")
    check_state(state)
    book = DecisionBook(about["arms"], settings)
    if spec.num_arms > len(about["arms"]):
        book.widen(spec.num_arms)
    for arm in about["retired"]:
        book.retire_arm(arm)
    check_tickets(arrays["tickets"], book.learner.ticket_layout, len(about["open"]))
    book.learner.set_state(state, about["decisions"])
    check_rehearsal(*book.learner.rehearse())
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
