"""Tables of policies and environments, whose modules are imported on first use."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from importlib import import_module
from typing import Generic, TypeVar

T = TypeVar("T")


class Factories(MutableMapping[str, Callable[..., T]], Generic[T]):
    """A table from names to functions, each in a module of its own.

    Names can be listed without importing anything.

    Args:
        package: The package that has the modules.
        modules: The modules, named like their functions. "tracker.policy" is a module of the
            package `tracker` and has the function `tracker`.
    """

    def __init__(self, package: str, modules: Iterable[str]) -> None:
        self._package = package
        self._homes: dict[str, str | None] = {name_of(module): module for module in modules}
        self._found: dict[str, Callable[..., T]] = {}
        self._versions: Counter[str] = Counter()

    def version(self, name: str) -> int:
        """Changes when a name gets another function, for caches of what the function has built."""
        return self._versions[name]

    def __getitem__(self, name: str) -> Callable[..., T]:
        if name not in self._found:
            module = import_module(f"{self._package}.{self._homes[name]}")
            self._found[name] = getattr(module, name)
        return self._found[name]

    def __setitem__(self, name: str, factory: Callable[..., T]) -> None:
        self._homes.setdefault(name, None)
        self._found[name] = factory
        self._versions[name] += 1

    def __delitem__(self, name: str) -> None:
        del self._homes[name]
        self._found.pop(name, None)
        self._versions[name] += 1

    def __contains__(self, name: object) -> bool:
        return name in self._homes

    def __iter__(self) -> Iterator[str]:
        return iter(self._homes)

    def __len__(self) -> int:
        return len(self._homes)


def name_of(module: str) -> str:
    return module.split(".")[0]
