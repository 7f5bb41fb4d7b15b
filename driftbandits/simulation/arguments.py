"""Turns the numbers in the closures of functions into arguments of a program.

A policy is a few functions. Its settings, and what its factory computes from them, are numbers in
the closures of these functions. XLA would see constants, and compile ucb(scale=0.3) and
ucb(scale=1.0) separately. Taken out of the closures, the numbers are arguments of one program.

Floats and arrays are numbers. Everything else determines the program: integers, booleans, None,
strings, the spec of a problem, and the code of the functions. Functions from outside of this
package keep their constants, because their code may depend on global names that have changed.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from types import CellType, FunctionType
from typing import Any, TypeGuard

import jax
import numpy as np

from driftbandits.core import BanditSpec

PACKAGES = {"driftbandits", "optax"}  # whose functions are opened
Number = float | np.ndarray | jax.Array
PyTree = Any


@dataclass(frozen=True)
class Template:
    """Functions and their numbers. Equal templates differ in nothing but the numbers."""

    outline: Hashable
    functions: PyTree = field(compare=False, repr=False)
    numbers: list[Number] = field(compare=False)

    def with_numbers(self, numbers: Sequence[Any]) -> PyTree:
        """The functions with other numbers, which may be tracers."""
        rest, cells = iter(numbers), dict[int, CellType]()

        def put(leaf: Any) -> Any:
            if isinstance(leaf, Number):
                return next(rest)
            return put_function(leaf) if can_open(leaf) else leaf

        def put_function(old: FunctionType) -> FunctionType:
            defaults, keywords = put_all((old.__defaults__, old.__kwdefaults__))
            closure = tuple(put_cell(cell) for cell in old.__closure__ or ())
            new = FunctionType(old.__code__, old.__globals__, old.__name__, defaults, closure)
            new.__kwdefaults__ = keywords
            return new

        def put_cell(old: CellType) -> CellType:
            if id(old) not in cells:  # one cell of several functions stays one
                cells[id(old)] = new = CellType()
                new.cell_contents = put_all(old.cell_contents)
            return cells[id(old)]

        def put_all(value: PyTree) -> PyTree:
            return jax.tree.map(put, value, is_leaf=is_leaf)

        return put_all(self.functions)


def template_of(functions: PyTree) -> Template:
    """Returns the template of functions in tuples or lists."""
    numbers: list[Number] = []
    cells: dict[int, int] = {}

    def outline(leaf: Any) -> Hashable:
        if isinstance(leaf, Number):
            numbers.append(leaf)
            return np.shape(leaf), getattr(leaf, "dtype", float)
        if can_open(leaf):
            defaults = outline_all((leaf.__defaults__, leaf.__kwdefaults__))
            code = leaf.__code__, leaf.__code__.co_filename
            return *code, defaults, *map(outline_of_cell, leaf.__closure__ or ())
        if isinstance(leaf, BanditSpec):
            return repr(leaf)
        if isinstance(leaf, int | str):
            return type(leaf), leaf
        return Same(leaf) if is_lasting(leaf) else Same(object())

    def outline_of_cell(cell: CellType) -> Hashable:
        if id(cell) in cells:
            return cells[id(cell)]
        cells[id(cell)] = len(cells)
        return outline_all(cell.cell_contents)

    def outline_all(value: PyTree) -> Hashable:
        leaves, structure = jax.tree.flatten(value, is_leaf=is_leaf)
        return structure, *map(outline, leaves)

    return Template(outline_all(functions), functions, numbers)


def can_open(value: object) -> TypeGuard[FunctionType]:
    """Whether the function's own module is in PACKAGES; a wrapper reports the one it wraps."""
    return (
        isinstance(value, FunctionType) and package(value.__globals__.get("__name__")) in PACKAGES
    )


def is_lasting(value: object) -> bool:
    """Whether it is traced the same way every time; of a user's function that is unknown."""
    if not callable(value):
        return True
    return package(getattr(value, "__module__", None)) in {*PACKAGES, "jax", "numpy", "builtins"}


def package(module: object) -> str:
    return str(module).split(".")[0]


def is_leaf(value: object) -> bool:
    return isinstance(value, BanditSpec) or not isinstance(value, tuple | list)


class Same:
    """Equal only to the same object."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)
