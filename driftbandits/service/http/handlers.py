"""What happens at each route: a request becomes a command for the engine, its result a message."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec

from driftbandits.agents import checks
from driftbandits.agents.reward_verdicts import RewardStatus
from driftbandits.agents.settings import CHANGEABLE
from driftbandits.service import errors
from driftbandits.service.engine.commands import (
    ChangeArm,
    ChangeSettings,
    Command,
    Correct,
    Decide,
    Delete,
    Inspect,
    MustGrow,
    Reward,
)
from driftbandits.service.engine.engine import Engine
from driftbandits.service.engine.live_bandit import LiveBandit
from driftbandits.service.errors import ApiError, OwnedElsewhere
from driftbandits.service.http import messages as m
from driftbandits.service.http.descriptions import (
    changeable,
    comparable,
    describe,
    known_of,
    normal_schemas,
    same_settings,
)
from driftbandits.service.http.export import Exports
from driftbandits.service.http.forwarding import Forwarder
from driftbandits.service.http.inputs import checked, features_of, pair, points_of
from driftbandits.service.http.loading import wait_until_loaded
from driftbandits.service.http.protocol import Request, Response, json_response
from driftbandits.service.http.readiness import Readiness
from driftbandits.service.http.targets import HALTED, WORKING
from driftbandits.service.http.trial import try_out
from driftbandits.service.store.records import BanditRow
from driftbandits.service.store.store import Store

MOST_NUMBERS = 100_000  # arms times points of a series

Statuses = list[RewardStatus | ApiError]  # by a name, as making it takes 2 us


class Handlers:
    def __init__(self, store: Store, engine: Engine, forwarder: Forwarder) -> None:
        self.store, self.engine, self.forwarder = store, engine, forwarder
        self._exports, self._readiness = Exports(store), Readiness(store)
        self._compiling = ThreadPoolExecutor(2, "driftbandits-compiling")  # takes seconds

    def _compile(self, work: Callable[..., None], *arguments: Any) -> Awaitable[None]:
        return asyncio.get_running_loop().run_in_executor(self._compiling, work, *arguments)

    def stop(self) -> None:
        """Stops the threads; compiling cannot be interrupted and continues."""
        self._compiling.shutdown(wait=False, cancel_futures=True)
        self._exports.stop()

    async def ask(
        self,
        request: Request,
        command: Command,
        then: Callable[[Any], Response | Awaitable[Response]],
    ) -> Response:
        """Asks the bandit of the path, here or at the worker that owns it."""
        name = request.bandit
        try:
            if name not in self.engine.live_bandits:
                await self.forwarder.look_for(name)
                await wait_until_loaded(self.engine, name, command)
            made = then(await self.engine.submit(name, command))
            return made if isinstance(made, Response) else await made
        except OwnedElsewhere as elsewhere:
            return await self.forwarder.forward(request, elsewhere.url)

    # Bandits

    async def create(self, request: Request, body: m.NewBandit) -> Response:
        checks.name("name", body.name)
        if body.name in (".", ".."):  # browsers drop them from a path
            raise errors.bad_value(f"name must be another than {body.name!r}")
        config = {
            "arms": body.arms, "context": body.context, "features": features_of(body),
            "policy": body.policy,
            "seed": secrets.randbelow(2**31) if body.seed is None else body.seed,
            "window": body.window, "default_reward": body.default_reward,
            "reward_range": list(body.reward_range),
            "context_ranges": {name: list(ends) for name, ends in body.context_ranges.items()},
            "out_of_range": body.out_of_range, "noise": body.noise, "horizon": body.horizon,
            "max_open": body.max_open,
        }  # fmt: skip
        await self._compile(try_out, config)
        config |= await asyncio.to_thread(normal_schemas, config)  # a long one takes long
        row = await asyncio.to_thread(self.store.create_bandit, body.name, config)
        status = 201
        before = asked = await asyncio.to_thread(comparable, config)
        if row is None:
            row = await asyncio.to_thread(self.store.bandit, body.name)
            before = await asyncio.to_thread(comparable, row.config) if row else {}
            if row is None or not same_settings(before, asked, body, but=CHANGEABLE):
                raise errors.existing_name("a bandit", body.name)
            status = 200
        request.bandit = body.name

        def described(found: m.Bandit) -> Response:
            both = before, before | changeable(found)
            if not any(same_settings(settings, asked, body) for settings in both):
                raise errors.existing_name("a bandit", body.name)
            return json_response(status, found)

        given = await self.ask(request, Inspect(describe), described)
        return given._replace(status=status) if given.status in (200, 201) else given

    async def bandits(self, request: Request, body: None) -> Response:
        rows = await asyncio.to_thread(self.store.bandits)
        others = {row.url or "" for row in rows if row.alive and row.owner != self.engine.worker}
        lists = await asyncio.gather(*(self.forwarder.describe_all(request, url) for url in others))
        there = dict(zip(others, lists, strict=True))
        found = await asyncio.gather(*(self._described(there, row) for row in rows))
        return json_response(200, {"bandits": await asyncio.to_thread(all_described, found)})

    async def _described(self, there: dict[str, dict[str, Any]], row: BanditRow) -> Any:
        """Describes a bandit; None if it was deleted, its row if only the database knows it."""
        if row.alive and row.owner != self.engine.worker:
            return there[row.url or ""].get(row.name) or row
        if row.name not in self.engine.live_bandits:  # it will be adopted in its turn
            return row
        try:
            return await self.engine.submit(row.name, Inspect(describe))
        except OwnedElsewhere:
            return row
        except ApiError as refusal:
            return None if refusal.status == 404 else row

    async def bandit(self, request: Request, body: None) -> Response:
        return await self.ask(request, Inspect(describe), lambda found: json_response(200, found))

    async def change(self, request: Request, body: m.BanditChanges) -> Response:
        changes = msgspec.to_builtins(body)
        if not changes:
            rule = f"a change must have at least one of {', '.join(CHANGEABLE)}"
            raise errors.bad_value(f"{rule}, got none")
        command = ChangeSettings(changes, describe)
        return await self.ask(request, command, lambda found: json_response(200, found))

    async def delete(self, request: Request, body: None) -> Response:
        return await self.ask(request, Delete(), lambda _: json_response(204))

    # Arms

    async def add_arm(self, request: Request, body: m.NewArm) -> Response:
        checks.name("arm", body.name)
        command = ChangeArm("arm_added", body.name, describe, features=body.features)
        while True:
            try:
                return await self._change(request, command, 201)
            except MustGrow as growth:
                await self._compile(try_out, growth.config)  # or all bandits would wait for it
                command = command._replace(prepared=len(growth.config["arms"]))

    async def set_features(self, request: Request, body: m.NewFeatures) -> Response:
        command = ChangeArm("features_set", body.name, describe, features=body.features)
        return await self._change(request, command, 200)

    async def retire_arm(self, request: Request, body: m.ArmName) -> Response:
        return await self._change(request, ChangeArm("arm_retired", body.name, describe), 200)

    async def restore_arm(self, request: Request, body: m.ArmName) -> Response:
        return await self._change(request, ChangeArm("arm_restored", body.name, describe), 200)

    async def _change(self, request: Request, command: ChangeArm, status: int) -> Response:
        return await self.ask(request, command, lambda found: json_response(status, found))

    # Decisions and rewards

    # Without `async`, as these are called all the time and another coroutine would do nothing.

    def decide(self, request: Request, body: m.NewDecision) -> Awaitable[Response]:
        command = Decide(checked([body]))
        if body.k is not None:
            return self.ask(
                request, command, lambda made: json_response(200, m.MadeDecisions(made))
            )
        return self.ask(request, command, lambda made: json_response(200, made[0]))

    async def decide_batch(self, request: Request, body: m.NewDecisions) -> Response:
        command = Decide(checked(body.decisions))
        return await self.ask(
            request, command, lambda made: json_response(200, m.MadeDecisions(made))
        )

    def reward(self, request: Request, body: m.NewReward) -> Awaitable[Response]:
        def answered(statuses: Statuses) -> Response:
            (status,) = statuses
            if isinstance(status, ApiError):
                raise status
            return json_response(200, {"id": body.id, "reward": body.reward, "status": status})

        return self.ask(request, Reward([pair(body)]), answered)

    async def reward_batch(self, request: Request, body: m.NewRewards) -> Response:
        def answered(statuses: Statuses) -> Response:
            both = zip(body.rewards, statuses, strict=True)
            return json_response(200, {"rewards": [learned(*each) for each in both]})

        return await self.ask(request, Reward([pair(each) for each in body.rewards]), answered)

    async def correct(self, request: Request, body: m.NewCorrection) -> Response:
        command = Correct(checks.name("id", body.id), body.reward)
        return await self.ask(request, command, lambda found: json_response(200, found))

    # Seeing

    async def series(self, request: Request, body: None) -> Response:
        """Returns the series, copied on the engine's thread and computed on another."""
        points = points_of(request.query("points", "60"))
        command = Inspect(lambda live: series_later(live, points, self.engine.clock.now()))
        return await self.ask(request, command, asyncio.to_thread)

    async def log(self, request: Request, body: None) -> Response:
        """Returns the log from the database, whichever worker owns the bandit."""
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
        metrics.open.set(sum(len(bandit.book.open) for bandit in live))
        return Response(200, metrics.text(), "text/plain; version=0.0.4")

    async def healthy(self, request: Request, body: None) -> Response:
        """Returns 200 in any case; other workers look at the state of the engine."""
        engine = WORKING if self.engine.is_moving() else HALTED
        return json_response(200, {"status": "alive", "engine": engine})

    async def ready(self, request: Request, body: None) -> Response:
        await self._readiness.check()
        if not self.engine.is_moving():
            raise errors.stuck()
        return json_response(200, {"status": "ready"})


def all_described(found: list[Any]) -> list[Any]:
    """On a thread of its own, as reading many schemas takes long."""
    return [
        known_of(each) if isinstance(each, BanditRow) else each
        for each in found
        if each is not None
    ]


def learned(body: m.NewReward, status: RewardStatus | ApiError) -> dict[str, Any]:
    if isinstance(status, ApiError):
        return {"id": body.id, "error": status.as_json()}
    return {"id": body.id, "reward": body.reward, "status": status}


def series_later(live: LiveBandit, points: int, now: float) -> Callable[[], Response]:
    """Returns a function that computes the series of this moment, on any thread."""
    names, retired = list(live.book.arms.names), set(live.book.arms.retired)
    if points * len(names) > MOST_NUMBERS:
        most = MOST_NUMBERS // len(names)
        rule = f"points must be at most {most} with {len(names)} arms, got {points}"
        raise errors.bad_value(rule)
    monitor, still_open = live.monitor.copy(), len(live.book.open)

    def compute() -> Response:
        about = {"name": live.row.name, "now": now, "retired": [n in retired for n in names]}
        return json_response(200, {**about, **monitor.series(names, points, now, still_open)})

    return compute
