"""Blocks that are computed at the same time do not wait for each other's threads."""

import threading
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import pytest

from driftbandits.backend import device, own_device


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
    with own_device():
        assert device() is first
    assert device() is None


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
        assert seen == [device()]


def test_what_an_own_device_computed_is_an_ordinary_array() -> None:
    with own_device():
        here = jax.jit(lambda x: x + 1)(jnp.arange(3))
    assert jax.device_get(here).tolist() == [1, 2, 3]
