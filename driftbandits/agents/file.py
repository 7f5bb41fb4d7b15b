"""An agent in one file: a line that says what it is, with a checksum, then its arrays.

    driftbandits agent 4 SHA256
    NumPy's npz, without pickle: `about` is JSON, `state` the policy's arrays by their paths

A file that is damaged, or of a newer version, is refused before anything is built from it. One with
a right checksum and wrong contents is refused, too, and takes no more memory than one of its size.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from driftbandits import __version__, check
from driftbandits.agents import old_tracker_states
from driftbandits.agents.decision_block import Block
from driftbandits.agents.decision_book import DecisionBook, spec_of
from driftbandits.agents.file_bytes import WRONG, packed, unpacked, unusable
from driftbandits.agents.file_changes import Contents, continued
from driftbandits.agents.file_checks import (
    About,
    check_about,
    check_decisions,
    check_rehearsal,
    check_state,
    check_tickets,
    must,
)
from driftbandits.agents.file_rows import FileRows, load_rows, rows_of
from driftbandits.agents.learner import state_shapes, wanted_shapes
from driftbandits.agents.old_policies import SAME_SINCE, as_it_was
from driftbandits.agents.old_state_paths import renamed
from driftbandits.agents.reward_verdicts import PastDecision
from driftbandits.agents.segments import Read, load_segments
from driftbandits.agents.setting_checks import checked_settings
from driftbandits.agents.settings import settings_of
from driftbandits.atomic_file import write_atomically
from driftbandits.choice import parse
from driftbandits.simulation.cache_folder import Cache


def write_book(book: DecisionBook, path: Path) -> None:
    write_atomically(path, to_bytes(book))


def read_book(path: Path, cache: Cache | None = None) -> DecisionBook:
    return from_bytes(path.read_bytes(), str(path), cache=cache)


def to_bytes(book: DecisionBook) -> bytes:
    return packed(contents_of(book))


def from_bytes(
    content: bytes,
    name: str = "the agent",
    changes: Sequence[bytes] = (),
    read: Read | None = None,
    folder: Path | None = None,
    cache: Cache | None = None,
) -> DecisionBook:
    """From a file, and what has changed since, in order (`file_changes`).

    `read` gives the segments of a snapshot; `folder` is for temporary files, `cache` for programs.
    """
    parts = [unpacked(part, name) for part in (content, *changes)]
    try:
        contents = continued([part for _, part in parts])
        book = restored(contents, name, parts[-1][0], folder, cache)
        restore_decisions(book, contents, read)
        return book
    except check.InputError:
        raise
    except WRONG as error:
        raise unusable(name, error) from None


def contents_of(book: DecisionBook, blocks: Sequence[Block] | None = None) -> Contents:
    """Copies, of all open decisions or of those in some blocks; `laws` is how files have always
    called the probabilities.
    """
    past = book.past
    rows = rows_of(book.open, book.open.all_blocks() if blocks is None else blocks)
    about = {
        "driftbandits": __version__,
        **book.settings._asdict(),
        "arms": list(book.arms.names),
        "retired": book.arms.retired,
        **book.counts._asdict(),
        "clock": book.now,
        "arm_features": [book.features_json(name) for name in book.arms.names],
        "seen": {"context": book.contexts.state(), "features": book.features.vectors.state()},
        "open": rows.entries,
        "answered": [
            [id, kept.arm, kept.probabilities.size, kept.reward, kept.expired]
            for id, kept in past.items()
        ],
    }
    arrays = {
        "laws": np.concatenate([rows.probabilities, *(x.probabilities for x in past.values())]),
        "tickets": rows.tickets,
        "slots": np.array(book.arms.slots),
        **{f"state{path}": array for path, array in book.learner.state().items()},
    }
    return Contents(about, arrays)


def restored(
    contents: Contents, name: str, version: int, folder: Path | None, cache: Cache | None
) -> DecisionBook:
    """Restores everything except open and past decisions."""
    about, arrays = contents
    check_about(about, arrays["slots"])
    check_decisions(about, arrays["laws"])
    if version < SAME_SINCE:
        about = {**about, "policy": as_it_was(about["policy"])}
    settings = checked_settings(settings_of(about))
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
    book = DecisionBook(about["arms"], settings, folder, cache)
    restore_features(book, about)
    if spec.num_arms > len(about["arms"]):
        book.widen(spec.num_arms)
    for arm in about["retired"]:
        book.retire_arm(arm)
    check_tickets(arrays["tickets"], book.learner.ticket_layout, len(about["open"]))
    book.learner.set_state(state, about["decisions"])
    check_rehearsal(*book.learner.rehearse())
    book.now, book.rewards, book.expired = (about[key] for key in ("clock", "rewards", "expired"))
    return book


def restore_features(book: DecisionBook, about: About) -> None:
    """Restores the features of arms, and what scales and categories have seen."""
    if "seen" not in about:  # until 0.14 there were none
        must(not book.features.vectors.width, "the features of its arms are missing")
        return
    given, seen, vectors = about["arm_features"], about["seen"], book.features.vectors
    must(isinstance(given, list) and len(given) == len(about["arms"]), "its features are none")
    known = {slot: vectors.from_json(each) for slot, each in enumerate(given) if each is not None}
    book.features.values = known
    vectors.set_state(seen["features"])
    book.contexts.set_state(seen["context"])
    book.features.encode()


def restore_decisions(book: DecisionBook, contents: Contents, read: Read | None) -> None:
    about, arrays = contents
    probabilities, first = arrays["laws"], sum(size for _, _, size, _ in about["open"])
    if about.get("segments"):
        if read is None:
            raise ValueError("its segments are elsewhere")
        load_segments(book, about, arrays["is_open"], read)
    load_rows(book.open, FileRows(about["open"], probabilities[:first], arrays["tickets"]))
    decisions, rewards, expiries = book.counts
    must(rewards + expiries + len(book.open) <= decisions, "its counts do not add up")
    for id, arm, size, reward, expired in about["answered"]:
        book.past[id] = PastDecision(
            arm, probabilities[first : first + size].copy(), reward, expired
        )
        first += size
