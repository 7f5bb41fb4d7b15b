"""The arms of an agent: named, active or retired, each in one slot of the policy's memory."""

from collections.abc import Iterable, Sequence

import numpy as np

from driftbandits import check
from driftbandits.agents import checks


class Arms:
    """Named arms in slots; a retired arm keeps its slot."""

    def __init__(self, names: Sequence[str]) -> None:
        checks.names("arms", names)
        if not names:
            check.fail("arms", "a list of at least one name", names)
        self.names = list(names)  # of all arms, retired ones too, in the order of their slots
        self._slots = {name: slot for slot, name in enumerate(names)}
        self._active = np.ones(len(names), bool)  # spare slots are not active

    @property
    def slots(self) -> int:
        """How many arms fit before the policy's memory must grow."""
        return self._active.size

    @property
    def is_full(self) -> bool:
        """Whether the policy's memory must grow for one more arm."""
        return len(self.names) == self.slots

    @property
    def retired(self) -> list[str]:
        return [name for name, slot in self._slots.items() if not self._active[slot]]

    def check_new(self, name: str) -> None:
        checks.name("arm", name)
        if name in self._slots:
            check.fail("arm", "a new name (restore_arm brings back a retired one)", name)

    def __contains__(self, name: object) -> bool:
        return name in self._slots

    def with_new(self, names: Iterable[str]) -> "Arms":
        """Other arms: these and the new ones."""
        new = list(names)
        for name in new:
            self.check_new(name)
        arms = Arms([*self.names, *new])
        arms._active[: len(self.names)] = self._active[: len(self.names)]
        return arms

    def add(self, name: str) -> None:
        """Adds an arm to the first spare slot, which must exist."""
        slot = len(self.names)
        self._active[slot] = True
        self._slots[name] = slot
        self.names.append(name)

    def keep_first(self, count: int) -> None:
        """Forgets the arms that were added last; their slots are spare again."""
        for name in self.names[count:]:
            self._active[self._slots.pop(name)] = False
        del self.names[count:]

    def retire(self, name: str) -> None:
        slot = self.slot(name)
        if self._active[slot] and self._active.sum() == 1:
            raise check.InputError(f"the last active arm cannot be retired, got {name!r}")
        self._active[slot] = False

    def restore(self, name: str) -> None:
        self._active[self.slot(name)] = True

    def widen(self, slots: int) -> None:
        self._active = np.append(self._active, np.zeros(slots - self.slots, bool))

    def mask(self, available: Sequence[str] | None) -> np.ndarray:
        """Which slots may be chosen, (slots,) bool; one array for all without `available`."""
        if available is None:
            return self._active
        if isinstance(available, str) or not isinstance(available, Iterable):
            check.fail("available", "a list of names", available)
        mask = np.zeros_like(self._active)
        try:
            places = [self._slots[name] for name in available]
        except (KeyError, TypeError):
            places = [self.slot(name) for name in available]  # says what is wrong
        mask[places] = True
        mask &= self._active
        if not mask.any():
            check.fail(
                "available", "a list with at least one arm that is not retired", list(available)
            )
        return mask

    def slot(self, name: str) -> int:
        return self._slots[checks.arm(name, self._slots)]
