"""Every error that the service returns, one function per code.

They all have one shape over HTTP: `{"error": {"code", "message", "remedy"}}`.
"""

from typing import Any

from driftbandits import check


class ApiError(Exception):
    """An error that is returned to the caller, with a remedy."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        remedy: str,
        retry_after: int | None = None,
        headers: tuple[tuple[str, str], ...] = (),
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.remedy = status, code, message, remedy
        self.retry_after, self.headers = retry_after, headers  # in seconds; others than it

    def as_json(self) -> dict[str, Any]:
        return {"code": self.code, "message": self.message, "remedy": self.remedy}


class OwnedElsewhere(Exception):  # noqa: N818  # not an error: the request is forwarded
    """Another worker owns this bandit."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.url = url


WITH_KEY = (("www-authenticate", 'Bearer realm="driftbandits"'),)  # HTTP wants it with every 401


# HTTP


def bad_http(reason: str) -> ApiError:
    return ApiError(400, "bad_http", f"this is not HTTP: {reason}", "send HTTP/1.1 requests")


def bad_json(reason: str) -> ApiError:
    message = f"the body is not valid JSON: {reason}"
    return ApiError(400, "bad_json", message, "send one JSON object, as described at /docs")


def no_such_path(method: str, path: str) -> ApiError:
    message = f"{method} {check.shortened(path)} does not exist"
    return ApiError(404, "no_such_path", message, "see /docs for all paths")


def wrong_method(method: str, path: str, allowed: tuple[str, ...]) -> ApiError:
    message, allow = f"{check.shortened(path)} does not support {method}", ", ".join(allowed)
    remedy = f"it supports {allow}; see /docs"
    return ApiError(405, "wrong_method", message, remedy, headers=(("allow", allow),))


def too_slow(seconds: float) -> ApiError:
    message = f"the body did not arrive within {seconds:g} seconds"
    return ApiError(408, "too_slow", message, "send it faster")


def too_large(limit: int) -> ApiError:
    message = f"the body must have at most {limit} bytes"
    return ApiError(413, "too_large", message, "send smaller batches")


def head_too_large(limit: int) -> ApiError:
    message = f"the request line and headers must have at most {limit} bytes"
    return ApiError(431, "head_too_large", message, "send fewer or shorter headers")


def too_busy(reason: str) -> ApiError:
    return ApiError(429, "too_busy", reason, "retry after the seconds given in Retry-After", 1)


def too_many_exports(limit: int) -> ApiError:
    message = f"this worker sends at most {limit} logs at a time"
    remedy = "retry after the seconds given in Retry-After"
    return ApiError(429, "too_many_exports", message, remedy, 10)


def no_answer_in_time() -> ApiError:
    message = "there was no answer in time; the request may or may not have been recorded"
    return ApiError(504, "no_answer_in_time", message, "retry with the same id", 1)


def internal() -> ApiError:
    message = "the service failed; the request may or may not have been recorded"
    return ApiError(500, "internal", message, "see the service's log, and retry with the same id")


# Keys


def no_key() -> ApiError:
    remedy = "send the header `Authorization: Bearer KEY`; create keys with `driftbandits keys`"
    return ApiError(401, "no_key", "this service requires a key", remedy, headers=WITH_KEY)


def bad_header() -> ApiError:
    message = "the Authorization header is malformed"
    remedy = "write it as `Authorization: Bearer KEY`"
    return ApiError(401, "bad_header", message, remedy, headers=WITH_KEY)


def unknown_key() -> ApiError:
    message = "this key is unknown or was revoked"
    remedy = "`driftbandits keys list` shows the valid keys"
    return ApiError(401, "unknown_key", message, remedy, headers=WITH_KEY)


def wrong_role(role: str, wanted: str) -> ApiError:
    message = f"this requires a key with the role {wanted!r}; this one has {role!r}"
    return ApiError(403, "wrong_role", message, f"`driftbandits keys create --role {wanted}`")


def foreign_host(host: str | None, allowed: tuple[str, ...]) -> ApiError:
    rule = f"the Host header must be one of {', '.join(allowed)}, got {check.shown(host)}"
    message = f"without keys, {rule}"
    return ApiError(403, "foreign_host", message, "use a loopback address")


def foreign_origin(origin: str) -> ApiError:
    message = f"without keys, pages from {check.shown(origin)} are not allowed"
    return ApiError(403, "foreign_origin", message, "use keys for pages of your own")


# Bandits, decisions and rewards


def bad_value(message: str) -> ApiError:
    return ApiError(422, "bad_value", message, "send a value that follows the rule")


def unknown_bandit(name: str) -> ApiError:
    remedy = "GET /v1/bandits lists all bandits, POST /v1/bandits creates one"
    return ApiError(404, "unknown_bandit", f"there is no bandit named {check.shown(name)}", remedy)


def existing_name(kind: str, name: str) -> ApiError:
    message = f"there is already {kind} named {name!r}"
    return ApiError(409, "existing_name", message, "choose another name")


def unknown_decision(message: str) -> ApiError:
    return ApiError(404, "unknown_decision", message, "send the id returned with the decision")


def contradictory_reward(message: str) -> ApiError:
    remedy = "the first reward stands; send one reward per decision"
    return ApiError(409, "contradictory_reward", message, remedy)


def expired_decision(message: str) -> ApiError:
    remedy = "create the bandit with a longer window or a larger max_open"
    return ApiError(409, "expired_decision", message, remedy)


def open_decision(id: str) -> ApiError:
    message = f"decision {id!r} is open: there is no reward to correct"
    return ApiError(409, "open_decision", message, "send its reward, to /rewards")


def broken_policy(name: str) -> ApiError:
    message = f"the policy of {name!r} failed; no decision was made"
    return ApiError(500, "broken_policy", message, "see the service's log")


# The worker and its database


def no_database() -> ApiError:
    message = "the database cannot be reached; nothing was lost"
    return ApiError(503, "no_database", message, "retry with the same id", 1)


def unhealthy_database(problem: str, remedy: str) -> ApiError:
    return ApiError(503, "unhealthy_database", f"the database {problem}", remedy, 1)


def not_committed() -> ApiError:
    message = "writing to the log failed; the request may or may not have been recorded"
    return ApiError(500, "not_committed", message, "retry with the same id")


def moving() -> ApiError:
    message = "the bandit is moving to another worker"
    return ApiError(503, "moving", message, "retry with the same id", 1)


def stuck() -> ApiError:
    return ApiError(503, "stuck", "the engine does not respond", "restart the worker", 1)


def stopping() -> ApiError:
    return ApiError(503, "stopping", "the service is shutting down", "retry in a moment", 1)
