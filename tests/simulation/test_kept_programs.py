"""Programs that are kept between processes: found by all that shapes them, or made again."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import jax
import numpy as np
import pytest
from jax.experimental.compilation_cache.compilation_cache import reset_cache

from driftbandits import POLICIES, build_environment, build_policy, simulate
from driftbandits.policies.uniform import uniform
from driftbandits.running.compute import ignore
from driftbandits.simulation import engine, kept_programs, surroundings
from driftbandits.simulation.cache_folder import VARIABLE, cache_folder, usual_folder
from driftbandits.simulation.compiling import CompiledPrograms
from driftbandits.simulation.devices import own_device
from driftbandits.simulation.engine import Program, Steps, program_for, run_block
from driftbandits.simulation.program_names import agent_name, block_name
from driftbandits.simulation.threads import Stopped
from driftbandits.simulation.traces import Trace

WORLD = "bernoulli(num_arms=3, delayed=2)"
NAME = block_name("uniform", WORLD, 20, 1, None)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch) -> Iterator[Path]:
    """Of our own cache alone: what JAX's own has loaded is not kept."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR")
    program_for.cache_clear()
    engine._steps.clear()
    before = jax.config.jax_compilation_cache_dir
    set_jax_cache(None)
    yield tmp_path / "cache"
    set_jax_cache(before)


@contextmanager
def jax_options(**options: object) -> Iterator[None]:
    before = {name: getattr(jax.config, name) for name in options}
    for name, value in options.items():
        jax.config.update(name, value)
    yield
    for name, value in before.items():
        jax.config.update(name, value)


def set_jax_cache(folder: str | None) -> None:
    jax.config.update("jax_compilation_cache_dir", folder)
    reset_cache()


def fail(*_: object) -> None:
    raise AssertionError("traced, though the program is kept")


def program() -> Program:
    """As a new process has it."""
    engine._steps.clear()
    world = build_environment(WORLD)
    return Program(build_policy("uniform", world.spec), world, 20, 1, None, NAME)


@contextmanager
def no_tracing() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Steps, "_trace", fail)
        patch.setattr(engine, "block_width", fail)
        yield


def run_kept() -> Trace:
    with no_tracing():
        return run(program())


def run(program: Program) -> Trace:
    with own_device():
        return run_block(program, 3, 0, ignore, Stopped())


def assert_same(one: Trace, other: Trace) -> None:
    for first, second in zip(one, other, strict=True):
        np.testing.assert_array_equal(first, second)


def test_the_next_process_traces_nothing_and_has_the_same_numbers(folder: Path) -> None:
    made = run(program())
    assert len(list(folder.iterdir())) == 1
    assert_same(run_kept(), made)


def test_several_devices_load_what_one_has_compiled(folder: Path, monkeypatch) -> None:
    made = run(program())
    monkeypatch.setattr(Steps, "_compile", fail)
    shared = program()
    with no_tracing(), ThreadPoolExecutor(2) as pool, own_device():
        traces = [pool.submit(run, shared) for _ in range(2)]
        for trace in [*(future.result() for future in traces), run(shared)]:
            assert_same(trace, made)


def test_a_process_finds_what_another_one_has_kept(folder: Path) -> None:
    code = (
        "from driftbandits import simulate\n"
        f"print(simulate('uniform', {WORLD!r}, horizon=20).regret[-1, -1])"
    )
    told = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert len(list(folder.iterdir())) == 1
    assert float(told[0].stdout) == float(told[1].stdout)
    assert float(told[0].stdout) == simulate("uniform", WORLD, horizon=20).regret[-1, -1]
    assert len(list(folder.iterdir())) == 1


def test_what_the_cache_of_jax_has_loaded_is_not_kept(folder: Path, tmp_path: Path) -> None:
    """XLA would make bytes of it that fail when they are run."""
    with jax_options(jax_persistent_cache_min_compile_time_secs=0.0):
        set_jax_cache(str(tmp_path / "jax"))
        made = run(program())
        assert len(list(folder.iterdir())) == 1
        shutil.rmtree(folder)
        assert_same(run(program()), made)
        assert not folder.exists()


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:0],
        lambda content: content[:-1],
        lambda content: content[:2000] + b"\0" + content[2001:],
        lambda content: content.replace(kept_programs.FORMAT, b"driftbandits programs 0\n"),
    ],
)
def test_a_damaged_file_is_made_again(folder: Path, damage) -> None:
    made = run(program())
    (file,) = folder.iterdir()
    content = file.read_bytes()
    file.write_bytes(damage(content))
    assert_same(run(program()), made)
    assert_same(run_kept(), made)


def test_what_the_device_refuses_is_compiled(folder: Path, monkeypatch) -> None:
    made = run(program())
    (file,) = folder.iterdir()
    facts, binaries = kept_programs.decoded(file.read_bytes(), file.stem)
    broken = [binary._replace(code=b"no program") for binary in binaries]
    file.write_bytes(kept_programs.encoded(kept_programs.Kept(facts, broken), file.stem))
    assert_same(run(program()), made)
    assert_same(run_kept(), made)


def test_files_of_another_user_are_not_read(folder: Path, monkeypatch) -> None:
    run(program())
    name = program()._name
    assert kept_programs.find(folder, name)
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert kept_programs.find(folder, name) is None


