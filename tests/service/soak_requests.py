"""Every kind of request of a soak, and how often each is made."""

import json
import socket
from typing import Any

from tests.service.soak_ledger import Known
from tests.service.soak_poisons import (
    correct_poison,
    create_poison,
    decide_poison,
    feature_poison,
    malformed,
    reward_poison,
)
from tests.service.soak_traffic import (
    ARMS,
    FEWEST,
    KINDS,
    LASTING,
    MOST,
    MOST_TO_REBUILD,
    NEW_ARMS,
    OLD,
    Client,
    Requests,
    path,
    wait_until,
)


def single(client: Client, known: Known) -> None:
    """A decision and, most of the time, its reward at once."""
    request = client.new_request(known)
    if client.rng.random() < 0.1:
        request["available"] = client.rng.sample(ARMS, 2)
    reward_or_leave(client, known, client.decide(known, request))


def reward_or_leave(client: Client, known: Known, ids: list[str]) -> None:
    for id in ids:
        if client.rng.random() < 0.8:
            client.reward(known, id, new_reward(client))
        else:
            client.open(known).append(id)


def slate(client: Client, known: Known) -> None:
    """Some places, and perhaps one more; a reward for the slate itself is refused."""
    request = {**client.new_request(known), "k": 2}
    if "features" in known.body and client.rng.random() < 0.5:
        request["arms"] = {name: client.new_features() for name in ARMS}
    ids = client.decide(known, request, "slate")
    if not ids:
        return
    if client.rng.random() < 0.3:
        ids = client.decide(known, {**request, "k": 3}, "longer slate") or ids
    wrong = {"id": request["id"], "reward": 1}
    client.insist("slate reward", "POST", path(known, "rewards"), wrong, (404,))
    reward_or_leave(client, known, ids)


def own_arms(client: Client, known: Known) -> None:
    """Decisions that bring features of arms, or none of those they know."""
    if "features" not in known.body:
        return
    request = client.new_request(known)
    names = client.rng.sample(ARMS, 2)
    request["arms"] = {name: client.rng.choice([None, client.new_features()]) for name in names}
    reward_or_leave(client, known, client.decide(known, request, "own arms"))


def set_features(client: Client, known: Known) -> None:
    """The second time, they change nothing."""
    if "features" not in known.body:
        return
    body = {"name": client.rng.choice(ARMS), "features": client.new_features()}
    with known.changing_arms:
        for _ in range(2):
            _, found = client.insist("features", "POST", path(known, "arms/features"), body)
        given = {name: each for name, each in body["features"].items() if each is not None}
        shown = {arm["name"]: arm["features"] for arm in found["arms"]}
        if shown[body["name"]] != given:
            client.ledger.complain(f"{known.name}: features {given} are shown as {shown}")


def batch(client: Client, known: Known) -> None:
    requests = [client.new_request(known) for _ in range(client.rng.randint(2, 30))]
    body = {"decisions": requests}
    status, answer = client.insist("decisions", "POST", path(known, "decisions/batch"), body)
    if status != 200:
        return
    for made in answer["decisions"]:
        client.remember(known, made)
    ids = [request["id"] for request in requests]
    given = [{"id": id, "reward": new_reward(client)} for id in ids if client.rng.random() < 0.9]
    if given:
        reward_many(client, known, given)


def reward_many(client: Client, known: Known, given: list[dict[str, Any]]) -> None:
    """Each has its own answer."""
    target = path(known, "rewards/batch")
    while given:
        status, answer = client.insist("rewards", "POST", target, {"rewards": given})
        if status != 200:
            return
        both = list(zip(given, answer["rewards"], strict=True))
        given = [one for one, told in both if told.get("error", {}).get("code") == "moving"]
        for one, told in both:
            if one not in given:
                client.note_reward(known, one["id"], one["reward"], told.get("error", told))


def late(client: Client, known: Known) -> None:
    """The rewards of decisions that were left open, in another order."""
    waiting = client.open(known)
    client.rng.shuffle(waiting)
    for id in waiting[:5]:
        client.reward(known, id, new_reward(client), "late reward")
    del waiting[:5]


def again(client: Client, known: Known) -> None:
    """The same decision, the same reward, and one that contradicts it."""
    settled = client.settled(known)
    if not settled:
        return
    id = client.rng.choice(settled[-200:])
    client.decide(known, {**client.new_request(known), "id": id}, "decision again")
    target, reward = path(known, "rewards"), known.rewards[id]
    corrected = id in known.corrections
    fine = (200, 409) if corrected else (200,)
    client.insist("reward again", "POST", target, {"id": id, "reward": reward}, fine)
    other = {"id": id, "reward": (reward + 0.5) % 1}
    client.insist("contradiction", "POST", target, other, fine if corrected else (409,))


