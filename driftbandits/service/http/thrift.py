"""Thrift's compact encoding, in which Parquet describes its files: as much as a footer needs.

A struct is a dict from a field's number to its type and value; a list is the type of its elements
and their values. A struct may also be given as its bytes.
"""

from typing import Any, NamedTuple

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
Struct = dict[int, tuple[int, Any]]


class Elements(NamedTuple):
    """A list."""

    type: int
    values: list[Any]


class Reader:
    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def struct(self) -> Struct:
        found: Struct = {}
        number = 0
        while header := self._byte():
            delta, kind = header >> 4, header & 15
            number = number + delta if delta else unzigzag(self._varint())
            found[number] = kind, kind == TRUE if kind <= FALSE else self._value(kind)
        return found

    def _value(self, kind: int) -> Any:
        if kind in (I16, I32, I64):
            return unzigzag(self._varint())
        if kind == BINARY:
            return self._take(self._varint())
        if kind == STRUCT:
            return self.struct()
        if kind in (LIST, SET):
            return self._elements()
        if kind in (TRUE, FALSE, BYTE):  # in a list each takes a byte
            return self._byte()
        if kind == DOUBLE:
            return self._take(8)
        raise ValueError(f"a footer of Parquet has no values of type {kind}")

    def _elements(self) -> Elements:
        header = self._byte()
        size = header >> 4
        if size == 15:
            size = self._varint()
        return Elements(header & 15, [self._value(header & 15) for _ in range(size)])

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _take(self, size: int) -> bytes:
        self._at += size
        return self._data[self._at - size : self._at]

    def _varint(self) -> int:
        number = shift = 0
        while (byte := self._byte()) & 128:
            number |= (byte & 127) << shift
            shift += 7
        return number | byte << shift


def encode(struct: Struct) -> bytes:
    parts, last = bytearray(), 0
    for number, (kind, value) in sorted(struct.items()):
        delta = number - last
        parts += (
            bytes([delta << 4 | kind]) if delta < 16 else bytes([kind]) + varint(zigzag(number))
        )
        if kind > FALSE:
            parts += encode_value(kind, value)
        last = number
    return bytes(parts) + b"\0"


def encode_value(kind: int, value: Any) -> bytes:
    if kind in (I16, I32, I64):
        return varint(zigzag(value))
    if kind == BINARY:
        return varint(len(value)) + value
    if kind == STRUCT:
        return value if isinstance(value, bytes) else encode(value)
    if kind in (LIST, SET):
        size, (element, values) = len(value.values), value
        head = bytes([min(size, 15) << 4 | element]) + (varint(size) if size > 14 else b"")
        return head + b"".join(encode_value(element, each) for each in values)
    return value if kind == DOUBLE else bytes([value])


def varint(number: int) -> bytes:
    parts = bytearray()
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes([*parts, number])


def zigzag(number: int) -> int:
    return number << 1 if number >= 0 else ~(number << 1)


def unzigzag(number: int) -> int:
    return number >> 1 ^ -(number & 1)