def test_a_file_that_others_can_write_is_not_read(folder: Path) -> None:
    run(program())
    (file,) = folder.iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    file.chmod(0o660)
    assert kept_programs.find(folder, program()._name) is None


def test_a_file_under_another_name_is_not_read(folder: Path) -> None:
    run(program())
    (file,) = folder.iterdir()
    file.rename(kept_programs.path_of(folder, NAME))
    assert kept_programs.find(folder, NAME) is None


def test_numbers_of_numpy_are_numbers(folder: Path) -> None:
    simulate("uniform", WORLD, horizon=20)
    simulate("uniform", WORLD, horizon=np.int64(20))
    assert len(list(folder.iterdir())) == 1


def test_the_folder_is_the_users_alone(folder: Path) -> None:
    run(program())
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_cannot_be_made_disturbs_nobody(folder: Path) -> None:
    folder.write_text("a file in its place")
    made = run(program())
    assert_same(run(program()), made)


def test_the_files_not_used_for_longest_go_first(folder: Path, monkeypatch) -> None:
    run(program())
    (file,) = folder.iterdir()
    for age in (30, 10, 20):
        other = folder / f"{age}.programs"
        other.write_bytes(file.read_bytes())
        os.utime(other, (0, file.stat().st_mtime - age))
    monkeypatch.setattr(kept_programs, "MOST_BYTES", 2.5 * file.stat().st_size)
    kept_programs.make_room(folder)
    assert {path.name for path in folder.iterdir()} == {file.name, "10.programs"}
    os.utime(file, (0, 0))
    assert kept_programs.find(folder, program()._name)
    assert file.stat().st_mtime > 0, "it was used now"


def test_many_may_write_the_same_file_at_once(folder: Path) -> None:
    with own_device():
        made = CompiledPrograms([program().compiled()], movable=True)
    name = program()._name
    with ThreadPoolExecutor(4) as pool:
        several = [pool.submit(kept_programs.keep, folder, name, {}, made) for _ in range(20)]
        assert all(future.result() for future in several)
    assert [path.suffix for path in folder.iterdir()] == [".programs"]
    assert kept_programs.find(folder, name)


def test_a_name_changes_with_all_that_shapes_the_program(tmp_path: Path, monkeypatch) -> None:
    others = [
        block_name("uniform", WORLD, 21, 1, None),
        block_name("uniform", WORLD, 20, 2, None),
        block_name("uniform", "bernoulli(num_arms=4)", 20, 1, None),
        block_name("ucb", WORLD, 20, 1, None),
        agent_name("uniform", build_environment(WORLD).spec),
    ]
    paths = {kept_programs.path_of(tmp_path, name) for name in [NAME, *others]}
    with jax.enable_x64(not jax.config.jax_enable_x64):
        paths.add(kept_programs.path_of(tmp_path, NAME))
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true")
    paths.add(kept_programs.path_of(tmp_path, NAME))
    for part in ("code_digest", "processor", "version"):
        surroundings.fixed_surroundings.cache_clear()
        monkeypatch.setattr(surroundings, part, lambda *_: "another")
        paths.add(kept_programs.path_of(tmp_path, NAME))
    surroundings.fixed_surroundings.cache_clear()
    assert len(paths) == 2 + len(others) + 1 + 3


def test_settings_that_are_numbers_share_a_file(folder: Path) -> None:
    for policy in ("ucb(scale=0.3)", "ucb", "ucb(scale=2)", "ucb"):
        engine._steps.clear()
        program_for.cache_clear()
        simulate(policy, WORLD, horizon=20)
    assert len(list(folder.iterdir())) == 1


def test_what_cannot_be_written_goes_by_its_text(folder: Path, monkeypatch) -> None:
    monkeypatch.setattr(engine, "shared_name", lambda *_: None)
    made = run(program())
    assert kept_programs.find(folder, NAME)
    assert_same(run_kept(), made)


def test_a_table_is_known_by_its_content(tmp_path: Path) -> None:
    file = tmp_path / "rewards.csv"
    file.write_text("a,b\n1,0\n")
    before = block_name("uniform", f"table(file={str(file)!r})", 20)
    file.write_text("a,b\n0,1\n")
    assert block_name("uniform", f"table(file={str(file)!r})", 20) != before


def test_what_is_made_by_other_code_has_no_name(monkeypatch) -> None:
    def mine(spec):
        return uniform(spec)

    monkeypatch.setitem(POLICIES, "mine", mine)
    world = build_environment(WORLD)
    assert block_name("mine", WORLD, 20) is None
    assert agent_name("mine", world.spec) is None
    assert block_name(build_policy("uniform", world.spec), WORLD, 20) is None


def test_nothing_is_kept_unless_someone_says_so(monkeypatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    code = (
        "from driftbandits.simulation.cache_folder import cache_folder, keep_by_default\n"
        "print(cache_folder()); keep_by_default(); print(cache_folder())"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["None", str(usual_folder())]


def test_the_variable_and_the_argument(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for told, meant in {
        "on": tmp_path / "driftbandits",
        "off": None,
        "0": None,
        "/some": Path("/some"),
    }.items():
        monkeypatch.setenv(VARIABLE, told)
        assert cache_folder() == meant
        assert cache_folder(False) is None
        assert cache_folder(True) == tmp_path / "driftbandits"
        assert cache_folder("/mine") == Path("/mine")
