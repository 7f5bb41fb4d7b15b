"""Functions whose compiled programs are cached between processes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax

from driftbandits.simulation import compiling
from driftbandits.simulation.kept_programs import find, keep
from driftbandits.simulation.program_names import Name


def kept_function(
    function: Callable[..., Any], name: Name | None, folder: Path | None, device: jax.Device
) -> Callable[..., Any]:
    """The compiled function; without a name or a folder it is not cached."""
    if name is None or folder is None:
        return compiling.jit(function)
    return KeptFunction(function, name, folder, device)


class KeptFunction:
    """Compiles a function at the first call with arguments of new types, unless it is cached.

    Arguments of the same types must also have the same shapes; this is not checked again. Only
    programs whose arguments and results are arrays in plain tuples are cached.
    """

    def __init__(
        self, function: Callable[..., Any], name: Name, folder: Path, device: jax.Device
    ) -> None:
        self._jitted = compiling.jit(function)
        self._name, self._folder, self._device = name, folder, device
        self._ready: dict[tuple[type, ...], Callable[..., Any]] = {}

    def __call__(self, *arguments: Any) -> Any:
        types = tuple(map(type, arguments))
        ready = self._ready.get(types)
        if ready is None:
            ready = self._ready[types] = self._found(arguments) or self._compiled(arguments)
        return ready(*arguments)

    def _found(self, arguments: tuple[Any, ...]) -> Callable[..., Any] | None:
        kept = find(self._folder, self._name_for(arguments))
        programs = kept and kept.on(self._device)
        return programs[0] if programs else None

    def _compiled(self, arguments: tuple[Any, ...]) -> Callable[..., Any]:
        with jax.default_device(self._device):
            made = compiling.compile_all([self._jitted.lower(*arguments)])
        keep(self._folder, self._name_for(arguments), {}, made)
        return made.programs[0]

    def _name_for(self, arguments: tuple[Any, ...]) -> Name:
        return *self._name, str(jax.tree.structure(arguments))
