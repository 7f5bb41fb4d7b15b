"""Lists policies, environments and experiments without importing JAX, so that `list` is quick.

The tables POLICIES, ENVIRONMENTS and TRANSFORMATIONS name modules. Each has a function, whose
settings and summary are read from its source.
"""

import ast
import re
import tomllib
from collections.abc import Iterable
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from driftbandits.choice import write
from driftbandits.factories import name_of

PACKAGE = resources.files("driftbandits")
IGNORES = "It ignores the context."  # ends the text of a policy that does


def catalogue(kinds: Iterable[str]) -> dict[str, dict[str, Any]]:
    """For each kind, the names with their summaries and their settings with defaults."""
    listings = {"policies": policies, "environments": environments, "experiments": experiments}
    return {kind: listings[kind]() for kind in kinds}


def policies() -> dict[str, Any]:
    return functions_of("policies", "POLICIES")


def environments() -> dict[str, Any]:
    """Every environment also takes the transformations, which are off by default."""
    off: dict[str, Any] = dict.fromkeys(functions_of("environments", "TRANSFORMATIONS"))
    return {
        name: {**entry, "settings": {**entry["settings"], **off}}
        for name, entry in functions_of("environments", "ENVIRONMENTS").items()
    }


def experiments() -> dict[str, Any]:
    """The experiment files that come with the package."""
    listing: dict[str, Any] = {}
    root = Path(str(PACKAGE / "experiments" / "shipped"))
    for file in sorted(root.rglob("*.toml")):
        content = tomllib.loads(file.read_text(encoding="utf-8"))
        size: dict[str, Any] = {
            name: content[name] for name in ("horizon", "runs") if name in content
        }
        settings = {"policies": len(content["policies"]), **size} if size else {}
        name = file.relative_to(root).with_suffix("").as_posix()
        listing[name] = {"summary": content["title"], "settings": settings}
    return listing


def functions_of(package: str, table: str) -> dict[str, Any]:
    """The functions in a table of a package."""
    homes = homes_of(package, table)
    return {name: described(file, function) for name, (file, function) in homes.items()}


def homes_of(package: str, table: str) -> dict[str, tuple[Traversable, str]]:
    """For each name in a table: the file of its function, and the function's own name."""
    call = next(
        node.value
        for node in parsed(PACKAGE / package / "__init__.py").body
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == table
    )
    assert isinstance(call, ast.Call)
    modules: list[str] = ast.literal_eval(call.args[-1])
    return {
        name_of(module): (PACKAGE / package / f"{module.replace('.', '/')}.py", name_of(module))
        for module in modules
    }


def arguments_of(file: Traversable, function: str) -> dict[str, str]:
    """The meaning of each argument, from the docstring of a function."""
    text = ast.get_docstring(definition(file, function)) or ""
    meanings: dict[str, str] = {}
    name = ""
    for line in text.partition("Args:\n")[2].splitlines():
        start = re.match(r"    (\w+): (.*)", line)
        if start:
            name = start[1]
            meanings[name] = start[2]
        elif name and line.startswith("        "):
            meanings[name] += " " + line.strip()
        else:
            break
    return meanings


def described(file: Traversable, name: str) -> dict[str, Any]:
    """The first line of a function's docstring, and its keyword-only arguments with defaults."""
    function = definition(file, name)
    arguments = zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
    return {
        "summary": (ast.get_docstring(function) or "").split("\n")[0],
        "settings": {
            argument.arg: ast.literal_eval(default) for argument, default in arguments if default
        },
    }


def definition(file: Traversable, name: str) -> ast.FunctionDef:
    return next(
        node
        for node in parsed(file).body
        if isinstance(node, ast.FunctionDef) and node.name == name
    )


def uses_features(file: Traversable) -> bool:
    """Whether a policy's module, or one that it imports, reads the features of the arms."""
    found, waiting = {str(file): file}, [file]
    while waiting:
        module = parsed(waiting.pop())
        if any(is_features(node) for node in ast.walk(module)):
            return True
        new = {path: file for path, file in imported(module).items() if path not in found}
        found |= new
        waiting += new.values()
    return False


def is_features(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and ast.unparse(node) == "observation.arms"


def imported(module: ast.Module) -> dict[str, Traversable]:
    """The files of policies and of what they share that a module imports from, by path."""
    names = [
        name
        for node in ast.walk(module)
        if isinstance(node, ast.ImportFrom) and node.module
        for name in (node.module, *(f"{node.module}.{alias.name}" for alias in node.names))
    ]
    files = [
        PACKAGE / f"{name.partition('.')[2].replace('.', '/')}.py"
        for name in names
        if name.startswith(("driftbandits.policies.", "driftbandits.numerics."))
    ]
    return {str(file): file for file in files if file.is_file()}


def parsed(file: Traversable) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def print_catalogue(listing: dict[str, dict[str, Any]]) -> None:
    """Prints each name with its description, and its settings with defaults."""
    console = Console(highlight=False)
    for kind, entries in listing.items():
        console.print(f"[bold]{kind}[/bold]")
        for name, entry in entries.items():
            console.print(f"  [cyan]{name}[/cyan]: {escape(entry['summary'])}", soft_wrap=True)
            settings = [f"{key}={write(value)}" for key, value in entry["settings"].items()]
            if settings:
                console.print(f"      [dim]{escape(', '.join(settings))}[/dim]", soft_wrap=True)
