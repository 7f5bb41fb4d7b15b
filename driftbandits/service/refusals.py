"""What the service answers when it will not do something: one shape, with a remedy."""

from typing import Any


class Refusal(Exception):  # noqa: N818
    """Told to the caller as `{"error": {"code", "message", "remedy"}}`."""

    def __init__(
        self, status: int, code: str, message: str, remedy: str, retry_after: int | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.remedy = status, code, message, remedy
        self.retry_after = retry_after

    def as_json(self) -> dict[str, Any]:
        return {"code": self.code, "message": self.message, "remedy": self.remedy}


class Elsewhere(Exception):  # noqa: N818
    """Another worker has this bandit."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.url = url


def bad_value(message: str) -> Refusal:
    return Refusal(422, "bad_value", message, "send a value that follows the rule")


def unknown_bandit(name: str) -> Refusal:
    remedy = "GET /v1/bandits lists them, POST /v1/bandits creates one"
    return Refusal(404, "unknown_bandit", f"there is no bandit named {name!r}", remedy)


def existing_name(kind: str, name: str) -> Refusal:
    message = f"there is {kind} named {name!r} already"
    return Refusal(409, "existing_name", message, "take another name")


def unknown_decision(id: str) -> Refusal:
    message = f"there is no decision with the id {id!r}"
    return Refusal(404, "unknown_decision", message, "send the id that the decision came with")


def contradictory_reward(id: str, before: float | None, reward: float) -> Refusal:
    message = f"decision {id!r} has had the reward {before!r}, got {reward!r}"
    return Refusal(
        409, "contradictory_reward", message, "the first reward stands; send each only once"
    )


def expired_decision(id: str) -> Refusal:
    message = f"decision {id!r} waits no more: its window has passed, or too many waited"
    remedy = "create the bandit with a longer window, or a larger max_open"
    return Refusal(409, "expired_decision", message, remedy)


def too_busy(what: str) -> Refusal:
    return Refusal(429, "too_busy", f"too many {what}", "wait for Retry-After, then try again", 1)


def no_database() -> Refusal:
    message = "the database cannot be reached; nothing was lost"
    return Refusal(503, "no_database", message, "try again with the same id", 1)


def stuck() -> Refusal:
    return Refusal(503, "stuck", "the engine gives no sign of life", "start the worker anew", 1)


def stopping() -> Refusal:
    return Refusal(503, "stopping", "the service is shutting down", "try again in a moment", 1)


def moving() -> Refusal:
    message = "the bandit is moving to another worker"
    return Refusal(503, "moving", message, "try again with the same id", 1)


def broken(name: str) -> Refusal:
    message = f"the policy of {name!r} failed; the decision was not made"
    return Refusal(500, "broken_policy", message, "see the service's log")


def not_committed() -> Refusal:
    message = "the log could not be written; what was asked for may be in it or not"
    return Refusal(500, "not_committed", message, "try again with the same id")


def first_line(error: Exception) -> str:
    """What a database says, without its SQL."""
    return str(error).partition("\n")[0]
