"""Schemas: what a context may be, and its JSON."""

import json
import re
from collections import OrderedDict
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftbandits import InputError
from driftbandits.agents.fields import category, cyclic, flag, number
from driftbandits.agents.schema import Schema, Values, schema_of
from tests.agents.test_fields import FINITE, NAME_RULE, NAMES, Country

FIELDS = {
    "age": number(),
    "price": number(low=0, high=100),
    "country": category(buckets=3),
    "size": category(values=["S", "M"]),
    "hour": cyclic(24),
    "new": flag(),
}
VALUES = st.tuples(
    st.none() | FINITE.map(lambda x: x + 0.0),
    st.none() | st.floats(0, 100).map(lambda x: x + 0.0),
    st.none() | NAMES,
    st.none() | st.sampled_from(["S", "M", "XXL"]),
    st.none() | FINITE.map(lambda x: x + 0.0),
    st.none() | st.booleans(),
)
NUMBER_RULE = "a finite number, of at most 1e12"


def schema() -> Schema:
    return schema_of("context", FIELDS)


def strict() -> Schema:
    return schema_of("features", {"price": "number(required=true)", "on sale": "flag"})


def test_a_schema_names_its_columns() -> None:
    found = schema()
    assert found.names == ("age", "price", "country", "size", "hour", "new")
    assert found.fields == tuple(FIELDS.values())
    assert found.columns == [
        "age", "age missing", "price", "price missing", "country=1", "country=2",
        "country (others)", "country missing", "size=S", "size=M", "size (others)", "size missing",
        "hour (sin)", "hour (cos)", "hour missing", "new", "new missing",
    ]  # fmt: skip
    assert found.width == len(found.columns)


def test_a_schema_is_made_again_from_its_texts() -> None:
    again = schema_of("context", json.loads(json.dumps(schema().texts)))
    assert (again.names, again.fields) == (schema().names, schema().fields)
    assert (strict().texts["price"], strict().columns[0]) == ("number(required=true)", "price")


def test_values_come_in_the_order_of_the_names() -> None:
    context = {"new": True, "hour": 14, "size": "M", "country": "AT", "price": 9.5, "age": 31}
    expected = (31.0, 9.5, "AT", "M", 14.0, True)
    for mapping in (context, OrderedDict(context), MappingProxyType(context)):
        assert schema().check(mapping) == expected
    assert [type(value) for value in schema().check(context)] == [float, float, str, str, float,
                                                                  bool]  # fmt: skip


@pytest.mark.parametrize("context", [None, {}, dict.fromkeys(FIELDS)])
def test_what_is_absent_or_none_is_missing(context: dict[str, None] | None) -> None:
    assert schema().check(context) == (None,) * 6
    assert schema().as_json((None,) * 6) == b"{}"


@pytest.mark.parametrize(
    ("name", "value", "canonical"),
    [
        ("age", np.float32(0.1), float(np.float32(0.1))),
        ("age", np.int64(-7), -7.0),
        ("age", Fraction(1, 4), 0.25),
        ("age", -0.0, 0.0),
        ("age", np.float64(-0.0), 0.0),
        ("age", -(10**12), -1e12),
        ("hour", np.uint8(5), 5.0),
        ("country", np.str_("AT"), "AT"),
        ("country", Country.AUSTRIA, "AT"),
        ("new", False, False),
        ("new", np.True_, True),
    ],
)
def test_values_are_made_plain(name: str, value: object, canonical: object) -> None:
    values = schema().check({name: value})
    found = values[schema().names.index(name)]
    assert (type(found), repr(found)) == (type(canonical), repr(canonical))
    assert schema().from_json(schema().as_json(values)) == values


@given(VALUES)
def test_values_are_read_back_from_their_json(values: Values) -> None:
    found = schema()
    written = found.as_json(values)
    assert written.isascii()
    assert list(map(repr, found.from_json(written))) == list(map(repr, values))
    present = {n: v for n, v in zip(found.names, values, strict=True) if v is not None}
    assert written == json.dumps(present, separators=(",", ":")).encode()
    assert found.check(present) == values


def test_a_float32_that_was_rounded_to_an_end_is_within() -> None:
    narrow = schema_of("context", {"x": number(low=-0.7, high=0.3)})
    assert float(np.float32(0.3)) > 0.3
    assert narrow.check({"x": np.float32(0.3)}) == (float(np.float32(0.3)),)
    with pytest.raises(InputError, match=re.escape("from -0.7 to 0.3, got 0.3001")):
        narrow.check({"x": 0.3001})


