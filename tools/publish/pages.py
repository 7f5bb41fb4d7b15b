"""Writes the pages of policies and environments from the docstrings, and CONTRIBUTING's map."""

from pathlib import Path

from driftbandits.catalogue import IGNORES, explain, functions_of
from tools.layers import as_markdown
from tools.publish.marks import with_table

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
DEFAULT = "tracker"  # of the policies, the one to start with
INTRO = "Each page is what `driftbandits explain NAME` prints; `make docs` writes them.\n"


def pages() -> dict[Path, str]:
    """Every page, by where it belongs."""
    policies = functions_of("policies", "POLICIES")
    worlds = functions_of("environments", "ENVIRONMENTS")
    changes = functions_of("environments", "TRANSFORMATIONS")
    texts = {DOCS / "policies" / f"{name}.md": explain(name) for name in policies}
    texts |= {DOCS / "environments" / f"{name}.md": explain(name) for name in worlds | changes}
    contextual = {
        name: entry
        for name, entry in policies.items()
        if IGNORES not in texts[DOCS / "policies" / f"{name}.md"] and name != DEFAULT
    }
    start = {DEFAULT: policies.pop(DEFAULT)}
    free = {name: entry for name, entry in policies.items() if name not in contextual}
    groups = {"With or without a context: the default": start, "Context-free": free}
    texts[DOCS / "policies" / "README.md"] = index("Policies", groups | {"Contextual": contextual})
    texts[DOCS / "environments" / "README.md"] = index(
        "Environments", {"Environments": worlds, "Transformations of any environment": changes}
    )
    return texts


def index(title: str, groups: dict[str, dict[str, dict[str, str]]]) -> str:
    parts = [f"# {title}\n", INTRO]
    for heading, entries in groups.items():
        rows = [f"| [{name}]({name}.md) | {entry['summary']} |" for name, entry in entries.items()]
        parts += [f"## {heading}\n", "\n".join(["| | |", "| --- | --- |", *rows]) + "\n"]
    return "\n".join(parts)


def write_map() -> None:
    path = ROOT / "CONTRIBUTING.md"
    path.write_text(with_table(path.read_text(), "map", as_markdown() + "\n"))


def main() -> None:
    write_map()
    found = pages()
    for path in (*DOCS.glob("policies/*.md"), *DOCS.glob("environments/*.md")):
        if path not in found:
            path.unlink()
    for path, text in found.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
