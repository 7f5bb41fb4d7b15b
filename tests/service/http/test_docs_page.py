"""The page /docs in a real browser: it shows every operation, and each can be tried."""

import json
import re
import shlex
from pathlib import Path

import pytest

from driftbandits import asgi_app
from tests.browser import Server, Tab, browser, tab
from tests.service.http.reader import Place, curl, place
from tests.service.serving import ask, mounted, served

__all__ = ["browser", "place", "tab"]  # fixtures: pytest finds them by name

ORDER = [
    "create", "bandits", "bandit", "change", "add_arm", "set_features", "retire_arm",
    "restore_arm", "decide", "decide_batch", "reward", "reward_batch", "correct", "log", "series",
    "metrics", "healthy", "ready", "delete",
]  # fmt: skip


def open_docs(tab: Tab, place: Place) -> dict:
    tab.open(place.serving.url + "/docs", "document.querySelector('.operation')")
    return ask(place.serving.url, "GET", "/openapi.json")[1]


@pytest.mark.parametrize("width", [1280, 360])
def test_the_page_shows_every_operation(width: int, tab: Tab, place: Place) -> None:
    tab.resize(width)
    described = open_docs(tab, place)
    wanted = {f"{m.upper()} {path}" for path, ms in described["paths"].items() for m in ms}
    shown = tab.run("[...document.querySelectorAll('.operation')].map(e => e.dataset.operation)")
    assert sorted(shown) == sorted(wanted)
    assert len(wanted) == len(ORDER) == tab.run("document.querySelectorAll('.index a').length")
    tab.run("document.querySelectorAll('details').forEach(e => { e.open = true; })")
    assert tab.run("document.documentElement.scrollWidth - innerWidth") == 0
    fields = tab.run("byId('create').querySelector('.fields').textContent")
    for word in described["components"]["schemas"]["NewBandit"]["properties"]:
        assert word in fields
    assert "86400" in fields
    assert "role admin" in tab.run("byId('create').querySelector('.role').textContent")
    assert tab.run("document.scripts.length + document.images.length") == 1
    urls = [event["request"]["url"] for event in tab.events("Network.requestWillBeSent")]
    assert [u for u in urls if not u.startswith((place.serving.url + "/", "data:"))] == []
    assert tab.complaints() == []


def test_every_operation_can_be_tried(tab: Tab, place: Place) -> None:
    ask(place.serving.url, "DELETE", "/v1/bandits/shop")
    open_docs(tab, place)
    tab.run("window.confirm = () => true; document.querySelectorAll('.try').forEach(e => "
            "{ e.open = true; })")  # fmt: skip
    statuses = {}
    for operation in ORDER:
        card = f"byId('{operation}')"
        tab.run(f"{card}.querySelector('form').requestSubmit()")
        tab.wait(f"Boolean({card}.querySelector('.status'))")
        statuses[operation] = tab.run(f"{card}.querySelector('.status').textContent")
    created = {"create": "201", "add_arm": "201", "delete": "204"}
    assert statuses == {operation: created.get(operation, "200") for operation in ORDER}
    assert '"learned"' in tab.run("byId('reward').querySelector('.output pre').textContent")
    assert tab.complaints() == []


def test_its_curl_lines_run_as_they_stand(tab: Tab, place: Place) -> None:
    ask(place.serving.url, "DELETE", "/v1/bandits/shop")
    open_docs(tab, place)
    for operation in ORDER:
        curl(tab.run(f"byId('{operation}').querySelector('.curl').textContent"), place.folder)
    tab.run("byId('decide-body').value = '{\"id\": \"it\\'s\"}'; "
            "byId('decide-body').dispatchEvent(new Event('input'))")  # fmt: skip
    line = tab.run("byId('decide').querySelector('.curl').textContent")
    assert json.loads(shlex.split(line)[-1]) == {"id": "it's"}


def test_the_key_is_kept_and_sent(tab: Tab, tmp_path: Path) -> None:
    with served(tmp_path, keys=True) as serving:
        key = re.findall(r"\bdb_\S+", "".join(serving.said))[0]
        tab.open(serving.url + "/docs", "document.querySelector('.operation')")
        tab.run(f"byId('key').value = '{key}'; byId('key').dispatchEvent(new Event('input'))")
        tab.open(serving.url + "/docs?again", "document.querySelector('.operation')")
        assert tab.run("byId('key').value") == key
        tab.run("byId('bandits').querySelector('form').requestSubmit()")
        tab.wait("Boolean(byId('bandits').querySelector('.status'))")
        assert tab.run("byId('bandits').querySelector('.status').textContent") == "200"
        assert ask(serving.url, "GET", "/v1/bandits")[0] == 401
        assert tab.complaints() == []


def test_both_pages_work_where_they_are_mounted(tab: Tab, tmp_path: Path) -> None:
    app = mounted(asgi_app(tmp_path, without_keys=True), "/bandits")
    server = Server(app, lifespan="on")
    try:
        tab.open(f"{server.url}/bandits", "byId('pill').textContent.startsWith('live')")
        assert f"{server.url}/bandits/v1/bandits" in tab.run("document.body.textContent")
        tab.run("document.querySelector('nav a').click()")
        tab.wait("Boolean(document.querySelector('#bandits form'))")
        assert tab.run("location.pathname") == "/bandits/docs"
        line = tab.run("byId('bandits').querySelector('.curl').textContent")
        assert f"{server.url}/bandits/v1/bandits" in line
        tab.run("byId('bandits').querySelector('form').requestSubmit()")
        tab.wait("Boolean(byId('bandits').querySelector('.status'))")
        assert tab.run("byId('bandits').querySelector('.status').textContent") == "200"
        tab.run("document.querySelector('.brand').click()")
        tab.wait("location.pathname === '/bandits/'")
        assert tab.complaints() == []
    finally:
        server.stop()
