"""What must be refused, whoever sends it: numbers that would ruin a policy, and broken HTTP."""

import json
import socket
from typing import Any

from tests.service.soak_ledger import Known
from tests.service.soak_traffic import Client, path

REFUSED = tuple(status for status in range(400, 500) if status != 429)
LARGE = ["1e3", "-1e3", "1e6", "-1e6", "1e12", "-1e12"]  # numbers, but out of every range
BROKEN = [
    "3e38", "-3e38", "1e400", "NaN", "Infinity", "-Infinity", "true", "[1]", "{}", '"1"',
    "[" * 9000, "9" * 5000, '"' + "9" * 100_000 + '"', ",", "-", "0x1",
]  # fmt: skip
NAMES = ["", "x" * 201, "\x00", "\ud800", "a\nb"]
SETTINGS: list[dict[str, Any]] = [
    {"policy": "nonsense"}, {"policy": "tracker(width=-1)"}, {"policy": "x" * 100_000},
    {"policy": "recurrent(layers=20000)"},
    {"arms": []}, {"arms": ["red", "red"]}, {"window": -1}, {"window": 1e300}, {"noise": 0},
    {"max_open": 10**12}, {"reward_range": [1, 0]}, {"default_reward": 1e6}, {"seed": -1},
    {"context_ranges": {"nobody": [0, 1]}}, {"name": "a/b"}, {"name": ".."}, {"unknown": 1},
]  # fmt: skip
FEATURES: list[dict[str, Any]] = [
    {"size": 1}, {"age": "old"}, {"topic": 5}, {"age": True}, {"age": [1]}, {"topic": "x" * 201},
]  # fmt: skip
HTTP = [
    b"\x00" * 100, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"POST /v1/bandits HTTP/1.1\r\n",
    b"POST /v1/bandits HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
    b"POST /v1/bandits HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n{",
    b"POST /v1/bandits HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"GET /v1/bandits HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 100_000 + b"\r\n\r\n",
    b"GET /v1/bandits/%ff%00%2f HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /v1/bandits/\xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"BREW / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n" * 50,
]  # fmt: skip


def accepts(known: Known, number: str) -> bool:
    """Some bandits take numbers out of their range, clipped or as they are."""
    return "out_of_range" in known.body and number in LARGE


def with_number(body: dict[str, Any], number: str) -> bytes:
    """JSON with a number that no library would write."""
    return json.dumps(body).replace('"POISON"', number).encode()


def reward_poison(client: Client, known: Known) -> None:
    request, number = client.new_request(known), client.rng.choice(LARGE + BROKEN)
    if not client.decide(known, request):
        return
    fine = (*REFUSED, 200) if accepts(known, number) else REFUSED
    body = with_number({"id": request["id"], "reward": "POISON"}, number)
    target = path(known, "rewards")
    status, answer = client.insist("reward poison", "POST", target, body, fine)
    if status == 200:
        client.note_reward(known, request["id"], float(number), answer)
    else:
        client.reward(known, request["id"], 1.0)  # its decision is open as before


def decide_poison(client: Client, known: Known) -> None:
    """Alone, or one among others: then none of them is decided."""
    request, number = client.new_request(known), client.rng.choice(LARGE + BROKEN)
    if "features" in known.body:
        request["context"] = {**request.get("context", {}), "n": "POISON"}
    else:
        request["context"] = [*request.get("context", [0.0])[:-1], "POISON"]
    fine = REFUSED
    if "features" in known.body and number in LARGE:  # a number that is scaled has no range
        fine = (*REFUSED, 200)
    if accepts(known, number) and "context" in known.body:
        fine = (*REFUSED, 200)
    if client.rng.random() < 0.5:
        target, body = path(known, "decisions"), with_number(request, number)
    else:
        target = path(known, "decisions/batch")
        body = with_number({"decisions": [client.new_request(known), request]}, number)
    status, answer = client.insist("decide poison", "POST", target, body, fine)
    if status == 200:
        for made in answer.get("decisions", [answer]):
            client.remember(known, made)


def correct_poison(client: Client, known: Known) -> None:
    settled = client.settled(known)
    if settled and "out_of_range" not in known.body:
        number = client.rng.choice(LARGE + BROKEN)
        body = with_number({"id": client.rng.choice(settled), "reward": "POISON"}, number)
        client.insist("correct poison", "POST", path(known, "corrections"), body, REFUSED)


def create_poison(client: Client, known: Known) -> None:
    """Bandits, arms and ids that cannot be."""
    name = client.rng.choice(NAMES)
    body = {"name": "poison", "arms": ["red"], "context": [], **client.rng.choice(SETTINGS)}
    client.insist("create poison", "POST", "/v1/bandits", body, REFUSED)
    client.insist("name poison", "POST", path(known, "arms"), {"name": name}, REFUSED)
    client.insist("name poison", "POST", path(known, "decisions"), {"id": name}, REFUSED)


def feature_poison(client: Client, known: Known) -> None:
    """Features, arms and slates that cannot be: nothing is written."""
    if "features" not in known.body:
        return
    features, request = client.rng.choice(FEATURES), client.new_request(known)
    wrong: dict[str, Any] = client.rng.choice([
        {"arms": {"red": features}}, {"arms": {"nobody": {}}}, {"arms": {}}, {"k": 0},
        {"k": 1000}, {"k": 2, "arms": {"red": {}}},
    ])  # fmt: skip
    target = path(known, "decisions")
    client.insist("feature poison", "POST", target, {**request, **wrong}, REFUSED)
    for how, name in (("arms", "nobody"), ("arms/features", "red")):
        body = {"name": name, "features": features}
        client.insist("feature poison", "POST", path(known, how), body, REFUSED)


def malformed(client: Client, known: Known) -> None:
    """An answer is not owed; a good one is no 500."""
    sent = client.rng.choice(HTTP)
    host, port = client.rng.choice(client.urls).removeprefix("http://").split(":")
    try:
        with socket.create_connection((host, int(port)), timeout=0.5) as connection:
            connection.sendall(sent)
            answer = connection.recv(100).split(b" ")[1:2]
    except OSError:
        answer = []
    status = answer[0].decode() if answer else "no answer"
    client.ledger.note("malformed", status)
    if status.startswith("5") and status != "503":
        client.ledger.complain(f"malformed HTTP was answered {status}: {sent[:100]!r}")
