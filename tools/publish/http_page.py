"""Makes docs/reference/http.md from the service's OpenAPI document.

python -m tools.publish.http_page     # writes the page
"""

import json
import re
import textwrap
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from driftbandits.service.http.openapi import description

TARGET = Path(__file__).parents[2] / "docs" / "reference" / "http.md"
ADDRESS = "localhost:8000"
USUAL = ("get", "post")  # curl's own choice, without and with a body
FIELD = ["field", "type", "default", "meaning"]
WIDTH = 100
JSON = "application/json"
INTRO = """\
The API of the [service](../how_to/run_the_service.md). JSON in, JSON out. While the service runs,
`/docs` shows this reference with forms to try it, and `/openapi.json` is its source.

Every request to `/v1` and `/metrics` needs a [key](../how_to/run_the_service.md#keys-and-roles) in
the header `Authorization: Bearer KEY`, unless the service runs with `--without-keys`. Each
operation names the role that the key must have; the role `admin` may do everything. The examples
below leave out the header. They work one after the other.
"""
ERRORS = "Every error has a code and a remedy; [settings](settings.md#errors) lists all codes."

Schema = dict[str, Any]


class Operation(NamedTuple):
    method: str
    path: str
    about: dict[str, Any]

    @property
    def title(self) -> str:
        """The first sentence of the summary."""
        return self.about["summary"].partition(". ")[0].rstrip(".")

    @property
    def rest(self) -> str:
        """What else the summary says."""
        return self.about["summary"].partition(". ")[2]

    def parameters(self, where: str) -> list[dict[str, Any]]:
        return [each for each in self.about.get("parameters", []) if each["in"] == where]

    @property
    def body(self) -> dict[str, Any]:
        return self.about.get("requestBody", {}).get("content", {}).get(JSON, {})

    @property
    def role(self) -> str | None:
        found = re.search(r"role `(\w+)`", self.about.get("description", ""))
        return found[1] if found else None


def page() -> str:
    """The whole page."""
    document = description()
    operations = [
        Operation(method, path, about)
        for path, methods in document["paths"].items()
        for method, about in methods.items()
    ]
    operations.sort(key=lambda each: each.method == "delete")  # the examples need the bandit
    schemas, shown = document["components"]["schemas"], Shown(operations)
    objects = {name: schema for name, schema in schemas.items() if name not in shown.bodies}
    parts = ["# HTTP API", INTRO.rstrip(), *paths(operations), index(operations)]
    for operation in operations:
        parts += section(operation, schemas, shown)
    parts += ["## Objects"]
    for name, schema in sorted(objects.items()):
        parts += [f"### {name}", *object_parts(schema, shown)]
    parts += ["## Errors", wrapped(ERRORS), error_table(operations)]
    return "\n\n".join(parts) + "\n"


class Shown:
    """Where the page explains each schema."""

    def __init__(self, operations: list[Operation]) -> None:
        self.bodies: dict[str, str] = {}  # title of the first operation that takes it
        for operation in operations:
            if name := name_of(operation.body.get("schema", {})):
                self.bodies.setdefault(name, operation.title)

    def link(self, name: str) -> str:
        return f"[{name}](#{slug(self.bodies.get(name, name))})"


def paths(operations: list[Operation]) -> list[str]:
    """What the parts of paths mean, once for all operations."""
    found = {p["name"]: p["description"] for each in operations for p in each.parameters("path")}
    return [
        wrapped(f"In a path, `{{{name}}}` is the {text[0].lower()}{text[1:]}")
        for name, text in found.items()
    ]


def index(operations: list[Operation]) -> str:
    rows = [
        [f"[{each.title}](#{slug(each.title)})", f"`{each.method.upper()} {each.path}`", role(each)]
        for each in operations
    ]
    return table(["operation", "request", "role"], rows)


def section(operation: Operation, schemas: dict[str, Schema], shown: Shown) -> list[str]:
    """Everything on one operation."""
    about, line = operation.about, f"`{operation.method.upper()} {operation.path}`"
    key = f"role {role(operation)}" if operation.role else "no key needed"
    parts = [f"## {operation.title}", f"{line}, {key}"]
    if operation.rest:
        parts += [wrapped(operation.rest)]
    if query := operation.parameters("query"):
        parts += ["**Query**", table(["parameter", *FIELD[1:]], parameter_rows(query, shown))]
    if schema := operation.body.get("schema"):
        name = name_of(schema)
        own = name is None or shown.bodies[name] == operation.title
        if own:
            parts += ["**Body**", field_table(resolved(schema, schemas), shown)]
        else:
            parts += [f"**Body:** {shown.link(name)}"]
    return [*parts, answers(about, shown), example(operation)]


def role(operation: Operation) -> str:
    return f"`{operation.role}`" if operation.role else "none"


def parameter_rows(parameters: list[dict[str, Any]], shown: Shown) -> list[list[str]]:
    return [
        [f"`{each['name']}`", type_of(each["schema"], shown),
         default_of(each["schema"], each["required"]), each.get("description", "")]
        for each in parameters
    ]  # fmt: skip


