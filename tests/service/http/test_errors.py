"""What the service refuses: bad input, keys without the right role, callers that are too slow."""

import json
import socket
from contextlib import closing
from http.client import HTTPConnection, HTTPMessage
from pathlib import Path

import pytest

from driftbandits.service.http.routes import ROUTES
from tests.service.serving import Serving, ask, create, events_of, served, service

__all__ = ["service"]  # a fixture: pytest finds it by name


BAD = {
    "no JSON": (b"{", 400),
    "not UTF-8": (b'{"id": "\xff"}', 400),
    "NaN": (b'{"id": "c", "context": [NaN, 1]}', 400),
    "infinity": (b'{"id": "c", "context": [1e999, 1]}', 422),
    "a list": (b"[]", 422),
    "unknown field": (b'{"colour": 1}', 422),
    "context too short": (b'{"context": [1]}', 422),
    "context of text": (b'{"context": ["a", "b"]}', 422),
    "context by wrong names": (b'{"context": {"age": 1, "year": 2}}', 422),
    "unknown arm": (b'{"context": [1, 2], "available": ["blue"]}', 422),
    "no arm": (b'{"context": [1, 2], "available": []}', 422),
    "id with a zero": (b'{"context": [1, 2], "id": "a\\u0000"}', 422),
    "id with a new line": (b'{"context": [1, 2], "id": "a\\n"}', 422),
    "half a character": (b'{"context": [1, 2], "id": "\\ud800"}', 400),
    "empty id": (b'{"context": [1, 2], "id": ""}', 422),
    "long id": (b'{"context": [1, 2], "id": "' + b"a" * 201 + b'"}', 422),
    "deep": (b'{"id": ' + b"[" * 100_000, 422),
    "huge": (b" " * 4_000_001, 413),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_decisions_are_refused(service: Serving, case: str) -> None:
    create(service.url, "careful", context=["age", "hour"])
    before = events_of(service.url, "careful")
    body, expected = BAD[case]
    status, answer = ask(service.url, "POST", "/v1/bandits/careful/decisions", body)
    assert status == expected
    assert set(answer["error"]) == {"code", "message", "remedy"}
    assert events_of(service.url, "careful") == before


@pytest.mark.parametrize(
    "body",
    [
        b'{"id": "x", "reward": NaN}', b'{"id": "x", "reward": 1e999}',
        b'{"id": "x", "reward": "1"}', b'{"id": "x", "reward": null}', b'{"id": "x"}',
        b'{"id": 3, "reward": 1}', b'{"id": "a\\u0000", "reward": 1}', b'{"id": "no", "reward": 1}',
    ],
)  # fmt: skip
def test_bad_rewards_are_refused(service: Serving, body: bytes) -> None:
    create(service.url, "strict")
    ask(service.url, "POST", "/v1/bandits/strict/decisions", {"id": "x"})
    status, answer = ask(service.url, "POST", "/v1/bandits/strict/rewards", body)
    assert status in (400, 404, 422)
    assert answer["error"]["remedy"]
    assert events_of(service.url, "strict")[1] == 0


@pytest.mark.parametrize(
    "change",
    [
        {"arms": []}, {"arms": ["a", "a"]}, {"arms": ["a\n"]}, {"policy": "unifrom"},
        {"policy": "oracle"},
        {"policy": "recurrent(hidden=-1)"}, {"policy": "__import__('os')"}, {"window": 0},
        {"reward_range": [1, 0]}, {"name": "a/b"}, {"name": ".."}, {"name": ""}, {"seed": -1},
        {"context": ["a"] * 1001}, {"arms": [str(i) for i in range(1001)]}, {"horizon": 0},
    ],
)  # fmt: skip
def test_bad_bandits_are_refused(service: Serving, change: dict) -> None:
    before = len(ask(service.url, "GET", "/v1/bandits")[1]["bandits"])
    bandit = {"name": "bad", "arms": ["red"], "policy": "thompson", **change}
    status, answer = ask(service.url, "POST", "/v1/bandits", bandit)
    assert status == 422, answer
    assert answer["error"]["message"]
    assert len(ask(service.url, "GET", "/v1/bandits")[1]["bandits"]) == before


LONG = "x" * 10_000


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/brief/decisions", {LONG: 1}), ("/brief/decisions", {"context": {LONG: 1}}),
        ("/brief/decisions", {"context": {"age": LONG}}), ("/brief/rewards", {"id": LONG}),
        ("/brief/decisions", {"context": [0.5] * 1000}),
        ("/brief/decisions", {"available": [LONG]}),
        (f"/{LONG[:5000]}/decisions", {}), (f"/brief/{LONG[:5000]}", {}),
        ("", {"name": "n", "arms": ["a"], "context": {"x": f"category(values=['{LONG}'])"}}),
        ("", {"name": "n", "arms": ["a"], "policy": "ucb(" + LONG[:900] + "=1)"}),
    ],
    ids=lambda value: repr(value)[:25],
)  # fmt: skip
def test_a_refusal_does_not_repeat_a_long_value(service: Serving, path: str, body: dict) -> None:
    create(service.url, "brief", context=["age"])
    status, answer = ask(service.url, "POST", f"/v1/bandits{path}", body)
    assert status in (404, 422), answer
    assert len(answer["error"]["message"]) < 600


