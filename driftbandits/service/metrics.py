"""Metrics for Prometheus."""

from bisect import bisect_left
from collections import Counter as Counts
from collections.abc import Iterator
from itertools import accumulate

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from driftbandits.service.store.records import KINDS, Event

BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)


class RequestMetrics(Collector):
    """Request counts, on the event loop's thread only, so that no lock is needed."""

    def __init__(self) -> None:
        self._counts: Counts[tuple[str, int]] = Counts()  # by route and status
        self._buckets = [0] * (len(BUCKETS) + 1)
        self._seconds = 0.0

    def count(self, route: str, status: int, seconds: float) -> None:
        self._counts[route, status] += 1
        self._buckets[bisect_left(BUCKETS, seconds)] += 1
        self._seconds += seconds

    def collect(self) -> Iterator[CounterMetricFamily | HistogramMetricFamily]:
        counts = CounterMetricFamily(
            "driftbandits_requests", "HTTP requests answered.", labels=["route", "status"]
        )
        for (route, status), count in self._counts.items():
            counts.add_metric([route, str(status)], count)
        yield counts
        borders = [*map(str, BUCKETS), "+Inf"]
        buckets = list(zip(borders, accumulate(self._buckets), strict=True))
        yield HistogramMetricFamily(
            "driftbandits_request_seconds", "Time until the answer.", buckets, self._seconds
        )


class Metrics:
    """The metrics of one worker since its start."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self.requests = RequestMetrics()
        registry.register(self.requests)
        self.commit_seconds = Histogram(
            "driftbandits_commit_seconds",
            "Time of one transaction.",
            registry=registry,
            buckets=BUCKETS,
        )
        self._events = Counter(
            "driftbandits_events", "Events committed to the log.", ["kind"], registry=registry
        )
        for kind in KINDS:
            self._events.labels(kind)  # shown as 0 until the first one, so that rates can be taken
        self.snapshots = Counter(
            "driftbandits_snapshots",
            "Snapshots written and read back.",
            ["state"],
            registry=registry,
        )
        self.mismatches = Counter(
            "driftbandits_replay_mismatches",
            "Decisions that differed when the log was replayed.",
            registry=registry,
        )
        self.now_in_flight = 0
        in_flight = Gauge("driftbandits_in_flight", "Requests being served.", registry=registry)
        in_flight.set_function(lambda: self.now_in_flight)
        self.bandits = Gauge("driftbandits_bandits", "Bandits on this worker.", registry=registry)
        self.open = Gauge(
            "driftbandits_open_decisions", "Decisions waiting for a reward.", registry=registry
        )

    def count(self, events: list[Event]) -> None:
        for kind, number in Counts(event.kind for event in events).items():
            self._events.labels(kind).inc(number)

    def text(self) -> bytes:
        return generate_latest(self._registry)
