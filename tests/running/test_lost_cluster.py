"""What is said when the cluster itself is lost; test_ray_cluster.py has real nodes."""

import pytest
import ray
from ray.exceptions import LocalRayletDiedError, NodeDiedError

from driftbandits.running import ray_cluster
from driftbandits.running.compute import Failed
from driftbandits.running.ray_cluster import ATTEMPTS, KEPT
from driftbandits.simulation.threads import WorkError


def raising(error: Exception):
    def raise_it(*_: object, **__: object) -> None:
        raise error

    return raise_it


def test_the_node_of_this_connection(monkeypatch) -> None:
    monkeypatch.setattr(ray, "get", raising(LocalRayletDiedError()))
    with pytest.raises(WorkError, match=rf"^the Ray node .* is gone \(.+\); {KEPT}$"):
        ray_cluster.fetch(object())


def test_another_node_for_good_is_a_failed_piece(monkeypatch) -> None:
    monkeypatch.setattr(ray, "get", raising(NodeDiedError("gone with the wind\nand more")))
    failed = ray_cluster.fetch(object())
    assert isinstance(failed, Failed)
    assert failed.reason.startswith("NodeDiedError: ")
    assert "and more" not in failed.reason


def test_the_connection(monkeypatch) -> None:
    closed = []
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "shutdown", lambda: closed.append(True))
    monkeypatch.setattr(ray_cluster, "join", lambda *_: None)
    with (
        pytest.raises(WorkError, match=rf"^the cluster was lost \(line cut\); {KEPT}$"),
        ray_cluster.connected("ray"),
    ):
        raise ConnectionError("line cut")
    assert closed == [True]


@pytest.mark.parametrize("busy", range(ATTEMPTS + 1))
def test_a_busy_head_is_asked_again(monkeypatch, busy: int) -> None:
    asked = []

    def init(**_: object) -> None:
        asked.append(len(asked))
        if len(asked) <= busy:
            raise ConnectionAbortedError("too busy")

    monkeypatch.setattr(ray, "init", init)
    if busy < ATTEMPTS:
        ray_cluster.connect("ray://head:10001", {})
    else:
        with pytest.raises(ConnectionAbortedError):
            ray_cluster.connect("ray://head:10001", {})
    assert len(asked) == min(busy + 1, ATTEMPTS)
