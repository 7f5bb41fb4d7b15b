"""Saved agents: of every version that there was, and damaged ones."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from driftbandits import InputError
from driftbandits.agents.agent import Agent
from driftbandits.agents.file import from_bytes, to_bytes
from driftbandits.agents.file_bytes import VERSION
from driftbandits.agents.old_state_paths import RENAMED, new_path, renamed
from driftbandits.agents.old_tracker_states import completed
from tests.agents.saved_agents.make import AGENTS, goes_on

SAVED = Path(__file__).parent / "saved_agents"
FILES = sorted(SAVED.glob("*/*.agent"))


@pytest.fixture
def agent() -> Agent:
    made = Agent(["red", "green"], policy="thompson", window=50)
    for now in range(5):
        made.decide(id=f"d{now}", now=now)
    made.reward("d3", 1, now=6)
    return made


def test_there_is_a_file_of_every_version() -> None:
    names = {f"{version}/{name}.agent" for version in range(1, VERSION + 1) for name in AGENTS}
    assert {path.relative_to(SAVED).as_posix() for path in FILES} >= names


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_kept_file_goes_on_as_it_did(path: Path) -> None:
    agent = Agent.load(path)
    assert agent.arms == ["red", "green", "blue", "grün"]
    assert agent.retired == ["blue"]
    made, expected = goes_on(agent), json.loads(path.with_suffix(".json").read_text())
    for one, other in zip(made, expected, strict=True):
        # Another machine may round otherwise.
        assert one["probabilities"] == pytest.approx(other["probabilities"], abs=1e-5)
        assert (one["id"], one["arm"]) == (other["id"], other["arm"])


def test_a_loaded_agent_is_the_same(agent: Agent, tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "shop.agent"
    agent.add_arm("blue")
    agent.retire_arm("red")
    agent.save(path)
    assert [file.name for file in path.parent.iterdir()] == ["shop.agent"]
    loaded = Agent.load(str(path))
    assert (loaded.arms, loaded.retired, loaded.open) == (agent.arms, agent.retired, agent.open)
    assert (loaded.counts.decisions, loaded.settings.window) == (5, 50)
    assert loaded.reward("d3", 1, now=7) == "duplicate"
    assert loaded.decide(id="d1") == agent.decide(id="d1")
    assert to_bytes(from_bytes(to_bytes(agent._book))) == to_bytes(agent._book)


def test_settings_may_be_numbers_of_numpy() -> None:
    given = Agent(
        ["a", "b"], policy="thompson", seed=np.int64(3), window=np.float32(8),  # type: ignore[arg-type]
        default_reward=np.float32(0.5), horizon=np.int32(9), reward_range=(np.float32(0), 2),  # type: ignore[arg-type]
    )  # fmt: skip
    loaded = from_bytes(to_bytes(given._book)).settings
    assert (loaded.seed, loaded.window, loaded.default_reward) == (3, 8, 0.5)
    assert (loaded.horizon, loaded.reward_range) == (9, (0, 2))


def test_every_damaged_byte_is_noticed(agent: Agent) -> None:
    content = to_bytes(agent._book)
    for place in [*range(100), *range(100, len(content), 97)]:
        damaged = bytearray(content)
        damaged[place] ^= 1
        with pytest.raises(InputError, match=r"the agent (must be|is damaged)"):
            from_bytes(bytes(damaged))


@pytest.mark.parametrize("left", [0, 10, 90, 500])
def test_a_file_that_was_cut_off_is_refused(agent: Agent, tmp_path: Path, left: int) -> None:
    path = tmp_path / "cut.agent"
    path.write_bytes(to_bytes(agent._book)[:left])
    with pytest.raises(InputError, match=r"cut\.agent (is damaged|must be a file)"):
        Agent.load(path)


def test_a_newer_version_is_refused(agent: Agent) -> None:
    newer = to_bytes(agent._book).replace(b"agent 5 ", b"agent 27 ", 1)
    message = r"of version 5 or older \(install a newer driftbandits to read it\), got 'version 27'"
    with pytest.raises(InputError, match=message):
        from_bytes(newer)


def test_a_file_that_cannot_be_written_leaves_the_old_one(
    agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "shop.agent"
    agent.save(path)
    before = path.read_bytes()
    agent.decide(now=9)

    def full(self: Path, target: Path) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="no space left"):
        agent.save(path)
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [before]


# Of a state as version 1 wrote it: all that has another path today, and some that has not.
PATHS_OF_VERSION_1 = {
    "recurrent_linear": {
        ".network.layer.inputs.weights": ".network.layer.inputs.weights",
        ".hidden": ".hidden",
        ".made": ".filled",
    },
    "tracker": {
        ".tracks[0].experts.weights": ".tracks[0].experts.weights",
        ".tracks[0].experts.squares": ".tracks[0].experts.squared_errors",
        ".tracks[1].experts.heard": ".tracks[1].experts.error_count",
        ".gate.squares": ".gate.squares",
        ".seen.squares": ".seen.squares",
        ".runs.evidence": ".streaks.evidence",
        ".runs.rewards": ".streaks.counts",
        ".runs.total": ".streaks.excess",
        ".runs.last": ".streaks.arm",
        ".runs.length": ".streaks.length",
        ".squares": ".context_squares",
        ".learnt": ".last_reward_time",
    },
}


@pytest.mark.parametrize("policy", RENAMED)
def test_old_paths_are_renamed(policy: str) -> None:
    paths = PATHS_OF_VERSION_1[policy]
    arrays = {old: np.array(place) for place, old in enumerate(paths)}
    found = renamed(arrays, policy)
    assert found == {paths[old]: array for old, array in arrays.items()}
    today = Agent(["a", "b"], ["x"], policy)._book.learner.state().keys()
    assert found.keys() - {".context_squares"} <= today  # it was renamed again, after version 2


@pytest.mark.parametrize("policy", RENAMED)
def test_every_rule_renames_something(policy: str) -> None:
    for rule in RENAMED[policy]:
        assert any(new_path(old, [rule]) != old for old in PATHS_OF_VERSION_1[policy]), rule


@pytest.mark.parametrize("dim", [2, 33])
def test_a_tracker_that_knew_no_outliers_goes_on(dim: int) -> None:
    """Of 40,000 decisions; the wide one had covariances."""
    learner = Agent(["a", "b"], [f"x{i}" for i in range(dim)], "tracker")._book.learner
    today = learner.state()
    new = {path for path in today if re.match(r"\.contexts|\.seen\.(last|dist|alert)|\.rest", path)}
    old = {path: array for path, array in today.items() if path not in new}
    old |= {".context_squares": np.full(dim, 4e4 * 9, np.float32), ".time": np.int32(40_000)}
    old |= {".seen.number": np.float32(30_000), ".seen.squares": np.float32(30_000 * 4)}
    if dim > 32:
        for path in old:
            if path.endswith("covariance"):
                old[path] = np.apply_along_axis(np.diag, -1, old[path])
    found = completed(old)
    learner.set_state(found, 40_000)
    np.testing.assert_allclose(found[".contexts.squares"] / found[".contexts.number"], 9)
    assert found[".seen.squares"] / found[".seen.number"] == pytest.approx(4)
    assert (found[".seen.distances.number"], found[".contexts.sizes.number"][-1]) == (16, 16)
    for path in today:
        if path.endswith("covariance"):
            np.testing.assert_array_equal(found[path], today[path])
