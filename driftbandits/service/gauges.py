"""What Prometheus is told."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from driftbandits.service.records import Event

FAST = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)


class Gauges:
    """The counters of one worker, since its start."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self._served: dict[tuple[str, int], Counter] = {}
        self._requests = Counter(
            "driftbandits_requests", "HTTP requests.", ["route", "status"], registry=registry
        )
        self._seconds = Histogram(
            "driftbandits_request_seconds", "Until the answer.", registry=registry, buckets=FAST
        )
        self.commit_seconds = Histogram(
            "driftbandits_commit_seconds", "Of one transaction.", registry=registry, buckets=FAST
        )
        self._events = Counter(
            "driftbandits_events", "Committed to the log.", ["kind"], registry=registry
        )
        self.snapshots = Counter(
            "driftbandits_snapshots", "Written and read back.", ["state"], registry=registry
        )
        self.mismatches = Counter(
            "driftbandits_replay_mismatches",
            "Decisions that came out differently when they were made again.",
            registry=registry,
        )
        self.now_in_flight = 0
        in_flight = Gauge("driftbandits_in_flight", "Requests now.", registry=registry)
        in_flight.set_function(lambda: self.now_in_flight)
        self.bandits = Gauge("driftbandits_bandits", "Looked after here.", registry=registry)
        self.open = Gauge("driftbandits_open_decisions", "That wait.", registry=registry)

    def count(self, events: list[Event]) -> None:
        kinds: dict[str, int] = {}
        for event in events:
            kinds[event.kind] = kinds.get(event.kind, 0) + 1
        for kind, number in kinds.items():
            self._events.labels(kind).inc(number)

    def served(self, route: str, status: int, seconds: float) -> None:
        key = route, status
        counter = self._served.get(key)
        if counter is None:
            counter = self._served[key] = self._requests.labels(*key)
        counter.inc()
        self._seconds.observe(seconds)

    def text(self) -> bytes:
        return generate_latest(self._registry)
