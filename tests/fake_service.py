"""A service in memory that follows the contract, or answers as told."""

import json
from typing import Any

import httpx

BANDIT = {
    "name": "shop", "policy": "tracker", "context": ["age"], "seed": 1, "window": 86400.0,
    "arms": [{"name": "red", "retired": False}, {"name": "green", "retired": True}],
    "default_reward": None, "reward_range": [0, 1], "horizon": None, "created": 5.0,
    "decisions": 4, "rewards": 3, "expired": 0, "open": 1, "worker": "http://a:1", "newer": "field",
}  # fmt: skip


class FakeService:
    """Answers as told, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, Any]] = []
        self.headers: list[httpx.Headers] = []
        self.answers: list[httpx.Response | Exception] = []  # to give first

    def __call__(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content) if request.content else None
        path = request.url.raw_path.decode()
        self.asked.append((request.method, path, body))
        self.headers.append(request.headers)
        answer = self.answers.pop(0) if self.answers else self.usual(request.method, path, body)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def usual(self, method: str, path: str, body: Any) -> httpx.Response:
        if path.endswith("/decisions"):
            answer = decided(body)
        elif path.endswith("/decisions/batch"):
            answer = {"decisions": [decided(one) for one in body["decisions"]]}
        elif path.endswith("/rewards"):
            answer = rewarded(body)
        elif path.endswith("/rewards/batch"):
            answer = {"rewards": [rewarded(one) for one in body["rewards"]]}
        else:
            answer = {"bandits": [BANDIT]} if (method, path) == ("GET", "/v1/bandits") else BANDIT
        return httpx.Response(204) if method == "DELETE" else httpx.Response(200, json=answer)


def decided(body: dict[str, Any]) -> dict[str, Any]:
    probabilities = {"red": 0.25, "green": 0.75}
    return {"id": body["id"], "arm": "red", "probability": 0.25, "probabilities": probabilities}


def rewarded(body: dict[str, Any]) -> dict[str, Any]:
    if body["id"] == "unknown":
        return {"id": "unknown", "error": error("unknown_decision", "id must be known")}
    return body | {"status": "learned"}


def error(code: str, message: str) -> dict[str, str]:
    return {"code": code, "message": message, "remedy": "choose another"}


def refused(status: int, code: str = "some_code", **headers: str) -> httpx.Response:
    body = {"error": error(code, "name must be new, got 'shop'")}
    return httpx.Response(status, json=body, headers=headers)