def test_unknown_paths_and_methods(service: Serving) -> None:
    for method, path, expected in [
        ("GET", "/nothing", 404), ("PUT", "/v1/bandits", 405), ("GET", "/v1/bandits/nobody", 404),
        ("POST", "/v1/bandits/nobody/decisions", 404), ("GET", "/v1/bandits/nobody/log", 404),
    ]:  # fmt: skip
        status, answer = ask(service.url, method, path, {} if method == "POST" else None)
        assert (status, set(answer["error"])) == (expected, {"code", "message", "remedy"})


def test_a_wrong_method_is_told_the_right_ones(service: Serving) -> None:
    for method, path, allowed in [
        ("PUT", "/v1/bandits", "POST, GET, HEAD"), ("GET", "/v1/bandits/a/decisions", "POST"),
        ("POST", "/", "GET, HEAD"), ("DELETE", "/readyz", "GET, HEAD"),
    ]:  # fmt: skip
        status, headers, _ = exchange(service, method, path)
        assert (status, headers["allow"]) == (405, allowed)


def exchange(serving: Serving, method: str, path: str) -> tuple[int, HTTPMessage, bytes]:
    """Status, headers and body."""
    with closing(HTTPConnection("127.0.0.1", serving.port, timeout=60)) as connection:
        connection.request(method, path)
        response = connection.getresponse()
        return response.status, response.headers, response.read()


@pytest.mark.parametrize("path", [route.path for route in ROUTES if route.method == "GET"])
def test_head_is_get_without_a_body(service: Serving, path: str) -> None:
    create(service.url, "headed")
    path = path.replace("{bandit}", "headed")
    status, headers, body = exchange(service, "HEAD", path)
    asked, same, _ = exchange(service, "GET", path)
    assert (status, asked, body) == (200, 200, b"")
    assert headers["content-type"] == same["content-type"]
    if headers["content-length"] is not None:
        assert int(headers["content-length"]) > 0


def test_slow_clients_are_cut_off(service: Serving) -> None:
    """The head of a first and of a second request, and a body; all three wait at the same time."""
    post = b"POST /v1/bandits HTTP/1.1\r\nHost: localhost\r\n"
    get = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    idle, second, slow = (
        socket.create_connection(("127.0.0.1", service.port), timeout=60) for _ in range(3)
    )
    with idle, second, slow:
        second.sendall(get)
        came = b""
        while b"alive" not in came:
            came += second.recv(1000)
        idle.sendall(post)
        second.sendall(post)
        slow.sendall(post + b"Content-Length: 10\r\n\r\n{")
        assert b" 408 " in slow.recv(1000)
        assert idle.recv(100) == b""
        assert second.recv(100) == b""


def raw(service: Serving, path: str, headers: dict, body: str = "{}") -> int:
    connection = HTTPConnection("127.0.0.1", service.port, timeout=60)
    connection.request("POST", path, body, headers)
    status = connection.getresponse().status
    connection.close()
    return status


def test_without_keys_no_page_of_another_site_may_ask(service: Serving) -> None:
    body = json.dumps({"name": "stolen", "arms": ["a"], "policy": "thompson"})
    for headers in (
        {"Host": "evil.example"}, {"Host": "["}, {"Origin": "http://evil.example"},
        {"Origin": "null"}, {"Origin": "http://["},
    ):  # fmt: skip
        assert raw(service, "/v1/bandits", headers, body) == 403
    assert ask(service.url, "GET", "/v1/bandits/stolen")[0] == 404


