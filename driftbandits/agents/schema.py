"""A typed schema: the names and fields of a context, or of the features of arms."""

import json
from collections.abc import Callable, Mapping
from json.encoder import encode_basestring_ascii as quoted

from driftbandits import check
from driftbandits.agents import checks
from driftbandits.agents.fields import Field, columns_of, field_of, plain_text

Value = float | str | bool | None
Values = tuple[Value, ...]  # in the order of the names; None is missing
WIDEST = 1000

WRITERS: dict[type, Callable[..., str]] = {
    float: float.__repr__,
    str: quoted,
    bool: lambda value: "true" if value else "false",
}


class Schema:
    """Checks contexts, and writes and reads them. It has no state.

    Attributes:
        kind: "context" or "features", for error messages.
        names: The names in order.
        fields: The field of each name.
        columns: The labels of the columns of an encoded row.
        width: How many columns there are.
        texts: The text of each field by name.
    """

    def __init__(self, kind: str, fields: Mapping[str, Field]) -> None:
        self.kind = kind
        self.names, self.fields = tuple(fields), tuple(fields.values())
        self.columns = [label for pair in fields.items() for label in columns_of(*pair)]
        self.width = len(self.columns)
        self.texts = {name: str(field) for name, field in fields.items()}
        self._known = frozenset(self.names)
        self._prefixes = [f"{quoted(name)}:" for name in self.names]
        self._parts = [(n, f"{n} in {kind}", f.check, f.required) for n, f in fields.items()]

    def check(self, given: Mapping[str, object] | None) -> Values:
        """The values of a context in order, or an `InputError`."""
        if given is None:
            given = {}
        elif type(given) is not dict and not isinstance(given, Mapping):
            check.fail(self.kind, "a mapping of names to values", given)
        if not self._known.issuperset(given):
            unknown = next(name for name in given if name not in self._known)
            check.known(f"a name in {self.kind}", unknown, self.names)
        get = given.get
        found: list[Value] = []
        for name, label, checked, required in self._parts:
            value = get(name)
            if value is not None:
                found.append(checked(label, value))
            elif required:
                check.fail(label, "given (it is required)", value)
            else:
                found.append(None)
        return tuple(found)

    def as_json(self, values: Values) -> bytes:
        """A JSON object of what is not missing; `from_json` reads exactly the same values."""
        pairs = [
            prefix + WRITERS[type(value)](value)
            for prefix, value in zip(self._prefixes, values, strict=True)
            if value is not None
        ]
        return f"{{{','.join(pairs)}}}".encode("ascii")

    def from_json(self, written: bytes) -> Values:
        try:
            given = json.loads(written)
        except (ValueError, RecursionError):
            check.fail(self.kind, "a JSON object", written)
        if not isinstance(given, dict):
            check.fail(self.kind, "a JSON object", written)
        return self.check(given)


def schema_of(kind: str, given: Mapping[str, Field | str]) -> Schema:
    """Makes a schema from fields, or their texts, by name."""
    if not isinstance(given, Mapping):
        check.fail(kind, "a mapping of names to fields, as in {'hour': cyclic(24)}", given)
    fields = {
        plain_text(checks.name(f"a name in {kind}", name)): field_of(f"{name} in {kind}", field)
        for name, field in given.items()
    }
    schema = Schema(kind, fields)
    if schema.width > WIDEST:
        check.fail(f"the width of {kind}", f"at most {WIDEST} columns", schema.width)
    return schema
