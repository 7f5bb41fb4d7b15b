"""Blocks that are computed at the same time do not wait for each other's threads."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import jax
import jax.numpy as jnp
import pytest

from driftbandits.environments import build_environment
from driftbandits.policies import build_policy
from driftbandits.simulation.devices import device, own_device
from driftbandits.simulation.engine import Steps, block_words, program_for
from tests.simulation.test_kept_programs import folder

__all__ = ["folder"]  # the fixture


def test_threads_that_compute_at_the_same_time_have_clients_of_their_own() -> None:
    together = threading.Barrier(3, timeout=60)

    @own_device()
    def client_of_an_array() -> object:
        together.wait()
        (place,) = jnp.arange(3).devices()
        assert place == device()
        together.wait()
        return place.client

    with ThreadPoolExecutor(3) as pool:
        clients = [pool.submit(client_of_an_array) for _ in range(3)]
        assert len({id(future.result()) for future in clients}) == 3


def test_one_after_the_other_they_share_a_device() -> None:
    with own_device():
        first = device()
    assert device() is None
    with own_device():
        assert device() is first is not None


def test_one_inside_the_other() -> None:
    with own_device():
        outer = device()
        with own_device():
            assert device() is not outer
        assert device() is outer
        assert jnp.arange(3).devices() == {outer}


def test_the_device_that_was_made_first_is_taken_first() -> None:
    with own_device():
        first = device()
        with own_device():
            second = device()
    for _ in range(2):
        with own_device():
            assert device() is first is not second


def test_a_device_comes_back_after_an_error() -> None:
    seen = []

    @own_device()
    def fail() -> None:
        seen.append(device())
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert device() is None
    with own_device():
        assert seen == [device()] != [None]


def test_what_an_own_device_computed_goes_on_elsewhere() -> None:
    with own_device():
        here = jax.jit(lambda x: x + 1)(jnp.arange(3))
    assert (jnp.arange(3) + jax.device_get(here)).tolist() == [1, 3, 5]


@pytest.mark.usefixtures("folder")  # what JAX's own cache has loaded is not loaded elsewhere
def test_a_program_is_compiled_once_and_loaded_by_other_devices(monkeypatch) -> None:
    world = build_environment("bernoulli")
    program = program_for(build_policy("uniform", world.spec), world, 7)
    compiled, places = [], []
    compile_it = Steps._compile
    monkeypatch.setattr(
        Steps, "_compile", lambda self: compiled.append(device()) or compile_it(self)
    )
    with own_device():
        assert program.compiled() is program.compiled()
        steps = program.steps()
        for place in own_device(), nullcontext():
            with place:
                words = block_words(3, program.width, 0)
                numbers, nothing = jax.device_put(program.numbers, device()), steps.nothing()
                states, _ = steps.compiled()(numbers, nothing, words, 0, 7)
                places.append(states[0].devices())
    assert len(compiled) == 1
    assert places[0] != places[1]