def answers(about: dict[str, Any], shown: Shown) -> str:
    """Good ones with their meaning; of errors the status."""
    good, bad = [], []
    for status, answer in about["responses"].items():
        if int(status) >= 400:
            bad.append(status)
            continue
        content = answer.get("content", {})
        schema = content.get(JSON, {}).get("schema", {})
        names = [name_of(each) for each in schema.get("anyOf", [schema])]
        kinds = ", ".join(f"`{kind}`" for kind in content if kind != JSON)
        links = " or ".join(shown.link(name) for name in names if name)
        what = links or kinds or "an empty body"
        good.append(f"- {status}: {answer['description'].rstrip('.')}; {what}")
    listed = f"- [errors](#errors): {', '.join(bad)}" if bad else ""
    return "\n".join(["**Answers**\n", *good, listed]).rstrip()


def example(operation: Operation) -> str:
    path = operation.path
    for each in operation.parameters("path"):
        path = path.replace(f"{{{each['name']}}}", each["schema"]["examples"][0])
    query = {p["name"]: p["schema"]["default"] for p in operation.parameters("query")}
    url = f"'{ADDRESS}{path}?{urlencode(query)}'" if query else f"{ADDRESS}{path}"
    words = ["curl", *(() if operation.method in USUAL else ("-X", operation.method.upper())), url]
    if body := operation.body.get("example"):
        words += ["-d", f"'{json.dumps(body)}'"]
    return f"```sh\n{' '.join(words)}\n```"


def error_table(operations: list[Operation]) -> str:
    found = {
        status: answer["description"]
        for each in operations
        for status, answer in each.about["responses"].items()
        if int(status) >= 400
    }
    return table(["status", "meaning"], [[status, found[status]] for status in sorted(found)])


# Schemas in words


def object_parts(schema: Schema, shown: Shown) -> list[str]:
    text = " ".join(schema.get("description", "").split())
    return [wrapped(text), field_table(schema, shown, sent=False)]


def field_table(schema: Schema, shown: Shown, *, sent: bool = True) -> str:
    """Of what is sent also the defaults."""
    required = schema.get("required", [])
    rows = []
    for name, field in schema.get("properties", {}).items():
        default = [default_of(field, name in required)] if sent else []
        meaning = field.get("description", "")
        rows.append([f"`{name}`", type_of(field, shown), *default, meaning])
    return table([head for head in FIELD if sent or head != "default"], rows)


def default_of(schema: Schema, required: bool) -> str:
    if required:
        return "required"
    return f"`{json.dumps(schema['default'])}`" if "default" in schema else ""


def type_of(schema: Schema, shown: Shown) -> str:
    if "title" in schema:
        return schema["title"]
    if "anyOf" in schema:
        return ", or ".join(type_of(each, shown) for each in schema["anyOf"])
    limits = bounds(schema)
    if schema.get("type") in ("array", "object"):
        one = re.sub(r"^(list|object)s", r"\1", many(schema, shown))
        return ", ".join([one, *limits])
    if name := name_of(schema):
        return shown.link(name)
    return kind_of(schema) + (f" ({', '.join(limits)})" if limits else "")


def many(schema: Schema, shown: Shown) -> str:
    """Values of one type, without their bounds."""
    if "title" in schema:
        return schema["title"]
    if "anyOf" in schema:
        return " or ".join(many(each, shown) for each in schema["anyOf"])
    if name := name_of(schema):
        return shown.link(name)
    if inner := schema.get("prefixItems"):
        return f"lists of {len(inner)} {inner[0]['type']}s"
    if schema.get("type") == "array":
        return f"lists of {many(schema['items'], shown)}"
    if schema.get("type") == "object":
        return f"objects of {many(schema['additionalProperties'], shown)}"
    kind = kind_of(schema)
    return kind if kind == "null" else f"{kind}s"


def kind_of(schema: Schema) -> str:
    return schema.get("type", "string")  # what has no type is one of several texts


def bounds(schema: Schema) -> list[str]:
    found = [
        between(schema.get("minLength"), schema.get("maxLength"), " characters"),
        between(schema.get("minItems"), schema.get("maxItems"), " of them")
        if "prefixItems" not in schema
        else "",
        between(schema.get("minimum"), schema.get("maximum"), ""),
    ]
    if "exclusiveMinimum" in schema:
        found.append(f"above {number(schema['exclusiveMinimum'])}")
    if "exclusiveMaximum" in schema:
        found.append(f"below {number(schema['exclusiveMaximum'])}")
    if "enum" in schema:
        found.append(" or ".join(f"`{value}`" for value in schema["enum"]))
    return [each for each in found if each]


def between(low: float | None, high: float | None, what: str) -> str:
    if low is None and high is None:
        return ""
    if low is None or high is None:
        side = "at least" if high is None else "at most"
        return f"{side} {number(low if high is None else high)}{what}"
    return f"{number(low)} to {number(high)}{what}"


def number(value: float | None) -> str:
    assert value is not None
    if isinstance(value, float) and abs(value) >= 1e9:
        return f"{value:g}".replace("e+", "e").replace("e0", "e")
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def name_of(schema: Schema) -> str | None:
    return schema["$ref"].rsplit("/", 1)[1] if "$ref" in schema else None


def resolved(schema: Schema, schemas: dict[str, Schema]) -> Schema:
    name = name_of(schema)
    return schemas[name] if name else schema


# Markdown


def table(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def wrapped(text: str) -> str:
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)


def slug(title: str) -> str:
    """The anchor that the site gives a heading."""
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower())


def main() -> None:
    TARGET.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
