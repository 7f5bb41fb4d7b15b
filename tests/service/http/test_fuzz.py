"""Everything that the OpenAPI description allows, and what it does not, without a server error."""

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from driftbandits.service.http.openapi import description
from tests.conftest import SOAK
from tests.service.serving import ask, served

CHECKS = [
    not_a_server_error, status_code_conformance, content_type_conformance,
    response_schema_conformance,
]  # fmt: skip
EXAMPLES = settings(
    max_examples=300 if SOAK else 60, derandomize=True, deadline=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
FIELDS = {"n": "number", "c": "category(buckets=3)", "h": "cyclic(24)", "f": "flag"}
TYPED = {
    "name": "typed", "policy": "thompson", "arms": {"0": {}, "a": {"c": "x"}},
    "context": FIELDS, "features": FIELDS,
}  # fmt: skip


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory):
    with served(tmp_path_factory.mktemp("fuzz")) as serving:
        for name in ("0", "a"):
            bandit = {"name": name, "arms": ["0", "a"], "policy": "thompson"}
            assert ask(serving.url, "POST", "/v1/bandits", bandit)[0] == 201
        yield serving.url


schema = schemathesis.openapi.from_dict(description())


@schema.parametrize()
@EXAMPLES
def test_no_server_error(case, url: str) -> None:
    if case.operation.label == "POST /v1/bandits" and isinstance(case.body, dict):
        case.body["policy"] = "thompson"  # others take seconds to compile, and are tested elsewhere
    check(case, url)


@schema.include(path_regex="/(bandits|arms/features|decisions|batch)$", method="POST").parametrize()
@EXAMPLES
def test_no_server_error_with_names_that_exist(case, url: str) -> None:
    """Names by chance are hardly ever those of a bandit, its arms and its schema."""
    if isinstance(case.body, dict):
        aim(case.body, creates=case.operation.label == "POST /v1/bandits")
    if "bandit" in case.path_parameters:
        assert ask(url, "POST", "/v1/bandits", TYPED)[0] in (200, 201)
        case.path_parameters["bandit"] = TYPED["name"]
    check(case, url)


def check(case, url: str) -> None:
    response = case.call(base_url=url)
    assert response.status_code < 500, response.text
    case.validate_response(response, checks=CHECKS)


def aim(body: dict[str, Any], *, creates: bool = False) -> None:
    """Puts names that exist in place of others, and leaves the values as they are."""
    for each in body["decisions"] if isinstance(body.get("decisions"), list) else ():
        if isinstance(each, dict):
            aim(each)
    if isinstance(body.get("arms"), dict):
        arms = renamed(body["arms"], TYPED["arms"])
        body["arms"] = {name: renamed(features, FIELDS) for name, features in arms.items()}
    if creates:
        kinds = [kind for kind in ("context", "features") if isinstance(body.get(kind), dict)]
        body |= {"policy": "thompson"} | {kind: schema_like(body[kind]) for kind in kinds}
        return
    body |= {kind: renamed(body[kind], FIELDS) for kind in ("context", "features") if kind in body}
    if isinstance(body.get("name"), str):
        body["name"] = "a"


def renamed(given: Any, names: Any) -> Any:
    return dict(zip(names, given.values(), strict=False)) if isinstance(given, dict) else given


def schema_like(given: dict[str, Any]) -> dict[str, str]:
    return {name: FIELDS[name] for name in renamed(given, FIELDS)}


def test_the_service_is_as_well_as_before(url: str) -> None:
    assert ask(url, "GET", "/readyz")[0] == 200