def unknown(client: Client, known: Known) -> None:
    body = {"id": client.new_id(), "reward": 1}
    for what in ("rewards", "corrections"):
        client.insist("unknown", "POST", path(known, what), body, (404,))
    for what in ("decisions", "rewards"):
        client.insist("unknown", "POST", f"/v1/bandits/nobody/{what}", body, (400, 404, 422))


def change_arms(client: Client, known: Known) -> None:
    """One client at a time, so that it is known what the arms are in the end."""
    with known.changing_arms:
        how = client.rng.choice(["arms", "arms/retire", "arms/restore"])
        name = client.rng.choice(NEW_ARMS if how == "arms" else known.arms)
        fine = (201, 409) if how == "arms" else (200, 422)  # 422: the last one
        body: dict[str, Any] = {"name": name}
        if how == "arms" and "features" in known.body:
            body["features"] = client.new_features()
        status, _ = client.insist("arm", "POST", path(known, how), body, fine)
        if how == "arms" and name not in known.arms:  # 409: it was added without an answer
            known.arms.append(name)
        elif status == 200:
            {"arms/retire": known.retired.add, "arms/restore": known.retired.discard}[how](name)


def correct(client: Client, known: Known) -> None:
    settled = client.settled(known)
    if known.name == LASTING or len(known.decisions) > MOST_TO_REBUILD or not settled:
        return
    id, reward = client.rng.choice(settled), client.rng.choice([None, new_reward(client)])
    body = {"id": id, "reward": reward}
    status, _ = client.insist("correction", "POST", path(known, "corrections"), body)
    if status == 200:
        known.corrections[id] = reward


def correct_open(client: Client, known: Known) -> None:
    if client.open(known) and "window" not in known.body:
        body = {"id": client.open(known)[0], "reward": 1}
        client.insist("correct open", "POST", path(known, "corrections"), body, (409,))


def export(client: Client, known: Known) -> None:
    client.export(known)


def leave(client: Client, known: Known) -> None:
    """Before the answer, or in the middle of an export."""
    request = client.new_request(known)
    if client.rng.random() < 0.5:
        known.unanswered.add(request["id"])
        content = json.dumps(request).encode()
        lines = f"POST {path(known, 'decisions')} HTTP/1.1\r\nHost: localhost\r\n"
        sent, wanted = f"{lines}Content-Length: {len(content)}\r\n\r\n".encode() + content, 0
    else:
        format = client.rng.choice(["csv", "parquet"])
        sent = (
            f"GET {path(known, 'log')}?format={format} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        )
        wanted = 500
    host, port = client.rng.choice(client.urls).removeprefix("http://").split(":")
    try:
        with socket.create_connection((host, int(port)), timeout=20) as connection:
            connection.sendall(sent)
            if wanted:
                connection.recv(wanted)
        client.ledger.note("left", "left")
    except OSError:
        client.ledger.note("left", "no answer")


def look(client: Client, known: Known) -> None:
    for target in [path(known), path(known, "series"), "/v1/bandits", "/metrics", "/readyz", "/"]:
        if client.rng.random() < 0.3:
            client.insist("look", "GET", target)


def come_and_go(client: Client, known: Known) -> None:
    """A new bandit, or the end of an old one."""
    bandits = client.ledger.bandits
    kind = client.rng.choice(list(KINDS))
    name = f"{kind}-{client.number}"
    if len(bandits) < client.rng.randint(FEWEST, MOST) and name not in bandits:
        client.create(name, **KINDS[kind])
    elif known.name != LASTING and len(known.decisions) > OLD:
        delete(client, known)


def delete(client: Client, known: Known) -> None:
    """When nobody else asks it any more, its log is looked at for the last time."""
    ledger = client.ledger
    with ledger.lock:
        if known.closed:
            return
        known.closed = True
    if not wait_until(lambda: known.users == 1):
        ledger.complain(f"{known.name}: its clients do not come back")
    client.export(known, exactly=True)
    client.insist("delete", "DELETE", path(known), fine=(204, 404))
    client.insist("gone", "GET", path(known), fine=(404,))
    client.insist("gone", "GET", path(known, "log"), fine=(404,))
    ledger.forget(known)


def new_reward(client: Client) -> float:
    return client.rng.choice([0.0, 1.0, round(client.rng.random(), 6)])


REQUESTS: Requests = {
    "single": (single, 45),
    "slate": (slate, 8),
    "own arms": (own_arms, 8),
    "features": (set_features, 3),
    "batch": (batch, 12),
    "late": (late, 8),
    "again": (again, 6),
    "unknown": (unknown, 1),
    "arms": (change_arms, 2),
    "correct": (correct, 1.5),
    "correct open": (correct_open, 0.5),
    "export": (export, 1),
    "leave": (leave, 2),
    "look": (look, 2),
    "come and go": (come_and_go, 2),
    "reward poison": (reward_poison, 5),
    "decide poison": (decide_poison, 4),
    "feature poison": (feature_poison, 2),
    "correct poison": (correct_poison, 1),
    "create poison": (create_poison, 0.5),
    "malformed": (malformed, 2),
}
