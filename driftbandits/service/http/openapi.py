"""The OpenAPI description, made from the table of routes and the messages."""

import re
from copy import deepcopy
from typing import Any

import msgspec

from driftbandits import __version__
from driftbandits.service.http import messages
from driftbandits.service.http.routes import (
    PARAMETER_MEANINGS,
    QUERY_PARAMETERS,
    ROUTES,
    Route,
)

REFERENCE = "#/components/schemas/{name}"
EXAMPLE_BANDIT = ROUTES[0].example["name"]
ERROR_MEANINGS = {
    400: "The body is not valid JSON.",
    401: "The key is missing or unknown.",
    403: "The key has another role.",
    404: "There is no such bandit or decision.",
    409: "It contradicts an earlier request.",
    408: "The body arrived too slowly.",
    413: "The body is too large.",
    422: "A value breaks a rule.",
    429: "The worker is too busy. Retry-After says how long to wait.",
    503: "The service is stopping, the bandit is moving, or the database cannot be reached. "
    "Retry-After says how long to wait.",
    504: "There was no answer in time. The request may or may not have been recorded.",
}


def description() -> dict[str, Any]:
    types = [
        messages.Error,
        *{each for route in ROUTES for each in (route.body, route.response) if each},
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
    good: dict[str, Any] = {"description": route.returns}
    if route.response is not None:
        schema = schemas[route.response]
        if route.or_response is not None:
            schema = {"anyOf": [schema, schemas[route.or_response]]}
        good["content"] = {route.content_type: {"schema": schema}}
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
        content = {"schema": schemas[route.body], "example": deepcopy(route.example)}
        described["requestBody"] = {"required": True, "content": {"application/json": content}}
    return described


def required_role(role: str) -> str:
    also = "" if role == "admin" else ", or `admin`"
    return f"Requires a key with the role `{role}`{also}."


def parameters(route: Route) -> list[dict[str, Any]]:
    text = {"type": "string", "examples": [EXAMPLE_BANDIT]}
    inside = [(name, "path", text) for name in re.findall(r"{(\w+)}", route.path)]
    query = QUERY_PARAMETERS.get(route.handler, {}).items()
    found = [*inside, *((name, "query", schema) for name, schema in query)]
    return [
        {
            "name": name,
            "in": where,
            "required": where == "path",
            "description": PARAMETER_MEANINGS[name],
            "schema": schema,
        }
        for name, where, schema in found
    ]
