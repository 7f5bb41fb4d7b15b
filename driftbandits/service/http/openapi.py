"""The OpenAPI description, made from the table of routes and the messages."""

import re
from typing import Any

import msgspec

from driftbandits import __version__
from driftbandits.service.http import messages
from driftbandits.service.http.routes import QUERY_PARAMETERS, ROUTES, Route

REFERENCE = "#/components/schemas/{name}"
ERROR_MEANINGS = {
    400: "The body is not valid JSON.",
    401: "The key is missing or unknown.",
    403: "The key has another role.",
    404: "Not found.",
    409: "It contradicts an earlier request.",
    408: "The body arrived too slowly.",
    413: "The body is too large.",
    422: "A value breaks a rule.",
    429: "Too busy; see Retry-After.",
    503: "Shutting down, or the database cannot be reached; see Retry-After.",
    504: "No answer in time: it may or may not have been recorded; see Retry-After.",
}


def description() -> dict[str, Any]:
    types = [
        messages.Error,
        *{t for r in ROUTES for t in (r.body, r.response) if t not in (None, dict)},
    ]
    types.sort(key=lambda each: each.__name__)
    schemas, components = msgspec.json.schema_components(types, ref_template=REFERENCE)
    by_type = dict(zip(types, schemas, strict=True))
    paths: dict[str, Any] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = operation(route, by_type)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "driftbandits",
            "version": __version__,
            "description": "Decisions by bandits whose rewards change over time.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def operation(route: Route, schemas: dict[type, Any]) -> dict[str, Any]:
    errors = {*route.errors, *((401, 403, 429, 503, 504) if route.role else ())}
    errors |= {400, 408, 413, 422} if route.body else set()
    errors |= {422} if route.handler in QUERY_PARAMETERS else set()
    error = {"application/json": {"schema": schemas[messages.Error]}}
    good: dict[str, Any] = {"description": route.summary}
    if route.response is not None:
        good["content"] = {
            route.content_type: {"schema": schemas.get(route.response, {"type": "object"})}
        }
    elif route.status != 204:
        good["content"] = {route.content_type: {"schema": {"type": "string"}}}
    if route.handler == "log":
        good["content"]["application/vnd.apache.parquet"] = {"schema": {}}
    answers = {str(route.status): good}
    if route.handler == "create":
        answers["200"] = {
            **good,
            "description": "The bandit already exists with the same settings.",
        }
    for status in sorted(errors):
        answers[str(status)] = {"description": ERROR_MEANINGS[status], "content": error}
    described: dict[str, Any] = {
        "operationId": route.handler,
        "summary": route.summary,
        "responses": answers,
        "parameters": parameters(route),
    }
    if route.role:
        described["security"] = [{"key": []}]
        described["description"] = required_role(route.role)
    if route.body:
        content = {"application/json": {"schema": schemas[route.body]}}
        described["requestBody"] = {"required": True, "content": content}
    return described


def required_role(role: str) -> str:
    also = "" if role == "admin" else ", or `admin`"
    return f"Requires a key with the role `{role}`{also}."


def parameters(route: Route) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"{(\w+)}", route.path)
    ]
    for name, schema in QUERY_PARAMETERS.get(route.handler, {}).items():
        found.append({"name": name, "in": "query", "required": False, "schema": schema})
    return found
