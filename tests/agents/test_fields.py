"""The kinds of field: their settings, their texts and their columns."""

import re
from collections.abc import Callable
from enum import Enum
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftbandits import InputError, choice
from driftbandits.agents.checks import LARGEST_NUMBER, is_name
from driftbandits.agents.fields import (
    FACTORIES,
    Field,
    category,
    columns_of,
    cyclic,
    field_of,
    flag,
    number,
)

NAMES = st.text(min_size=1, max_size=8).filter(is_name)
FINITE = st.floats(-LARGEST_NUMBER, LARGEST_NUMBER)
ENDS = st.lists(FINITE, min_size=2, max_size=2, unique=True).map(sorted)
PERIODS = st.floats(1e-6, 1e30) | st.integers(1, 10**30)
FIELDS = st.one_of(
    st.builds(number, required=st.booleans()),
    st.builds(lambda e, r: number(low=e[0], high=e[1], required=r), ENDS, st.booleans()),
    st.builds(category, buckets=st.integers(2, 999), required=st.booleans()),
    st.builds(category, values=st.lists(NAMES, min_size=1, max_size=5, unique=True)),
    st.builds(cyclic, PERIODS, required=st.booleans()),
    st.builds(flag, required=st.booleans()),
)


class Country(str, Enum):  # noqa: UP042  # its str() is not its value
    AUSTRIA = "AT"


@given(FIELDS)
def test_a_field_is_read_back_from_its_text(field: Field) -> None:
    assert field_of("age", str(field)) == field
    assert str(field_of("age", str(field))) == str(field)
    assert choice.parse("age", str(field)).name in FACTORIES
    assert field_of("age", field) is field


@pytest.mark.parametrize(
    ("field", "text"),
    [
        (number(), "number"),
        (number(low=0, high=120), "number(low=0.0, high=120.0)"),
        (number(low=-0.0, high=np.float64(3)), "number(low=0.0, high=3.0)"),
        (category(), "category(buckets=32)"),
        (category(buckets=8, required=True), "category(buckets=8, required=true)"),
        (category(values=("AT", "it's")), """category(values=['AT', "it's"])"""),
        (category(values=[np.str_("DE"), Country.AUSTRIA]), "category(values=['DE', 'AT'])"),
        (cyclic(24), "cyclic(period=24)"),
        (cyclic(24.0), "cyclic(period=24)"),
        (cyclic(0.5, required=True), "cyclic(period=0.5, required=true)"),
        (flag(), "flag"),
        (flag(required=True), "flag(required=true)"),
    ],
)
def test_texts_leave_out_what_is_not_needed(field: Field, text: str) -> None:
    assert str(field) == text
    assert field_of("age", text) == field


@pytest.mark.parametrize(
    ("field", "columns"),
    [
        (number(), ["x", "x missing"]),
        (number(required=True), ["x"]),
        (category(buckets=3), ["x=1", "x=2", "x (others)", "x missing"]),
        (category(values=["AT"], required=True), ["x=AT", "x (others)"]),
        (cyclic(7), ["x (sin)", "x (cos)", "x missing"]),
        (flag(), ["x", "x missing"]),
    ],
)
def test_the_column_for_missing_values_is_the_last(field: Field, columns: list[str]) -> None:
    assert columns_of("x", field) == columns


def test_numpy_numbers_are_made_plain() -> None:
    settings: dict[str, Any] = {"low": np.float32(0.5), "high": np.int64(3)}
    assert str(number(**settings)) == "number(low=0.5, high=3.0)"
    buckets: Any = np.int64(8)
    assert str(category(buckets=buckets)) == "category(buckets=8)"


def test_fields_are_values() -> None:
    assert len({number(), number(), flag(), cyclic(7), cyclic(7.0)}) == 3
    with pytest.raises(AttributeError):
        number().required = True  # type: ignore[misc]