def test_an_encoded_slash_is_part_of_no_path(service: Serving) -> None:
    create(service.url, "2Fshop")
    assert raw(service, "/v1/bandits%2Fshop/decisions", {}) == 404


def test_there_are_at_most_a_thousand_arms(service: Serving) -> None:
    arms = [f"arm {i}" for i in range(1000)]
    create(service.url, "crowd", arms=arms, policy="epsilon_greedy")
    status, answer = ask(service.url, "POST", "/v1/bandits/crowd/arms", {"name": "one more"})
    assert (status, answer["error"]["code"]) == (422, "bad_value")


def test_ten_million_decisions_may_be_open(service: Serving) -> None:
    assert create(service.url, "patient", max_open=10_000_000)["max_open"] == 10_000_000
    body = {"name": "endless", "arms": ["a", "b"], "policy": "thompson", "max_open": 10_000_001}
    status, answer = ask(service.url, "POST", "/v1/bandits", body)
    assert (status, answer["error"]["code"]) == (422, "bad_value")
    assert "max_open" in answer["error"]["message"]
    assert "10000000" in answer["error"]["message"]


def test_keys_and_roles(tmp_path: Path) -> None:
    with served(tmp_path, keys=True) as serving:
        admin = serving.said[0].strip() if len(serving.said) == 1 else serving.said[1].strip()
        assert admin.startswith("db_")
        bandit = {"name": "shop", "arms": ["a", "b"], "policy": "thompson"}
        status, answer = ask(serving.url, "POST", "/v1/bandits", bandit)
        assert (status, answer["error"]["code"]) == (401, "no_key")
        headers = exchange(serving, "GET", "/metrics")[1]
        assert headers["www-authenticate"] == 'Bearer realm="driftbandits"'
        assert ask(serving.url, "POST", "/v1/bandits", bandit, key="db_wrong")[0] == 401
        assert ask(serving.url, "POST", "/v1/bandits", bandit, key=admin)[0] == 201
        keys = {role: made_key(tmp_path, role) for role in ("decide", "read")}
        path = "/v1/bandits/shop"
        assert ask(serving.url, "POST", f"{path}/decisions", {}, key=keys["decide"])[0] == 200
        status, answer = ask(serving.url, "GET", f"{path}/log", key=keys["decide"])
        assert (status, answer["error"]["code"]) == (403, "wrong_role")
        assert ask(serving.url, "GET", f"{path}/log", key=keys["read"])[0] == 200
        assert ask(serving.url, "POST", f"{path}/decisions", {}, key=keys["read"])[0] == 403
        assert ask(serving.url, "DELETE", path, key=keys["decide"])[0] == 403
        for role in keys:
            correction = {"id": "a", "reward": None}
            status, _ = ask(serving.url, "POST", f"{path}/corrections", correction, key=keys[role])
            assert status == 403
            assert ask(serving.url, "PATCH", path, {}, key=keys[role])[0] == 403
        assert ask(serving.url, "GET", "/healthz")[0] == 200
    content = (tmp_path / "driftbandits.sqlite").read_bytes()
    assert not any(each.encode() in content for each in [admin, *keys.values()])


def made_key(data: Path, role: str) -> str:
    from click.testing import CliRunner

    from driftbandits.cli.main import cli

    made = CliRunner().invoke(cli, ["keys", "create", "--role", role, "--data", str(data)])
    assert made.exit_code == 0, made.output
    return made.output.strip()


def test_without_keys_only_on_loopback(tmp_path: Path) -> None:
    from driftbandits import InputError
    from driftbandits.service.server import serve

    with pytest.raises(InputError, match=r"--host must be .*, got '0.0.0.0'"):
        serve(tmp_path, None, "0.0.0.0", 0, None, without_keys=True)


def test_two_services_in_one_folder(tmp_path: Path) -> None:
    from driftbandits import InputError
    from driftbandits.service.server import serve

    with served(tmp_path), pytest.raises(InputError, match="--data must be a folder that no other"):
        serve(tmp_path, None, "127.0.0.1", 0, None, without_keys=True)


def test_a_port_that_is_taken(service: Serving, tmp_path: Path) -> None:
    from driftbandits import InputError
    from driftbandits.service.server import serve

    with pytest.raises(InputError, match=r"--port must be a free port of 127\.0\.0\.1"):
        serve(tmp_path, None, "127.0.0.1", service.port, None, without_keys=True)
