"""Computes pieces on a Ray cluster: they are sent as text and fetched as they finish.

The argument of a task is a piece, which is text and numbers. Its worker builds the program with the
code that is installed there, and refuses if that differs from ours. Only a few tasks per CPU are in
flight at a time, and none of their results stay here, so the driver's memory does not grow with
their number. Ray repeats a task whose worker or node was lost. A task that fails for good comes
back as a `Failed`, and the others continue.
"""

import io
import logging
import os
import re
import socket
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from driftbandits import check
from driftbandits.error_text import first_line, last_line
from driftbandits.extras import needed_for
from driftbandits.running.compute import Computed, Failed, compute_piece, ignore
from driftbandits.running.piece import Piece
from driftbandits.running.planning import PieceJob
from driftbandits.running.provenance import code_fingerprint
from driftbandits.running.watcher import Watcher
from driftbandits.simulation.cache_folder import keep_by_default
from driftbandits.simulation.threads import AHEAD, WorkError, available_cores

if TYPE_CHECKING:
    from ray import ObjectRef

RETRIES = 3  # after a lost worker or node
ATTEMPTS = 3  # to be let in by a busy cluster
LOOK_AGAIN = 5.0  # seconds between two looks at the size of the cluster: nodes may join
PATIENCE = 10.0  # seconds for an address to answer
OBJECT_STORE = 200 * 2**20  # bytes, of a cluster of our own: results on their way to the driver
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
KEPT = "finished work is kept: repeat the command to resume"


class OtherCode(NamedTuple):
    """The answer of a node whose code would give other numbers."""

    node: str
    code: str
    asked: str


Outcome = Computed | Failed


def compute_sent(fields: tuple[Any, ...]) -> Outcome | OtherCode:
    """Computes a piece on a worker. It never raises: errors are returned as text."""
    node = f"node {socket.gethostname()}"
    try:
        piece = Piece(*fields)
        code = code_fingerprint(piece.policy, piece.environment)
        if piece.code != code:
            return OtherCode(node, code, piece.code)
        keep_by_default()
        return compute_piece(piece)
    except Exception as error:
        return Failed(node, f"{type(error).__name__}: {error}")


def compute_on_ray(
    jobs: Sequence[PieceJob], on: str, cores: int | None, watcher: Watcher
) -> Iterator[tuple[PieceJob, Outcome]]:
    """Yields each job with its result, as they finish; computes at most `cores` at a time."""
    if not jobs:
        return
    with connected(on, cores):
        pieces = (job.piece for job in jobs)
        for index, outcome in send_pieces(pieces, cores, watcher.cores_used):
            if isinstance(outcome, Computed):
                watcher.advanced(jobs[index], jobs[index].steps, outcome.seconds)
            yield jobs[index], outcome


def send_pieces(
    pieces: Iterable[Piece],
    limit: int | None = None,
    cores_used: Callable[[int], None] = ignore,
    compute: Callable[[tuple[Any, ...]], Outcome | OtherCode] | None = None,
) -> Iterator[tuple[int, Outcome]]:
    """Sends the pieces in order; yields each one's index and outcome, as they finish.

    Args:
        pieces: What to compute. It is consumed as there is room.
        limit: How many to compute at a time. None uses all CPUs of the cluster.
        cores_used: Called with the number that are computed at a time, and again when nodes join or
            leave.
        compute: What a worker does with the fields of a piece. None computes it.
    """
    import ray

    task = ray.remote(num_cpus=1, max_retries=RETRIES)(compute or compute_sent)
    waiting = enumerate(pieces)
    under_way: dict[ObjectRef[Any], int] = {}
    cpus, look_again = 0, 0.0
    try:
        while True:
            if time.monotonic() >= look_again:
                before, cpus = cpus, cluster_cpus()
                look_again = time.monotonic() + LOOK_AGAIN
                if cpus != before:
                    cores_used(min(cpus, limit or cpus))
            window = limit if limit and limit < cpus else AHEAD * cpus
            for index, piece in islice(waiting, max(window - len(under_way), 0)):
                under_way[task.remote(tuple(piece))] = index
            if not under_way:
                return
            for ref in finished(list(under_way)):
                yield under_way.pop(ref), fetch(ref)
    finally:  # after an error or an interrupt nobody waits for these
        for ref in under_way:
            with suppress(Exception):
                ray.cancel(ref, force=True)


def cluster_cpus() -> int:
    import ray

    return max(int(ray.cluster_resources().get("CPU", 0)), 1)


