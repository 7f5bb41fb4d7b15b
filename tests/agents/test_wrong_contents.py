"""Files with a right checksum and wrong contents are refused, or are agents that work."""

import io
import tracemalloc
import zipfile
from typing import Any

import numpy as np
import pytest

from driftbandits import InputError
from driftbandits.agents.agent import Agent, agent_of
from driftbandits.agents.file import from_bytes, to_bytes
from driftbandits.agents.file_bytes import packed, unpacked
from driftbandits.agents.file_changes import Contents
from tests.conftest import SOAK

MUTATIONS = 2000 if SOAK else 200
REFUSED = (
    r"^the agent (must be|does not hold an agent \(.*\); use an older copy$)|must be|cannot be"
)
ODD_VALUES = [None, -1, 0, 10**6, 1e300, -0.5, float("nan"), "x", "", [], {}, True, [[]]]
Arrays = dict[str, np.ndarray]


def agent(policy: str) -> Agent:
    made = Agent(["red", "green"], policy=policy, window=50, default_reward=0.0)
    for now in range(8):
        made.decide(id=f"d{now}", now=now)
        if now % 2:
            made.reward(f"d{now}", 1.0, now=now)
    made.add_arm("blue")
    made.expire(now=51)
    return made


def arrays_and_about(content: bytes) -> tuple[Arrays, dict[str, Any]]:
    _, (about, arrays) = unpacked(content, "it")
    return arrays, about


def mutated_about(rng: np.random.Generator, about: dict[str, Any]) -> dict[str, Any]:
    """One value of the description, at any depth, is odd, or gone."""
    place: Any = about
    key: Any = rng.choice(list(about))
    while isinstance(place[key], list) and place[key] and rng.random() < 0.7:
        place, key = place[key], int(rng.integers(len(place[key])))
    if rng.random() < 0.15:
        del place[key]
    else:
        place[key] = ODD_VALUES[rng.integers(len(ODD_VALUES))]
    return about


def mutated_array(rng: np.random.Generator, array: np.ndarray) -> np.ndarray:
    how = rng.integers(6)
    if how == 0:
        return array.astype([np.float64, np.int8, np.complex64][rng.integers(3)])
    if how == 1:
        return np.concatenate([array.ravel(), array.ravel(), np.zeros(1, array.dtype)])
    if how == 2:
        return array[None]
    if array.size == 0:
        return np.ones(3, array.dtype)
    changed = array.copy()
    odd = [np.nan, np.inf, 3e38, -7] if array.dtype.kind == "f" else [0, 1, 2**31 - 1, -7]
    with np.errstate(all="ignore"):
        changed.flat[rng.integers(array.size)] = np.array(odd[how - 2]).astype(array.dtype)
    return changed


def mutated(rng: np.random.Generator, content: bytes) -> bytes:
    arrays, about = arrays_and_about(content)
    name = rng.choice(list(arrays))
    if rng.random() < 0.5:
        return packed(Contents(mutated_about(rng, about), arrays))
    if rng.random() < 0.1:
        del arrays[name]
    else:
        arrays[name] = mutated_array(rng, arrays[name])
    return packed(Contents(about, arrays))


def works(found: Agent) -> None:
    """It goes on: with old decisions, with new ones, and once more as a file."""
    now, context = found._book.now, np.zeros(len(found.settings.context))
    found.expire(now=now)
    for id in found.open:
        found.reward(id, 1.0, now=now)
    for id in ("new", "newer"):
        made = found.decide(context, id=id, now=now)
        assert np.isfinite(made.probability)
        found.reward(id, 0.0, now=now)
    from_bytes(to_bytes(found._book))


@pytest.mark.parametrize("policy", ["thompson", "tracker", "sw_ucb(window=50)"])
def test_whatever_is_changed_it_is_refused_or_works(policy: str) -> None:
    content, refused = to_bytes(agent(policy)._book), 0
    for seed in range(MUTATIONS):
        wrong = mutated(np.random.default_rng(seed), content)
        try:
            book = from_bytes(wrong)
        except InputError:
            refused += 1
        else:
            works(agent_of(book))
    assert MUTATIONS / 2 < refused < MUTATIONS


WRONG = {
    "rewards": -1, "decisions": 3, "clock": float("inf"), "arms": ["red", "red", "blue"],
    "retired": ["white"], "remember": -3, "policy": "tracker(width=1000000000)", "open": None,
}  # fmt: skip


@pytest.mark.parametrize("key", WRONG)
def test_a_wrong_description_is_refused(key: str) -> None:
    arrays, about = arrays_and_about(to_bytes(agent("thompson")._book))
    with pytest.raises(InputError, match=REFUSED):
        from_bytes(packed(Contents({**about, key: WRONG[key]}, arrays)))


ENTRIES = [
    ["d0", 0, 2, 0.0],  # there twice
    ["x", 2, 2, 50.0],  # an arm that is none
    ["x", -1, 2, 50.0],
    ["x", 0, 9, 50.0],  # more arms than there are
    ["x", 0, 2, 99.0],  # in the future
    [7, 0, 2, 50.0],
    ["x", 0, 2],
]


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_wrong_decision_is_refused(entry: list) -> None:
    arrays, about = arrays_and_about(to_bytes(agent("thompson")._book))
    arrays["tickets"] = np.append(arrays["tickets"], arrays["tickets"][:1], axis=0)
    arrays["laws"] = np.append(arrays["laws"], [0.5, 0.5]).astype(np.float32)
    about["decisions"] += 1
    right = Contents({**about, "open": [*about["open"], ["x", 0, 2, 50.0]]}, arrays)
    assert from_bytes(packed(right)).open["x"].arm == 0
    with pytest.raises(InputError, match="does not hold an agent"):
        from_bytes(packed(Contents({**about, "open": [*about["open"], entry]}, arrays)))


def archive(header: bytes, compression: int = zipfile.ZIP_STORED) -> bytes:
    """A file whose only array says what it is, and has eight bytes, or many if compressed."""
    buffer = io.BytesIO()
    data = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    data += bytes(10**8 if compression else 8)
    with zipfile.ZipFile(buffer, "w", compression) as file:
        file.writestr("about.npy", data)
    return buffer.getvalue()


HUGE = b"{'descr': '<f8', 'fortran_order': False, 'shape': (10000000000000,), }\n"
NEGATIVE = b"{'descr': '<f8', 'fortran_order': False, 'shape': (-1, -1), }\n"
OBJECTS = b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }\n"
BOMBS = [archive(HUGE), archive(NEGATIVE), archive(OBJECTS), archive(HUGE, zipfile.ZIP_DEFLATED)]


@pytest.mark.parametrize("number", range(len(BOMBS)))
def test_what_a_file_declares_takes_no_memory(number: int, monkeypatch) -> None:
    monkeypatch.setattr("driftbandits.agents.file_bytes.write_arrays", lambda _: BOMBS[number])
    content = packed(Contents({}, {}))
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="does not hold an agent"):
            from_bytes(content)
        assert tracemalloc.get_traced_memory()[1] < 10**7
    finally:
        tracemalloc.stop()
