"""Which number belongs to which id: a dict in parts, so that none takes long to grow.

A dict that is full moves all of its entries at once, which takes half a second for ten million.
"""

from collections.abc import Iterable, Sequence

SPLIT_AT = 16_384  # ids
PARTS = 256  # from then on


class IdIndex:
    def __init__(self) -> None:
        self._parts: list[dict[str, int]] = [{}]
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def part_of(self, id: str) -> dict[str, int]:
        """Finds the dict that has this id, if any."""
        parts = self._parts
        if len(parts) == 1:
            return parts[0]
        return parts[(hash(id) >> 32) % PARTS]  # a dict itself goes by the lower bits

    def add(self, ids: Sequence[str], numbers: Iterable[int]) -> None:
        for id, number in zip(ids, numbers, strict=True):
            self.part_of(id)[id] = number
        self._count += len(ids)
        if len(self._parts) == 1 and self._count > SPLIT_AT:
            self._split()

    def numbers(self, ids: Sequence[str]) -> list[int]:
        if len(self._parts) == 1:
            all_of_them = self._parts[0]
            return [all_of_them[id] for id in ids]
        return [self.part_of(id)[id] for id in ids]

    def pop(self, ids: Sequence[str]) -> list[int]:
        """Removes ids and returns their numbers."""
        numbers = [self.part_of(id).pop(id) for id in ids]
        self._count -= len(numbers)
        return numbers

    def _split(self) -> None:
        (all_of_them,), self._parts = self._parts, [{} for _ in range(PARTS)]
        for id, number in all_of_them.items():
            self.part_of(id)[id] = number
