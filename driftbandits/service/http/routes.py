"""The API in one table: routing, roles and the OpenAPI description are made from it."""

from typing import Any, NamedTuple

from driftbandits.service.engine.correcting import Corrected
from driftbandits.service.engine.made_decisions import MadeDecision
from driftbandits.service.http import messages as m


class Route(NamedTuple):
    method: str
    path: str
    role: str | None  # required of the key; None needs no key
    handler: str  # a method of Handlers
    summary: str
    body: type | None = None
    response: type | None = None
    status: int = 200
    errors: tuple[int, ...] = ()
    content_type: str = "application/json"


BANDIT = "/v1/bandits/{bandit}"

ROUTES = [
    Route("POST", "/v1/bandits", "admin", "create", "Create a bandit.",
          body=m.NewBandit, response=m.Bandit, status=201, errors=(409,)),
    Route("GET", "/v1/bandits", "read", "bandits", "List all bandits.", response=m.Bandits),
    Route("GET", BANDIT, "read", "bandit", "Describe a bandit.",
          response=m.Bandit, errors=(404,)),
    Route("PATCH", BANDIT, "admin", "change",
          "Change what becomes of rewards and context numbers out of their ranges, from now on.",
          body=m.BanditChanges, response=m.Bandit, errors=(404,)),
    Route("DELETE", BANDIT, "admin", "delete", "Delete a bandit with its log.",
          status=204, errors=(404,)),
    Route("POST", f"{BANDIT}/arms", "admin", "add_arm", "Add an arm; it starts from the prior.",
          body=m.ArmName, response=m.Bandit, status=201, errors=(404, 409)),
    Route("POST", f"{BANDIT}/arms/retire", "admin", "retire_arm",
          "Stop choosing an arm; what was learned about it is kept.",
          body=m.ArmName, response=m.Bandit, errors=(404,)),
    Route("POST", f"{BANDIT}/arms/restore", "admin", "restore_arm", "Bring back a retired arm.",
          body=m.ArmName, response=m.Bandit, errors=(404,)),
    Route("POST", f"{BANDIT}/decisions", "decide", "decide",
          "Choose an arm. The same id again gives the same decision.",
          body=m.NewDecision, response=MadeDecision, errors=(404,)),
    Route("POST", f"{BANDIT}/decisions/batch", "decide", "decide_batch",
          "Choose arms one after the other; all decisions are made, or none.",
          body=m.NewDecisions, response=m.MadeDecisions, errors=(404,)),
    Route("POST", f"{BANDIT}/rewards", "decide", "reward",
          "Learn a reward; sending it twice does no harm.",
          body=m.NewReward, response=m.Learned, errors=(404, 409)),
    Route("POST", f"{BANDIT}/rewards/batch", "decide", "reward_batch",
          "Learn rewards; each gets its own answer.",
          body=m.NewRewards, response=m.LearnedMany, errors=(404,)),
    Route("POST", f"{BANDIT}/corrections", "admin", "correct",
          "Correct a reward that was learned, or take it back; the learner is rebuilt.",
          body=m.NewCorrection, response=Corrected, errors=(404, 409)),
    Route("GET", f"{BANDIT}/log", "read", "log", "Download all decisions and rewards.",
          errors=(404,), content_type="text/csv"),
    Route("GET", f"{BANDIT}/series", "read", "series", "The data behind the charts.",
          response=dict, errors=(404,)),
    Route("GET", "/metrics", "read", "metrics", "Metrics for Prometheus.",
          content_type="text/plain"),
    Route("GET", "/healthz", None, "healthy", "Whether the process is alive.", response=dict),
    Route("GET", "/readyz", None, "ready", "Whether it can serve.",
          response=dict, errors=(503,)),
]  # fmt: skip
QUERY_PARAMETERS: dict[str, dict[str, Any]] = {  # by handler
    "log": {"format": {"type": "string", "enum": ["csv", "parquet"], "default": "csv"}},
    "series": {"points": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 60}},
}
