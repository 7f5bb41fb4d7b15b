"""Bandits as the API describes them, and whether a new one is the same as another."""

from collections.abc import Sequence
from typing import Any

from driftbandits.agents.settings import settings_of
from driftbandits.service.engine.live_bandit import LiveBandit
from driftbandits.service.http import messages as m
from driftbandits.service.store.records import BanditRow


def same_settings(
    before: dict[str, Any], config: dict[str, Any], body: m.NewBandit, but: Sequence[str] = ()
) -> bool:
    """Whether a request describes the same bandit; a seed that is not given matches any.

    Settings that did not exist yet when it was created are not compared.
    """
    free = {*but, "seed"} if body.seed is None else {*but}
    return all(before[key] == config[key] for key in (config.keys() & before.keys()) - free)


def changeable(found: m.Bandit) -> dict[str, Any]:
    """Settings that may differ from those it was created with."""
    ranges = {name: list(ends) for name, ends in found.context_ranges.items()}
    return {"out_of_range": found.out_of_range, "context_ranges": ranges}


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
        open=len(book.open),
        worker=live.row.url or "",
    )


def known_of(row: BanditRow) -> dict[str, Any]:
    """What the database alone knows; arms that were added later are missing."""
    arms = [m.Arm(name, False) for name in row.config["arms"]]
    nothing = dict.fromkeys(("decisions", "rewards", "expired", "open"))
    about = {"name": row.name, "created": row.created, "worker": row.url or ""}
    config = settings_of(row.config)._asdict() | row.config
    return {**config, **about, **nothing, "arms": arms}
