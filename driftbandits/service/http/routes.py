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
    returns: str  # what a good answer means
    body: type | None = None
    example: Any = None  # a body; those of all routes work one after the other
    response: type | None = None
    or_response: type | None = None  # another good answer
    status: int = 200
    errors: tuple[int, ...] = ()
    content_type: str = "application/json"


BANDIT = "/v1/bandits/{bandit}"

ROUTES = [
    Route("POST", "/v1/bandits", "admin", "create",
          "Create a bandit. Creating it again with the same settings does no harm.",
          "The bandit was created.", body=m.NewBandit, response=m.Bandit, status=201, errors=(409,),
          example={"name": "shop", "policy": "d_lin_ucb",
                   "arms": {"red": {"price": 0.3}, "green": {"price": 0.5}}}),
    Route("GET", "/v1/bandits", "read", "bandits", "List all bandits.", "All bandits.",
          response=m.Bandits),
    Route("GET", BANDIT, "read", "bandit", "Describe a bandit.", "The bandit.",
          response=m.Bandit, errors=(404,)),
    Route("PATCH", BANDIT, "admin", "change",
          "Change ranges. This applies from now on; past decisions stay as they are.",
          "The bandit with its new settings.", body=m.BanditChanges, response=m.Bandit,
          errors=(404,), example={"out_of_range": "clip"}),
    Route("DELETE", BANDIT, "admin", "delete", "Delete a bandit and its log.",
          "The bandit was deleted.", status=204, errors=(404,)),
    Route("POST", f"{BANDIT}/arms", "admin", "add_arm", "Add an arm. It starts from the prior.",
          "The bandit with the new arm.", body=m.NewArm, response=m.Bandit, status=201,
          errors=(404, 409), example={"name": "yellow", "features": {"price": 0.4}}),
    Route("POST", f"{BANDIT}/arms/features", "admin", "set_features",
          "Replace the features of an arm. What was learned about the arm stays.",
          "The bandit.", body=m.NewFeatures, response=m.Bandit, errors=(404,),
          example={"name": "yellow", "features": {"price": 0.5}}),
    Route("POST", f"{BANDIT}/arms/retire", "admin", "retire_arm",
          "Retire an arm. It is no longer chosen, but what was learned about it stays.",
          "The bandit.", body=m.ArmName, response=m.Bandit, errors=(404,),
          example={"name": "yellow"}),
    Route("POST", f"{BANDIT}/arms/restore", "admin", "restore_arm", "Restore a retired arm.",
          "The bandit.", body=m.ArmName, response=m.Bandit, errors=(404,),
          example={"name": "yellow"}),
    Route("POST", f"{BANDIT}/decisions", "decide", "decide",
          "Choose an arm, or k arms. The same id again gives the same decision.",
          "The decision; with k, a list of decisions.", body=m.NewDecision,
          response=MadeDecision, or_response=m.MadeDecisions, errors=(404,),
          example={"id": "visit-1"}),
    Route("POST", f"{BANDIT}/decisions/batch", "decide", "decide_batch",
          "Choose many arms, one after the other. All decisions are made, or none.",
          "The decisions.", body=m.NewDecisions, response=m.MadeDecisions, errors=(404,),
          example={"decisions": [{"id": "visit-2"}, {"id": "visit-3"}]}),
    Route("POST", f"{BANDIT}/rewards", "decide", "reward",
          "Learn a reward. Sending it twice does no harm.", "The reward was learned.",
          body=m.NewReward, response=m.Learned, errors=(404, 409),
          example={"id": "visit-1", "reward": 1}),
    Route("POST", f"{BANDIT}/rewards/batch", "decide", "reward_batch",
          "Learn many rewards. Each one gets its own answer.", "What happened to each reward.",
          body=m.NewRewards, response=m.LearnedMany, errors=(404,),
          example={"rewards": [{"id": "visit-2", "reward": 0}, {"id": "visit-3", "reward": 1}]}),
    Route("POST", f"{BANDIT}/corrections", "admin", "correct",
          "Correct a reward. It can also be taken back. The learner is rebuilt from the log.",
          "The reward was corrected.", body=m.NewCorrection, response=Corrected, errors=(404, 409),
          example={"id": "visit-1", "reward": 0}),
    Route("GET", f"{BANDIT}/log", "read", "log",
          "Download the log. It has one line for each decision, with its reward.", "The file.",
          errors=(404,), content_type="text/csv"),
    Route("GET", f"{BANDIT}/series", "read", "series",
          "Get the data of the charts. It covers the newest 20,000 decisions.", "The series.",
          response=m.Series, errors=(404,)),
    Route("GET", "/metrics", "read", "metrics",
          "Get the metrics. They are those of this worker, for Prometheus.",
          "The metrics.", content_type="text/plain"),
    Route("GET", "/healthz", None, "healthy", "Check whether the process is alive.",
          "It is alive.", response=m.Health),
    Route("GET", "/readyz", None, "ready", "Check whether this worker can serve.", "It can serve.",
          response=m.Readiness, errors=(503,)),
]  # fmt: skip
QUERY_PARAMETERS: dict[str, dict[str, Any]] = {  # by handler
    "log": {"format": {"type": "string", "enum": ["csv", "parquet"], "default": "csv"}},
    "series": {"points": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 60}},
}
PARAMETER_MEANINGS = {
    "bandit": "Name of the bandit, percent-encoded.",
    "format": "Format of the file.",
    "points": "Number of spans of time.",
}
