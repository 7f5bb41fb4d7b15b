"""docs/reference/http.md is made from the OpenAPI document, which explains everything."""

from driftbandits.service.http.openapi import description
from tools.publish.http_page import TARGET, page, slug


def test_the_page_is_up_to_date() -> None:
    assert TARGET.read_text() == page(), "run: python -m tools.publish.http_page"


def test_it_has_every_operation_and_every_field() -> None:
    text, document = page(), description()
    for path, methods in document["paths"].items():
        for method in methods:
            assert f"\n`{method.upper()} {path}`, " in text
    for name, schema in document["components"]["schemas"].items():
        for field, about in schema["properties"].items():
            assert about["description"], (name, field)
            assert f"\n| `{field}` | " in text


def test_its_links_lead_to_its_headings() -> None:
    headings = [line.lstrip("# ") for line in page().splitlines() if line.startswith("#")]
    assert len(headings) == len(set(headings))
    anchors = {slug(heading) for heading in headings}
    links = {part.split(")")[0] for part in page().split("](#")[1:]}
    assert links <= anchors


def test_its_lines_and_tables_are_short() -> None:
    for line in page().splitlines():
        assert len(line) <= 160
        assert line.count(" | ") < 6
