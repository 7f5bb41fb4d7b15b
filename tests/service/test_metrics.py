"""What a worker says of itself to Prometheus."""

import pytest

from driftbandits.service.metrics import Metrics
from driftbandits.service.store.records import KINDS, Event


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_event_is_counted_from_zero(kind: str) -> None:
    metrics = Metrics()
    assert f'driftbandits_events_total{{kind="{kind}"}} 0.0' in metrics.text().decode()
    metrics.count([Event(1, kind, 0.0, "a"), Event(2, kind, 0.0, "b")])
    assert f'driftbandits_events_total{{kind="{kind}"}} 2.0' in metrics.text().decode()
