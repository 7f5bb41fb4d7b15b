"""Rows of numbers from contexts: columns, scales and categories as they were seen."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftbandits.agents.encoder import Encoder
from driftbandits.agents.fields import Field, category, cyclic, flag, number
from driftbandits.agents.schema import Values, schema_of
from tests.agents.test_schema import FIELDS, VALUES

SEQUENCES = st.lists(VALUES, max_size=40)


def encoder(**fields: Field) -> Encoder:
    return Encoder(schema_of("context", fields or FIELDS))


def row(made: Encoder, **context: object) -> list[float]:
    return made.encode(made.schema.check(context)).tolist()


def seen(made: Encoder, *numbers: float) -> Encoder:
    for each in numbers:
        made.see((each + 0.0,))
    return made


def scale(numbers: list[float]) -> tuple[float, float]:
    """The scale after some numbers, by its definition."""
    count = len(numbers)
    refreshed = count // 256 * 256 if count >= 256 else 1 << count.bit_length() - 1
    window = numbers[:refreshed][-256:]
    low, centre, high = np.quantile(window, [0.16, 0.5, 0.84])
    spread = (high - low) / 2
    return centre, spread if spread > 1e-9 * abs(centre) else max(abs(centre), 1)


def test_a_row_has_the_columns_of_its_schema() -> None:
    made = encoder()
    context = {"age": 31, "price": 25, "country": "AT", "size": "M", "hour": 6, "new": True}
    found = made.see_and_encode(made.schema.check(context))
    assert found.dtype == np.float32
    assert found.shape == (made.schema.width,)
    labelled = dict(zip(made.schema.columns, found.tolist(), strict=True))
    assert labelled.pop("hour (cos)") == pytest.approx(0, abs=1e-7)
    others = {"price": -0.5, "country=1": 1, "size=M": 1, "hour (sin)": 1, "new": 1}
    assert {label: value for label, value in labelled.items() if value} == others


@pytest.mark.parametrize("name", list(FIELDS))
def test_a_missing_value_sets_its_indicator_alone(name: str) -> None:
    made = encoder(**{name: FIELDS[name]})
    made.see((None,))
    *others, missing = row(made)
    assert (missing, set(others)) == (1, {0})
    assert made.state() == encoder(**{name: FIELDS[name]}).state()


def test_values_without_what_is_required_are_not_encoded() -> None:
    with pytest.raises(IndexError):
        encoder(x=number(), y=flag(required=True)).encode((1.0, None))


def test_a_number_with_a_range_goes_from_minus_one_to_one() -> None:
    made = encoder(x=number(low=-0.7, high=0.3, required=True))
    middle = pytest.approx(0, abs=1e-7)
    assert [row(made, x=x) for x in (-0.7, -0.2, 0.3)] == [[-1], [middle], [1]]
    assert row(made, x=np.float32(0.3)) == [1]
    assert made.state() == {}


def test_cycles_close() -> None:
    made = encoder(hour=cyclic(24, required=True))
    for hour in (-30, -1e-20, 5, 23.5, 1e12):
        angle = 2 * math.pi * (hour % 24) / 24
        assert row(made, hour=hour) == pytest.approx([math.sin(angle), math.cos(angle)], abs=1e-6)
    assert row(made, hour=1) == row(made, hour=25) == row(made, hour=-23)


def test_listed_values_have_their_columns_and_all_others_share_one() -> None:
    made = encoder(size=category(values=["S", "M"]))
    for size in ("XXL", "L"):
        made.see((size,))
        assert row(made, size=size) == [0, 0, 1, 0]
    assert (row(made, size="S"), row(made, size="M")) == ([1, 0, 0, 0], [0, 1, 0, 0])
    assert made.state() == {}


def test_categories_get_columns_as_they_appear_and_later_ones_share_the_last() -> None:
    made = encoder(country=category(buckets=3))
    assert row(made, country="AT") == [0, 0, 1, 0], "encoding alone learns nothing"
    for country in ("AT", "DE", "AT", "FR", "IT"):
        made.see((country,))
    assert (row(made, country="AT"), row(made, country="DE")) == ([1, 0, 0, 0], [0, 1, 0, 0])
    assert row(made, country="FR") == row(made, country="never seen") == [0, 0, 1, 0]
    assert made.state() == {"country": ["AT", "DE"]}


def test_flags_are_one_or_zero() -> None:
    assert [row(encoder(new=flag()), new=value) for value in (True, False)] == [[1, 0], [0, 0]]


def test_before_anything_is_seen_numbers_stay_as_they_are() -> None:
    made = encoder(x=number(required=True))
    assert [row(made, x=x) for x in (0.5, -3, 7, -1e12)] == [[0.5], [-3], [5], [-5]]


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 8, 100, 255, 256, 257, 511, 512, 513, 800, 1024])
def test_the_scale_is_that_of_the_last_refresh(count: int) -> None:
    numbers = (np.random.default_rng(count).normal(50, 10, count) + np.arange(count)).tolist()
    made = seen(encoder(x=number(required=True)), *numbers)
    centre, spread = scale(numbers)
    for x in (centre, 50, 60, 70):
        expected = min(max((x - centre) / spread, -5), 5)
        assert row(made, x=x) == [pytest.approx(expected, rel=1e-5, abs=1e-6)]


def test_the_scale_is_constant_between_refreshes() -> None:
    made, changes, before = encoder(x=number()), [], (0.0, 1.0)
    for count in range(1, 1100):
        seen(made, float(count**2))
        state = made.state()["x"]
        if (state["centre"], state["spread"]) != before:
            changes.append(count)
            before = state["centre"], state["spread"]
    assert changes == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 768, 1024]


@pytest.mark.parametrize("outlier", [1e12, -1e12])
@pytest.mark.parametrize("place", [0, 5, 100, 511])
def test_one_outlier_does_not_spoil_a_scale(outlier: float, place: int) -> None:
    numbers = np.random.default_rng(place).normal(40, 10, 512).tolist()
    numbers[place] = outlier
    made = encoder(x=number(required=True))
    for count, each in enumerate(numbers):
        seen(made, each)
        if count >= 8:
            state = made.state()["x"]
            assert 20 < state["centre"] < 60
            assert 1 < state["spread"] < 40
    assert row(made, x=outlier) == [math.copysign(5, outlier)]
    assert row(made, x=50) == [pytest.approx(1, abs=0.3)]


def test_a_scale_follows_drift() -> None:
    made = seen(encoder(x=number(required=True)), *range(256))
    assert row(made, x=10_000) == [5]
    seen(made, *range(10_000, 10_256))
    assert row(made, x=10_127.5) == [0]


@pytest.mark.parametrize(
    ("constant", "spread"), [(0, 1), (0.2, 1), (-7, 7), (1e12, 1e12), (5e-324, 1)]
)
def test_numbers_that_are_all_the_same_have_a_spread(constant: float, spread: float) -> None:
    made = seen(encoder(x=number(required=True)), *[constant] * 300)
    assert made.state()["x"]["spread"] == spread
    assert row(made, x=constant) == [0]


def test_a_spread_that_is_nothing_beside_the_centre_is_not_used() -> None:
    made = seen(encoder(x=number()), *[1e12, 1e12 + 1] * 128)
    assert made.state()["x"]["spread"] == pytest.approx(1e12)


def test_tiny_spreads_do_not_overflow() -> None:
    made = seen(encoder(x=number(required=True)), *[0, 5e-324, 1e-323, 2e-323] * 64)
    assert [row(made, x=x) for x in (1e12, -1e12)] == [[5], [-5]]


@given(SEQUENCES)
@settings(deadline=None)
def test_rows_depend_on_the_values_and_their_order_alone(sequence: list[Values]) -> None:
    single, batch = encoder(), encoder()
    rows = [single.see_and_encode(values) for values in sequence]
    for values, expected in zip(sequence, rows, strict=True):
        batch.encode(values)  # which changes nothing
        batch.see(values)
        assert batch.encode(values).tobytes() == expected.tobytes()
    assert batch.state() == single.state()