NAME_RULE = "a text of 1 to 200 characters without control characters"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: number(low=0),
            "low and high must be given together or left out together, got (0, None)",
        ),
        (
            lambda: number(high=1),
            "low and high must be given together or left out together, got (None, 1)",
        ),
        (
            lambda: number(low=1, high=1),
            "low and high must be two numbers, the lower first, got (1, 1)",
        ),
        (
            lambda: number(low=float("nan"), high=1),
            "low must be a finite number, of at most 1e12, got nan",
        ),
        (
            lambda: number(low=0, high=2e12),
            "high must be a finite number, of at most 1e12, got 2000000000000.0",
        ),
        (lambda: number(required=1), "required must be true or false, got 1"),  # type: ignore[arg-type]
        (lambda: category(buckets=1), "buckets must be a whole number of at least 2, got 1"),
        (
            lambda: category(buckets=1000),
            "buckets must be a whole number of at most 999, got 1000",
        ),
        (
            lambda: category(buckets=8, values=["a"]),
            "buckets must be left out where values are given, got 8",
        ),
        (lambda: category(values=[]), "values must be a list of 1 to 998 names, got []"),
        (lambda: category(values=[str(i) for i in range(1000)]), "values must be a list of 1 to"),
        (lambda: category(values="AT"), "values must be a list of names, got 'AT'"),
        (lambda: category(values=["a", "a"]), "values must be a list of different names, got"),
        (lambda: category(values=["a\n"]), f"values must be {NAME_RULE}, got 'a\\n'"),
        (lambda: category(required=None), "required must be true or false, got None"),  # type: ignore[arg-type]
        (lambda: cyclic(0), "period must be a positive number, got 0"),
        (lambda: cyclic(float("inf")), "period must be a positive number, got inf"),
        (lambda: cyclic(True), "period must be a positive number, got True"),
        (lambda: cyclic(7, required="yes"), "required must be true or false, got 'yes'"),  # type: ignore[arg-type]
        (lambda: flag(required=0), "required must be true or false, got 0"),  # type: ignore[arg-type]
    ],
)
def test_settings_that_make_no_sense_are_refused(make: Callable[[], Field], message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        make()


DEEP = [
    "cyclic(" * 20_000, "cyclic(" * 90 + "24" + ")" * 90, "cyclic(" + "-" * 50_000 + "1)",
    "category(values=" + "[" * 150 + "]" * 150 + ")", "number(low=" + "1+" * 40_000 + "1, high=2)",
    "flag" + ".a" * 40_000, "category(buckets=0x" + "f" * 5000 + ")",
]  # fmt: skip


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        (
            "numbr",
            "age must be one of number, category, cyclic, flag, got 'numbr'; "
            "did you mean 'number'?",
        ),
        (
            "number(lo=0)",
            "a setting of number must be one of low, high, required, got 'lo'; did you mean 'low'?",
        ),
        (
            "cyclic(perod=24)",
            "a setting of cyclic must be one of period, required, got 'perod'; "
            "did you mean 'period'?",
        ),
        ("cyclic", "age must be given a period, as in 'cyclic(period=24)', got 'cyclic'"),
        ("category(8)", "age must be written as name or name(setting=value, ...), got 'category("),
        ("cyclic(24, 7)", "age must be written as name or name(setting=value, ...), got 'cyclic("),
        ("cyclic(24, period=7)", "age must be written as name or name(setting=value, ...), got"),
        ("cyclic(*[24])", "age must be written as name or name(setting=value, ...), got 'cyclic("),
        ("cyclic(0)", "period must be a positive number, got 0"),
        ("flag(", "age must be written as name or name(setting=value, ...), got 'flag('"),
        ("category(buckets=1)", "age: buckets must be a whole number of at least 2, got 1"),
        (
            "number(category(3))",
            "age must be written without another name(...) inside of it, got 'number(category(3))'",
        ),
        ("cyclic(cyclic(24))", "age: the setting period must be a number, true, false, none, a"),
        ("number(low=number, high=1)", "age: the setting low must be a number, true, false, none"),
        ("number(low='number', high='flag')", "age: low must be a finite number, of at most 1e12"),
        ("category(values=[flag()])", "age: the setting values must be a number, true, false"),
        ("category(values='flag')", "age: values must be a list of names, got 'flag'"),
        ("cyclic(period='cyclic(24)')", "age: period must be a positive number, got 'cyclic(24)'"),
        ("flag(required='flag')", "age: required must be true or false, got 'flag'"),
        (float, "age must be a field, as in number() or 'cyclic(period=24)', got <class 'float'>"),
        (number, "age must be a field, as in number() or 'cyclic(period=24)', got <function"),
    ],
)
def test_a_text_that_names_no_field_is_refused(given_: Any, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        field_of("age", given_)


@pytest.mark.parametrize("text", DEEP, ids=lambda text: text[:12])
def test_a_text_that_no_parser_can_follow_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"^age(: .*)? must be ") as refusal:
        field_of("age", text)
    assert len(str(refusal.value)) < 500


@pytest.mark.parametrize(
    "text", ["cyclic(24)", "cyclic(24.0, required=false)", "cyclic(period=24)"]
)
def test_a_period_needs_no_name_in_a_text_as_in_python(text: str) -> None:
    assert field_of("hour", text) == cyclic(24)