def finished(refs: "list[ObjectRef[Any]]") -> "list[ObjectRef[Any]]":
    """The finished ones, once there is one or some time has passed."""
    import ray

    first, others = ray.wait(refs, num_returns=1, timeout=LOOK_AGAIN)
    if first and others:
        return first + ray.wait(others, num_returns=len(others), timeout=0)[0]
    return first


def fetch(ref: "ObjectRef[Any]") -> Outcome:
    """The outcome of a task; raises an error if no task could succeed."""
    import ray
    from ray.exceptions import LocalRayletDiedError, RayError, RayTaskError

    try:
        outcome = ray.get(ref)
    except RayTaskError as error:  # `compute_sent` raises nothing: it could not even be loaded
        where = re.search(r"ip=([^\s,)]+)", str(error))
        raise WorkError(
            f"node {where.group(1) if where else ''} cannot load driftbandits: {last_line(error)}; "
            f"install the driver's version on every node, {KEPT}"
        ) from None
    except LocalRayletDiedError as error:
        raise WorkError(
            f"the Ray node of this connection is gone ({first_line(error)}); {KEPT}"
        ) from None
    except RayError as error:
        return Failed(
            "a node that Ray does not name", f"{type(error).__name__}: {first_line(error)}"
        )
    if isinstance(outcome, OtherCode):
        raise WorkError(
            f"{outcome.node} has another version of driftbandits or JAX (code "
            f"{outcome.code}, here {outcome.asked}); install the same one there, {KEPT}"
        )
    return outcome


def check_place(on: str) -> None:
    """Raises `InputError` if `on` is not a Ray cluster, and an error if Ray is missing."""
    if not re.fullmatch(r"ray(://[^\s/]+:\d+)?", on):
        check.fail("on", "ray, or ray://HOST:PORT as in ray://head:10001", on)
    with needed_for(f"on={on}"):
        for module in ["ray"] if on == "ray" else ["ray", "grpc"]:  # the Ray Client takes grpc
            import_module(module)


@contextmanager
def connected(on: str, cores: int | None = None) -> Iterator[None]:
    """A connection to the cluster, without its messages; one that is open already stays open."""
    check_place(on)
    import ray

    without_chatter: Any = WithoutRay(sys.stdout)
    with redirect_stdout(without_chatter), quiet():
        if ray.is_initialized():
            yield
            return
        join(on, cores)
        try:
            yield
        except ConnectionError as error:
            raise WorkError(f"the cluster was lost ({first_line(error)}); {KEPT}") from error
        finally:
            with redirect_stdout(io.StringIO()):  # what Ray has not printed yet, it prints here
                ray.shutdown()


@contextmanager
def quiet() -> Iterator[None]:
    """Silences Ray, and restores the caller's settings afterwards."""
    log = logging.getLogger("ray.util.client")
    level, added = log.level, {name: QUIET[name] for name in QUIET if name not in os.environ}
    os.environ.update(added)
    log.setLevel(logging.CRITICAL)  # its errors are raised too
    try:
        yield
    finally:
        log.setLevel(level)
        for name in added:
            os.environ.pop(name, None)


def join(on: str, cores: int | None) -> None:
    """Joins the cluster that `on` names; plain `ray` starts one here if there is none."""
    import ray

    silent: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    address = (os.environ.get("RAY_ADDRESS") if on == "ray" else on) or "auto"
    if address != "local":
        try:
            check_reachable(address)
            connect(address, silent)
            return
        except (OSError, RuntimeError, ValueError) as error:
            if address != "auto" or not isinstance(error, ConnectionError):
                raise WorkError(
                    f"the Ray cluster at {address} cannot be joined ({first_line(error)}); "
                    "`ray start --head` starts one"
                ) from None
    with warnings.catch_warnings():
        # JAX warns of forks; those of Ray become other programs at once.
        warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
        ray.init(
            address="local",
            num_cpus=cores or available_cores(),
            object_store_memory=OBJECT_STORE,
            include_dashboard=False,
            **silent,
        )


def connect(address: str, quiet: dict[str, Any]) -> None:
    """Tries again if the Ray Client's server gave up: a busy head is slow to start our side."""
    import ray

    for attempt in range(1, ATTEMPTS + 1):
        try:
            ray.init(address=address, **quiet)
            return
        except ConnectionAbortedError:
            if attempt == ATTEMPTS:
                raise


def check_reachable(address: str) -> None:
    """Fails quickly if nothing listens there; Ray itself would try for a minute."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE).close()


class WithoutRay:
    """Standard output without the messages of Ray's threads on lost workers, which we report."""

    def __init__(self, out: Any) -> None:
        self._out = out

    def write(self, text: str) -> int:
        if threading.current_thread().name.startswith("ray_"):
            return len(text)
        return int(self._out.write(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._out, name)
