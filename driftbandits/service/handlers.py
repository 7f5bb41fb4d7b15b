"""What happens at each route: a request becomes a wish of the engine, its answer a message."""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from driftbandits.agents import checks
from driftbandits.service import messages as m
from driftbandits.service import refusals
from driftbandits.service.engine import Engine
from driftbandits.service.export import log_answer
from driftbandits.service.forwarding import Forwarder
from driftbandits.service.http import Answer, Request, answer
from driftbandits.service.live import LiveBandit, new_agent
from driftbandits.service.records import BanditRow
from driftbandits.service.refusals import Elsewhere, Refusal
from driftbandits.service.store import Store
from driftbandits.service.wishes import ChangeArm, Decide, Delete, Look, Reward, Wish

SLOWEST = 1.0  # seconds of a decision and its reward: all bandits of a worker wait for it


class Handlers:
    def __init__(self, store: Store, engine: Engine, forwarder: Forwarder) -> None:
        self.store, self.engine, self.forwarder = store, engine, forwarder
        self._compiling = ThreadPoolExecutor(2, "driftbandits-compiling")  # takes seconds

    def _aside(self, work: Callable[..., None], *arguments: Any) -> Awaitable[None]:
        return asyncio.get_running_loop().run_in_executor(self._compiling, work, *arguments)

    async def ask(self, request: Request, wish: Wish, then: Callable[[Any], Answer]) -> Answer:
        """Asks the bandit of the path, here or at the worker that has it."""
        name = request.bandit
        try:
            if name not in self.engine.lives:
                await self.forwarder.look_for(name)
            return then(await self.engine.submit(name, wish))
        except Elsewhere as elsewhere:
            return await self.forwarder.forward(request, elsewhere.url)

    # Bandits

    async def create(self, request: Request, body: m.NewBandit) -> Answer:
        checks.name("name", body.name)
        if body.name in (".", ".."):  # browsers drop them from a path
            raise refusals.bad_value(f"name must be another than {body.name!r}")
        config = {
            "arms": body.arms, "context": body.context, "policy": body.policy,
            "seed": secrets.randbelow(2**31) if body.seed is None else body.seed,
            "window": body.window, "default_reward": body.default_reward,
            "reward_range": list(body.reward_range), "noise": body.noise, "horizon": body.horizon,
            "max_open": body.max_open,
        }  # fmt: skip
        await self._aside(try_out, config)
        row = await asyncio.to_thread(self.store.create_bandit, body.name, config)
        status = 201
        if row is None:
            row = await asyncio.to_thread(self.store.bandit, body.name)
            if row is None or not same_wish(row.config, config, body):
                raise refusals.existing_name("a bandit", body.name)
            status = 200
        request.bandit = body.name
        given = await self.ask(request, Look(describe), lambda found: answer(status, found))
        return given._replace(status=status) if given.status in (200, 201) else given

    async def bandits(self, request: Request, body: None) -> Answer:
        rows = await asyncio.to_thread(self.store.bandits)
        found = await asyncio.gather(*(self._described(request, row) for row in rows))
        return answer(200, {"bandits": [each for each in found if each is not None]})

    async def _described(self, request: Request, row: BanditRow) -> Any:
        """None where it has gone meanwhile; without counts where nobody can tell them now."""
        try:
            if row.alive and row.owner != self.engine.worker:
                raise Elsewhere(row.url or "")
            if row.name not in self.engine.lives:  # it will be woken in its turn
                return known_of(row)
            return await self.engine.submit(row.name, Look(describe))
        except Elsewhere as elsewhere:
            there = await self.forwarder.describe(request, elsewhere.url, row.name)
            return there or known_of(row)
        except Refusal as refusal:
            return None if refusal.status == 404 else known_of(row)

    async def bandit(self, request: Request, body: None) -> Answer:
        return await self.ask(request, Look(describe), lambda found: answer(200, found))

    async def delete(self, request: Request, body: None) -> Answer:
        return await self.ask(request, Delete(), lambda _: answer(204))

    # Arms

    async def add_arm(self, request: Request, body: m.ArmName) -> Answer:
        checks.name("arm", body.name)
        live = self.engine.lives.get(request.bandit)
        if live is not None and live.must_grow_for(body.name):
            await self._aside(live.agent.prepare_to_grow)  # or all bandits would wait for it
        return await self._change(request, "arm_added", body.name, 201)

    async def retire_arm(self, request: Request, body: m.ArmName) -> Answer:
        return await self._change(request, "arm_retired", body.name, 200)

    async def restore_arm(self, request: Request, body: m.ArmName) -> Answer:
        return await self._change(request, "arm_restored", body.name, 200)

    async def _change(self, request: Request, kind: str, name: str, status: int) -> Answer:
        wish = ChangeArm(kind, name, describe)
        return await self.ask(request, wish, lambda found: answer(status, found))

    # Decisions and rewards

    async def decide(self, request: Request, body: m.NewDecision) -> Answer:
        wish = Decide(checked([body]))
        return await self.ask(request, wish, lambda made: answer(200, made[0]))

    async def decide_batch(self, request: Request, body: m.NewDecisions) -> Answer:
        wish = Decide(checked(body.decisions))
        return await self.ask(request, wish, lambda made: answer(200, m.MadeDecisions(made)))

    async def reward(self, request: Request, body: m.NewReward) -> Answer:
        def told(statuses: list[str | Refusal]) -> Answer:
            (status,) = statuses
            if isinstance(status, Refusal):
                raise status
            return answer(200, {"id": body.id, "reward": body.reward, "status": status})

        return await self.ask(request, Reward([pair(body)]), told)

    async def reward_batch(self, request: Request, body: m.NewRewards) -> Answer:
        def told(statuses: list[str | Refusal]) -> Answer:
            both = zip(body.rewards, statuses, strict=True)
            return answer(200, {"rewards": [learned(*each) for each in both]})

        return await self.ask(request, Reward([pair(each) for each in body.rewards]), told)

    # Seeing

    async def series(self, request: Request, body: None) -> Answer:
        points = whole(request.query("points", "60"))
        look = Look(lambda live: series_of(live, points))
        return await self.ask(request, look, lambda found: answer(200, found))

    async def log(self, request: Request, body: None) -> Answer:
        """From the database: whoever has the bandit, the log is the same."""
        name, kind = request.bandit, request.query("format", "csv")
        row = None
        if checks.is_name(name):
            row = await asyncio.to_thread(self.store.bandit, name)
        if row is None:
            raise refusals.unknown_bandit(name)
        return await log_answer(self.store, row, kind)

    async def metrics(self, request: Request, body: None) -> Answer:
        gauges, lives = self.engine.gauges, list(self.engine.lives.values())
        gauges.bandits.set(len(lives))
        gauges.open.set(sum(len(live.agent.waiting) for live in lives))
        return Answer(200, gauges.text(), "text/plain; version=0.0.4")

    async def healthy(self, request: Request, body: None) -> Answer:
        return answer(200, {"status": "alive"})

    async def ready(self, request: Request, body: None) -> Answer:
        try:
            await asyncio.to_thread(self.store.ping)
        except Exception:
            raise refusals.no_database() from None
        if not self.engine.is_well():
            raise refusals.stuck()
        return answer(200, {"status": "ready"})


