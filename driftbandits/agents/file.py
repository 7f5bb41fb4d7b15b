"""An agent in one file: a line that says what it is, with a checksum, then its arrays.

    driftbandits agent 1 SHA256
    NumPy's npz, without pickle: `about` is JSON, `state` the policy's arrays by their paths

A file that is damaged, or of a newer version, is refused before anything is built from it.
"""

import hashlib
import io
import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np

from driftbandits import __version__, check
from driftbandits.agents.agent import Agent
from driftbandits.agents.open_decisions import Answered, Open

VERSION = 1
FIRST_LINE = re.compile(rb"driftbandits agent ([1-9]\d*) ([0-9a-f]{64})\n")
SETTINGS = (
    "policy", "seed", "context", "window", "default_reward", "reward_range", "noise",
    "horizon", "remember", "max_open",
)  # fmt: skip


def write_agent(agent: Agent, path: Path) -> None:
    """Whole or not at all: beside the file first, then in its place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with beside.open("wb") as file:
            file.write(to_bytes(agent))
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def read_agent(path: Path) -> Agent:
    return from_bytes(path.read_bytes(), str(path))


def to_bytes(agent: Agent) -> bytes:
    return packed(arrays_of(agent))


def packed(arrays: dict[str, np.ndarray]) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    body = buffer.getvalue()
    digest = hashlib.sha256(body).hexdigest()
    return b"driftbandits agent %d %s\n" % (VERSION, digest.encode()) + body


def from_bytes(content: bytes, name: str = "the agent") -> Agent:
    found = FIRST_LINE.match(content[:128])
    if not found:
        check.fail(name, "a file that Agent.save wrote", content[:20])
    if int(found[1]) > VERSION:
        rule = f"of version {VERSION} or older (install a newer driftbandits to read it)"
        check.fail(name, rule, f"version {int(found[1])}")
    body = content[found.end() :]
    if hashlib.sha256(body).hexdigest().encode() != found[2]:
        check.fail(name, "whole (go back to an older copy)", "a damaged file")
    with np.load(io.BytesIO(body), allow_pickle=False) as arrays:
        return restored(dict(arrays), name)


def arrays_of(agent: Agent) -> dict[str, np.ndarray]:
    waiting, answered = agent._open.waiting, agent._answered
    about = {
        "driftbandits": __version__,
        **{name: getattr(agent, name) for name in SETTINGS},
        "arms": agent.arms,
        "retired": agent.retired,
        "decisions": agent.decisions,
        "rewards": agent.rewards,
        "expired": agent.expired,
        "clock": agent._clock,
        "open": [[id, kept.arm, kept.law.size, kept.time] for id, kept in waiting.items()],
        "answered": [
            [id, kept.arm, kept.law.size, kept.reward, kept.expired]
            for id, kept in answered.items()
        ],
    }
    laws = [*(kept.law for kept in waiting.values()), *(kept.law for kept in answered.values())]
    return {
        "about": np.frombuffer(json.dumps(about, default=plain).encode(), np.uint8),
        "laws": np.concatenate([np.zeros(0, np.float32), *laws]),
        "tickets": agent._open.tickets_of(list(waiting)),
        "slots": np.array(agent._active.size),
        **{f"state{path}": array for path, array in agent._learner.state().items()},
    }


def plain(number: np.generic) -> object:
    """A setting may have been given as one of NumPy's numbers."""
    return number.item()


def restored(arrays: dict[str, np.ndarray], name: str) -> Agent:
    about = json.loads(arrays["about"].tobytes())
    given = {key: about[key] for key in SETTINGS}
    agent = Agent(about["arms"], **given)
    if arrays["slots"] > len(agent.arms):
        agent._widen(int(arrays["slots"]))
    for arm in about["retired"]:
        agent.retire_arm(arm)
    state = {
        path.removeprefix("state"): array
        for path, array in arrays.items()
        if path.startswith("state")
    }
    try:
        agent._learner.set_state(state, about["decisions"])
    except ValueError:
        rule = f"of a policy whose memory is as in driftbandits {__version__}"
        check.fail(name, rule, f"{about['policy']} of driftbandits {about['driftbandits']}")
    agent._clock, agent.rewards, agent.expired = (
        about[key] for key in ("clock", "rewards", "expired")
    )
    restore_decisions(agent, about, arrays["laws"], arrays["tickets"])
    return agent


def restore_decisions(
    agent: Agent, about: dict[str, Any], laws: np.ndarray, tickets: np.ndarray
) -> None:
    first = 0

    def next_law(size: int) -> np.ndarray:
        nonlocal first
        first += size
        return laws[first - size : first].copy()

    rows = agent._open.put(tickets)
    for (id, arm, size, time), row in zip(about["open"], rows, strict=True):
        agent._open.waiting[id] = Open(arm, next_law(size), time, row)
    for id, arm, size, reward, expired in about["answered"]:
        agent._answered[id] = Answered(arm, next_law(size), reward, expired)
