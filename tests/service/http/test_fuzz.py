"""Everything that the OpenAPI description allows, and what it does not, without a server error."""

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
from tests.service.serving import ask, served

CHECKS = [
    not_a_server_error, status_code_conformance, content_type_conformance,
    response_schema_conformance,
]  # fmt: skip


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory):
    with served(tmp_path_factory.mktemp("fuzz")) as serving:
        for name in ("0", "a"):
            bandit = {"name": name, "arms": ["0", "a"], "policy": "thompson"}
            assert ask(serving.url, "POST", "/v1/bandits", bandit)[0] == 201
        yield serving.url


schema = schemathesis.openapi.from_dict(description())


@schema.parametrize()
@settings(max_examples=60, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_server_error(case, url: str) -> None:
    if case.operation.label == "POST /v1/bandits" and isinstance(case.body, dict):
        case.body["policy"] = "thompson"  # others take seconds to compile, and are tested elsewhere
    response = case.call(base_url=url)
    assert response.status_code < 500, response.text
    case.validate_response(response, checks=CHECKS)


def test_the_service_is_as_well_as_before(url: str) -> None:
    assert ask(url, "GET", "/readyz")[0] == 200