def checked(asked: list[m.NewDecision]) -> list[m.NewDecision]:
    for each in asked:
        if each.id is not None:
            checks.name("id", each.id)
    return asked


def pair(body: m.NewReward) -> tuple[str, float]:
    """Length and size were looked at when it was decoded."""
    id = body.id if body.id.isprintable() else checks.name("id", body.id)
    return id, body.reward + 0.0  # no negative zero


def learned(body: m.NewReward, status: str | Refusal) -> dict[str, Any]:
    if isinstance(status, Refusal):
        return {"id": body.id, "error": status.as_json()}
    return {"id": body.id, "reward": body.reward, "status": status}


def whole(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= 1000:
        raise refusals.bad_value(f"points must be a whole number of 1 to 1000, got {text!r}")
    return int(text[:9])


def try_out(config: dict[str, Any]) -> None:
    """Refuses settings that no agent can have, and compiles what one with these will need."""
    agent = new_agent(config)
    agent.warm_up()
    begin = time.perf_counter()
    decision = agent.decide([0.0] * len(agent.context))
    agent.reward(decision.id, 0.0)
    if time.perf_counter() - begin > SLOWEST:
        rule = f"so few for {agent.policy} that a decision takes no more than {SLOWEST:g} seconds"
        raise refusals.bad_value(f"arms must be {rule}, got {len(agent.arms)} arms")


def same_wish(before: dict[str, Any], config: dict[str, Any], body: m.NewBandit) -> bool:
    """Whether the same bandit is asked for again; a seed that was not given may be any."""
    free = {"seed"} if body.seed is None else set()
    return all(before[key] == config[key] for key in config.keys() - free)


def describe(live: LiveBandit) -> m.Bandit:
    agent, retired = live.agent, set(live.agent.retired)
    return m.Bandit(
        name=live.row.name,
        policy=agent.policy,
        context=list(agent.context),
        arms=[m.Arm(name, name in retired) for name in agent.arms],
        seed=agent.seed,
        window=agent.window,
        default_reward=agent.default_reward,
        reward_range=agent.reward_range,
        noise=agent.noise,
        horizon=agent.horizon,
        max_open=agent.max_open,
        created=live.row.created,
        decisions=agent.decisions,
        rewards=agent.rewards,
        expired=agent.expired,
        open=len(agent.waiting),
        worker=live.row.url or "",
    )


def known_of(row: BanditRow) -> dict[str, Any]:
    """What the database alone can tell; arms that came later are not among them."""
    arms = [m.Arm(name, False) for name in row.config["arms"]]
    nothing = dict.fromkeys(("decisions", "rewards", "expired", "open"))
    about = {"name": row.name, "created": row.created, "worker": row.url or ""}
    return {**row.config, **about, **nothing, "arms": arms}


def series_of(live: LiveBandit, points: int) -> dict[str, Any]:
    agent, now, retired = live.agent, time.time(), set(live.agent.retired)
    drawn = live.monitor.series(agent.arms, points, now, len(agent.waiting))
    hidden = [name in retired for name in agent.arms]
    return {"name": live.row.name, "now": now, "retired": hidden, **drawn}
