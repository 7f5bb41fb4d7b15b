"""What happens at each route: a request becomes a command for the engine, its result a message."""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from driftbandits.agents import checks, requests
from driftbandits.agents.decision_book import DecisionBatch
from driftbandits.agents.reward_verdicts import RewardStatus
from driftbandits.agents.settings import settings_of
from driftbandits.logs.replay import new_book
from driftbandits.service import errors
from driftbandits.service.engine.commands import (
    ChangeArm,
    Command,
    Correct,
    Decide,
    Delete,
    Inspect,
    Reward,
)
from driftbandits.service.engine.engine import Engine
from driftbandits.service.engine.live_bandit import LiveBandit
from driftbandits.service.errors import ApiError, OwnedElsewhere
from driftbandits.service.http import messages as m
from driftbandits.service.http.export import Exports
from driftbandits.service.http.forwarding import Forwarder
from driftbandits.service.http.protocol import Request, Response, json_response
from driftbandits.service.http.readiness import Readiness
from driftbandits.service.store.records import BanditRow
from driftbandits.service.store.store import Store

SLOWEST = 1.0  # seconds of a decision and its reward: all bandits of a worker wait for it


class Handlers:
    def __init__(self, store: Store, engine: Engine, forwarder: Forwarder) -> None:
        self.store, self.engine, self.forwarder = store, engine, forwarder
        self._exports, self._readiness = Exports(store), Readiness(store)
        self._compiling = ThreadPoolExecutor(2, "driftbandits-compiling")  # takes seconds

    def _compile(self, work: Callable[..., None], *arguments: Any) -> Awaitable[None]:
        return asyncio.get_running_loop().run_in_executor(self._compiling, work, *arguments)

    async def ask(
        self, request: Request, command: Command, then: Callable[[Any], Response]
    ) -> Response:
        """Asks the bandit of the path, here or at the worker that has it."""
        name = request.bandit
        try:
            if name not in self.engine.live_bandits:
                await self.forwarder.look_for(name)
            return then(await self.engine.submit(name, command))
        except OwnedElsewhere as elsewhere:
            return await self.forwarder.forward(request, elsewhere.url)

    # Bandits

    async def create(self, request: Request, body: m.NewBandit) -> Response:
        checks.name("name", body.name)
        if body.name in (".", ".."):  # browsers drop them from a path
            raise errors.bad_value(f"name must be another than {body.name!r}")
        config = {
            "arms": body.arms, "context": body.context, "policy": body.policy,
            "seed": secrets.randbelow(2**31) if body.seed is None else body.seed,
            "window": body.window, "default_reward": body.default_reward,
            "reward_range": list(body.reward_range),
            "context_ranges": {name: list(ends) for name, ends in body.context_ranges.items()},
            "out_of_range": body.out_of_range, "noise": body.noise, "horizon": body.horizon,
            "max_open": body.max_open,
        }  # fmt: skip
        await self._compile(try_out, config)
        row = await asyncio.to_thread(self.store.create_bandit, body.name, config)
        status = 201
        if row is None:
            row = await asyncio.to_thread(self.store.bandit, body.name)
            if row is None or not same_settings(row.config, config, body):
                raise errors.existing_name("a bandit", body.name)
            status = 200
        request.bandit = body.name
        given = await self.ask(
            request, Inspect(describe), lambda found: json_response(status, found)
        )
        return given._replace(status=status) if given.status in (200, 201) else given

    async def bandits(self, request: Request, body: None) -> Response:
        rows = await asyncio.to_thread(self.store.bandits)
        found = await asyncio.gather(*(self._described(request, row) for row in rows))
        return json_response(200, {"bandits": [each for each in found if each is not None]})

    async def _described(self, request: Request, row: BanditRow) -> Any:
        """None where it has gone meanwhile; without counts where nobody can tell them now."""
        try:
            if row.alive and row.owner != self.engine.worker:
                raise OwnedElsewhere(row.url or "")
            if row.name not in self.engine.live_bandits:  # it will be adopted in its turn
                return known_of(row)
            return await self.engine.submit(row.name, Inspect(describe))
        except OwnedElsewhere as elsewhere:
            there = await self.forwarder.describe(request, elsewhere.url, row.name)
            return there or known_of(row)
        except ApiError as refusal:
            return None if refusal.status == 404 else known_of(row)

    async def bandit(self, request: Request, body: None) -> Response:
        return await self.ask(request, Inspect(describe), lambda found: json_response(200, found))

    async def delete(self, request: Request, body: None) -> Response:
        return await self.ask(request, Delete(), lambda _: json_response(204))

    # Arms

    async def add_arm(self, request: Request, body: m.ArmName) -> Response:
        checks.name("arm", body.name)
        live = self.engine.live_bandits.get(request.bandit)
        if live is not None and live.must_grow_for(body.name):
            await self._compile(live.book.prepare_to_grow)  # or all bandits would wait for it
        return await self._change(request, "arm_added", body.name, 201)

    async def retire_arm(self, request: Request, body: m.ArmName) -> Response:
        return await self._change(request, "arm_retired", body.name, 200)

    async def restore_arm(self, request: Request, body: m.ArmName) -> Response:
        return await self._change(request, "arm_restored", body.name, 200)

    async def _change(self, request: Request, kind: str, name: str, status: int) -> Response:
        command = ChangeArm(kind, name, describe)
        return await self.ask(request, command, lambda found: json_response(status, found))

    # Decisions and rewards

    async def decide(self, request: Request, body: m.NewDecision) -> Response:
        command = Decide(checked([body]))
        return await self.ask(request, command, lambda made: json_response(200, made[0]))

    async def decide_batch(self, request: Request, body: m.NewDecisions) -> Response:
        command = Decide(checked(body.decisions))
        return await self.ask(
            request, command, lambda made: json_response(200, m.MadeDecisions(made))
        )

    async def reward(self, request: Request, body: m.NewReward) -> Response:
        def answered(statuses: list[RewardStatus | ApiError]) -> Response:
            (status,) = statuses
            if isinstance(status, ApiError):
                raise status
            return json_response(200, {"id": body.id, "reward": body.reward, "status": status})

        return await self.ask(request, Reward([pair(body)]), answered)

    async def reward_batch(self, request: Request, body: m.NewRewards) -> Response:
        def answered(statuses: list[RewardStatus | ApiError]) -> Response:
            both = zip(body.rewards, statuses, strict=True)
            return json_response(200, {"rewards": [learned(*each) for each in both]})

        return await self.ask(request, Reward([pair(each) for each in body.rewards]), answered)

    async def correct(self, request: Request, body: m.NewCorrection) -> Response:
        command = Correct(checks.name("id", body.id), body.reward)
        return await self.ask(request, command, lambda found: json_response(200, found))

    # Seeing

    async def series(self, request: Request, body: None) -> Response:
        points = points_of(request.query("points", "60"))
        command = Inspect(lambda live: series_of(live, points))
        return await self.ask(request, command, lambda found: json_response(200, found))

    async def log(self, request: Request, body: None) -> Response:
        """From the database: whoever has the bandit, the log is the same."""
        name, kind = request.bandit, request.query("format", "csv")
        row = None
        if checks.is_name(name):
            row = await asyncio.to_thread(self.store.bandit, name)
        if row is None:
            raise errors.unknown_bandit(name)
        return self._exports.start(row, kind)

    async def metrics(self, request: Request, body: None) -> Response:
        metrics, live = self.engine.metrics, list(self.engine.live_bandits.values())
        metrics.bandits.set(len(live))
        metrics.open.set(sum(len(bandit.book.open.waiting) for bandit in live))
        return Response(200, metrics.text(), "text/plain; version=0.0.4")

    async def healthy(self, request: Request, body: None) -> Response:
        return json_response(200, {"status": "alive"})

    async def ready(self, request: Request, body: None) -> Response:
        await self._readiness.check()
        if not self.engine.is_well():
            raise errors.stuck()
        return json_response(200, {"status": "ready"})


