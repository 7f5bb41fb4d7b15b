"""What can be asked, in one table: the router, the roles and the OpenAPI page come from it."""

from typing import Any, NamedTuple

from driftbandits.service import messages as m


class Route(NamedTuple):
    method: str
    path: str
    role: str | None  # that a key must have; none is for everybody
    handler: str  # a method of Handlers
    summary: str
    body: type | None = None
    answer: type | None = None
    status: int = 200
    errors: tuple[int, ...] = ()
    media: str = "application/json"


ONE = "/v1/bandits/{bandit}"

ROUTES = [
    Route("POST", "/v1/bandits", "admin", "create", "Create a bandit.", m.NewBandit, m.Bandit, 201,
          (409,)),
    Route("GET", "/v1/bandits", "read", "bandits", "All bandits.", None, m.Bandits),
    Route("GET", ONE, "read", "bandit", "One bandit.", None, m.Bandit, errors=(404,)),
    Route("DELETE", ONE, "admin", "delete", "Delete a bandit with its log.", None, None, 204,
          (404,)),
    Route("POST", f"{ONE}/arms", "admin", "add_arm", "One more arm; it starts from the prior.",
          m.ArmName, m.Bandit, 201, (404, 409)),
    Route("POST", f"{ONE}/arms/retire", "admin", "retire_arm",
          "Choose an arm no more; what is known of it stays.", m.ArmName, m.Bandit, errors=(404,)),
    Route("POST", f"{ONE}/arms/restore", "admin", "restore_arm", "Bring back a retired arm.",
          m.ArmName, m.Bandit, errors=(404,)),
    Route("POST", f"{ONE}/decisions", "decide", "decide",
          "Choose an arm. The same id again gives the same decision.", m.NewDecision,
          m.MadeDecision, errors=(404,)),
    Route("POST", f"{ONE}/decisions/batch", "decide", "decide_batch",
          "Choose arms, one after the other; all of them or none.", m.NewDecisions,
          m.MadeDecisions, errors=(404,)),
    Route("POST", f"{ONE}/rewards", "decide", "reward", "Learn a reward; once is enough.",
          m.NewReward, m.Learned, errors=(404, 409)),
    Route("POST", f"{ONE}/rewards/batch", "decide", "reward_batch",
          "Learn rewards; each has its own answer.", m.NewRewards, m.LearnedMany, errors=(404,)),
    Route("GET", f"{ONE}/log", "read", "log", "All decisions and rewards as a file.",
          errors=(404,), media="text/csv"),
    Route("GET", f"{ONE}/series", "read", "series", "What the page draws.", None, dict,
          errors=(404,)),
    Route("GET", "/metrics", "read", "metrics", "For Prometheus.", media="text/plain"),
    Route("GET", "/healthz", None, "healthy", "Whether the process lives.", None, dict),
    Route("GET", "/readyz", None, "ready", "Whether it can serve.", None, dict, errors=(503,)),
]  # fmt: skip
PARAMETERS: dict[str, dict[str, Any]] = {
    "log": {"format": {"type": "string", "enum": ["csv", "parquet"], "default": "csv"}},
    "series": {"points": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 60}},
}