@pytest.mark.parametrize(
    ("context", "message"),
    [
        ([31], "context must be a mapping of names to values, got [31]"),
        ("age", "context must be a mapping of names to values, got 'age'"),
        (
            {"agee": 31},
            "a name in context must be one of age, price, country, size, hour, new, got 'agee'; "
            "did you mean 'age'?",
        ),
        ({5: 31}, "a name in context must be one of age, price, country, size, hour, new, got 5"),
        ({"age": float("nan")}, f"age in context must be {NUMBER_RULE}, got nan"),
        ({"age": -np.inf}, f"age in context must be {NUMBER_RULE}, got -inf"),
        ({"age": 1.1e12}, f"age in context must be {NUMBER_RULE}, got 1100000000000.0"),
        ({"age": 10**400}, f"age in context must be {NUMBER_RULE}, got 1000"),
        ({"age": True}, f"age in context must be {NUMBER_RULE}, got True"),
        ({"age": np.True_}, f"age in context must be {NUMBER_RULE}, got np.True_"),
        ({"age": "31"}, f"age in context must be {NUMBER_RULE}, got '31'"),
        ({"age": [31]}, f"age in context must be {NUMBER_RULE}, got [31]"),
        ({"price": 100.1}, "price in context must be from 0 to 100, got 100.1"),
        ({"price": -1}, "price in context must be from 0 to 100, got -1"),
        ({"hour": "noon"}, f"hour in context must be {NUMBER_RULE}, got 'noon'"),
        ({"hour": float("nan")}, f"hour in context must be {NUMBER_RULE}, got nan"),
        ({"country": 43}, f"country in context must be {NAME_RULE}, got 43"),
        ({"country": ""}, f"country in context must be {NAME_RULE}, got ''"),
        ({"size": "é" * 201}, f"size in context must be {NAME_RULE}, got 'é"),
        ({"size": "\ud800"}, f"size in context must be {NAME_RULE}, got '\\ud800'"),
        ({"new": 1}, "new in context must be true or false, got 1"),
        ({"new": np.int8(1)}, "new in context must be true or false, got np.int8(1)"),
        ({"new": "true"}, "new in context must be true or false, got 'true'"),
    ],
)
def test_what_is_no_context_is_refused(context: Any, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        schema().check(context)


@pytest.mark.parametrize("features", [None, {}, {"price": None}, {"on sale": True}])
def test_what_is_required_must_be_given(features: Any) -> None:
    message = r"price in features must be given \(it is required\), got None"
    with pytest.raises(InputError, match=message):
        strict().check(features)
    assert strict().check({"price": 3}) == (3.0, None)


def test_a_misspelt_name_is_named_before_the_one_that_is_missing() -> None:
    with pytest.raises(InputError, match="got 'prise'; did you mean 'price'"):
        strict().check({"prise": 3})


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (b"{", "context must be a JSON object, got b'{'"),
        (b"[]", "context must be a JSON object, got b'[]'"),
        (b"null", "context must be a JSON object, got b'null'"),
        (b"\xff", "context must be a JSON object, got b'\\xff'"),
        (b"[" * 100_000, "context must be a JSON object, got b'[["),
        (b'{"age":NaN}', f"age in context must be {NUMBER_RULE}, got nan"),
        (b'{"ages":1}', "did you mean 'age'?"),
    ],
    ids=lambda value: repr(value)[:12],
)
def test_what_no_schema_wrote_is_refused(written: bytes, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        schema().from_json(written)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (["age"], "context must be a mapping of names to fields, as in {'hour': cyclic(24)}, got"),
        ({"": number()}, f"a name in context must be {NAME_RULE}, got ''"),
        ({5: number()}, f"a name in context must be {NAME_RULE}, got 5"),
        ({"age": 5}, "age in context must be a field, as in number() or 'cyclic(period=24)', got"),
        ({"age": "flg"}, "age in context must be one of number, category, cyclic, flag, got 'flg'"),
        (
            {"a": category(buckets=999), "b": flag(required=True)},
            "the width of context must be at most 1000 columns, got 1001",
        ),
    ],
)
def test_what_is_no_schema_is_refused(fields: Any, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        schema_of("context", fields)


def test_a_schema_may_be_empty_or_1000_wide() -> None:
    assert schema_of("context", {}).check({}) == ()
    assert schema_of("context", {"a": category(buckets=999)}).width == 1000