def checked(given: list[m.NewDecision]) -> list[m.NewDecision]:
    for each in given:
        if each.id is not None:
            checks.name("id", each.id)
    return given


def pair(body: m.NewReward) -> tuple[str, float]:
    """Length and size were looked at when it was decoded."""
    id = body.id if body.id.isprintable() else checks.name("id", body.id)
    return id, body.reward + 0.0  # no negative zero


def learned(body: m.NewReward, status: RewardStatus | ApiError) -> dict[str, Any]:
    if isinstance(status, ApiError):
        return {"id": body.id, "error": status.as_json()}
    return {"id": body.id, "reward": body.reward, "status": status}


def points_of(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= 1000:
        raise errors.bad_value(f"points must be a whole number of 1 to 1000, got {text!r}")
    return int(text[:9])


def try_out(config: dict[str, Any]) -> None:
    """Refuses settings that no bandit can have, and compiles what one with these will need."""
    book, batch = new_book(config, remember=0), DecisionBatch({}, {})
    book.learner.warm_up()
    begin = time.perf_counter()
    book.admit(batch, ["trial"], [requests.Request(context=[0.0] * len(book.settings.context))])
    book.decide(batch.new)
    book.settle(["trial"], [book.ranges.low])
    if time.perf_counter() - begin > SLOWEST:
        policy = book.settings.policy
        rule = f"so few for {policy} that a decision takes no more than {SLOWEST:g} seconds"
        raise errors.bad_value(f"arms must be {rule}, got {len(book.arms.names)} arms")


def same_settings(before: dict[str, Any], config: dict[str, Any], body: m.NewBandit) -> bool:
    """Whether the same bandit is asked for again; a seed that was not given may be any.

    Settings that did not exist yet when it was created are not compared.
    """
    free = {"seed"} if body.seed is None else set()
    return all(before[key] == config[key] for key in (config.keys() & before.keys()) - free)


def describe(live: LiveBandit) -> m.Bandit:
    book, settings, counts = live.book, live.book.settings, live.book.counts
    retired = set(book.arms.retired)
    return m.Bandit(
        name=live.row.name,
        policy=settings.policy,
        context=list(settings.context),
        arms=[m.Arm(name, name in retired) for name in book.arms.names],
        seed=settings.seed,
        window=settings.window,
        default_reward=settings.default_reward,
        reward_range=settings.reward_range,
        context_ranges=dict(settings.context_ranges),
        out_of_range=settings.out_of_range,
        noise=settings.noise,
        horizon=settings.horizon,
        max_open=settings.max_open,
        created=live.row.created,
        decisions=counts.decisions,
        rewards=counts.rewards,
        expired=counts.expired,
        open=len(book.open.waiting),
        worker=live.row.url or "",
    )


def known_of(row: BanditRow) -> dict[str, Any]:
    """What the database alone can tell; arms that came later are not among them."""
    arms = [m.Arm(name, False) for name in row.config["arms"]]
    nothing = dict.fromkeys(("decisions", "rewards", "expired", "open"))
    about = {"name": row.name, "created": row.created, "worker": row.url or ""}
    config = settings_of(row.config)._asdict() | row.config
    return {**config, **about, **nothing, "arms": arms}


def series_of(live: LiveBandit, points: int) -> dict[str, Any]:
    book, now, retired = live.book, time.time(), set(live.book.arms.retired)
    series = live.monitor.series(book.arms.names, points, now, len(book.open.waiting))
    hidden = [name in retired for name in book.arms.names]
    return {"name": live.row.name, "now": now, "retired": hidden, **series}
