"""The notation of policies and environments everywhere: `tracker`, `recurrent(energy=0)`.

A choice is a name from a table, with settings for the function behind it. Values are written as in
Python or TOML: `0.1`, `3`, `true`, `none`, `"text"`, `[1, 2]`.
"""

import ast
import inspect
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn, get_args

from driftbandits import check

NOTHING: Mapping[str, str] = MappingProxyType({})
WORDS = {"true": True, "false": False, "none": None, "null": None}


class Choice(NamedTuple):
    name: str
    settings: dict[str, Any]

    def __str__(self) -> str:
        inside = ", ".join(f"{name}={write(value)}" for name, value in self.settings.items())
        return f"{self.name}({inside})" if inside else self.name


def write(value: object) -> str:
    """A setting's value as it is written in a choice."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return repr(value)


def parse(kind: str, text: str, unnamed: Mapping[str, str] = NOTHING) -> Choice:
    """Reads `name` or `name(setting=value, ...)`; `kind` names the thing in error messages.

    `unnamed` has the setting, by the choice's name, that may be given as in `name(value)`.
    """
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):  # the last two if it is deep
        refuse(kind, text)
    if isinstance(node, ast.Name):
        return Choice(node.id, {})
    if isinstance(node, ast.Tuple):
        check.fail(kind, "one at a time (in a command: -p tracker -p ucb)", text)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        refuse(kind, text)
    first = unnamed.get(node.func.id)
    given = [(first, value) for value in node.args]
    settings = {}
    for name, value in given + [(keyword.arg, keyword.value) for keyword in node.keywords]:
        if name is None and isinstance(value, ast.Call):
            check.fail(kind, "written without another name(...) inside of it", text)
        if name is None or name in settings or isinstance(value, ast.Starred):
            refuse(kind, text)
        settings[name] = _value(name, value, text)
    return Choice(node.func.id, settings)


def refuse(kind: str, text: str) -> NoReturn:
    check.fail(kind, "written as name or name(setting=value, ...)", text)


def _value(name: str, node: ast.expr, text: str) -> Any:
    if isinstance(node, ast.Name) and node.id in WORDS:
        return WORDS[node.id]
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        rule = "a number, true, false, none, a 'text' or a [list]"
        check.fail(f"the setting {name}", rule, ast.get_source_segment(text.strip(), node))


def settings_of(factory: Callable[..., Any]) -> dict[str, Any]:
    """The settings of a factory (its keyword-only arguments) with their defaults."""
    parameters = inspect.signature(factory).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}


def with_defaults(choice: Choice, table: Mapping[str, Callable[..., Any]]) -> Choice:
    """The choice with every setting of its factory written out, in a fixed order.

    Other settings, the transformations, follow as written, because their order matters.
    """
    defaults = settings_of(table[choice.name])
    own = {name: choice.settings.get(name, defaults[name]) for name in sorted(defaults)}
    return Choice(choice.name, own | {n: v for n, v in choice.settings.items() if n not in own})


def whole_floats(factory: Callable[..., Any], settings: Mapping[str, Any]) -> dict[str, float]:
    """Integers given for float settings, as floats: floats do not change the compiled program."""
    parameters = inspect.signature(factory).parameters
    return {
        name: float(value)
        for name, value in settings.items()
        if type(value) is int and takes_float(parameters[name])
    }


def takes_float(parameter: inspect.Parameter) -> bool:
    kinds = get_args(parameter.annotation) or (parameter.annotation,)
    return float in kinds and int not in kinds


def construct(
    kind: str,
    table: Mapping[str, Callable[..., Any]],
    choice: Choice,
    *args: Any,
    also: Iterable[str] = (),
) -> Any:
    """Calls the factory that the choice names, with its settings.

    `also` has the names of settings that the caller has handled already, for error messages.
    """
    check.known(kind, choice.name, table)
    factory = table[choice.name]
    for name in choice.settings:
        check.known(f"a setting of {choice.name}", name, [*settings_of(factory), *also])
    built = factory(*args, **choice.settings)  # an error quotes the settings as they were written
    floats = whole_floats(factory, choice.settings)
    return factory(*args, **choice.settings | floats) if floats else built
