"""Bandits as the API describes them, and whether a new one is the same as another."""

from collections.abc import Mapping, Sequence
from typing import Any

from driftbandits.agents.old_policies import as_it_was
from driftbandits.agents.ranges import ranges_of
from driftbandits.agents.setting_checks import checked_settings
from driftbandits.agents.settings import AgentSettings, Columns, settings_of
from driftbandits.agents.vectors import checked_columns, vectors_of
from driftbandits.check import InputError
from driftbandits.logs.replay import arms_of_config
from driftbandits.service.engine.live_bandit import LiveBandit
from driftbandits.service.http import messages as m
from driftbandits.service.store.records import BanditRow

UNKNOWN = dict.fromkeys(("decisions", "rewards", "expired", "open"))


def same_settings(
    before: dict[str, Any], asked: dict[str, Any], body: m.NewBandit, but: Sequence[str] = ()
) -> bool:
    """Whether a request describes the same bandit; a seed that is not given matches any.

    Both are `comparable`. Settings that did not exist yet when it was created are not compared.
    """
    free = {*but, "seed"} if body.seed is None else {*but}
    if as_it_was(asked["policy"]) == before.get("policy"):  # it was created before that changed
        free.add("policy")
    return all(before[key] == asked[key] for key in (asked.keys() & before.keys()) - free)


def comparable(config: dict[str, Any]) -> dict[str, Any]:
    """The settings in a form that is equal for equal bandits, however they were written."""
    settings, arms = settings_and_arms(config)
    columns = {kind: in_order(getattr(settings, kind)) for kind in ("context", "features")}
    found = {**settings._asdict(), **columns, "arms": arms}
    return {key: found[key] for key in config.keys() & found.keys()}


def in_order(columns: Columns) -> list[Any]:
    """Columns in another order are others, which a comparison of mappings would not see."""
    return list(columns.items()) if isinstance(columns, Mapping) else list(columns)


def changeable(found: m.Bandit) -> dict[str, Any]:
    """Settings that may differ from those it was created with."""
    return {"out_of_range": found.out_of_range, "context_ranges": found.context_ranges}


def normal_schemas(config: dict[str, Any]) -> dict[str, Any]:
    """The schemas of a new bandit, as it will show them."""
    return {kind: plain(checked_columns(kind, config[kind])) for kind in ("context", "features")}


def settings_and_arms(config: dict[str, Any]) -> tuple[AgentSettings, list[m.Arm]]:
    """What a bandit was created with, as it shows it."""
    settings = settings_of(config)
    try:
        checked = checked_settings(settings)
        return checked, arms_of(arms_of_config(config), checked)
    except InputError:  # it breaks a newer rule, and must not keep others from being listed
        return settings, [m.Arm(name, False) for name in config["arms"]]


def arms_of(given: Any, settings: AgentSettings) -> list[m.Arm]:
    vectors = vectors_of("features", settings.features, ranges_of(settings)[1])
    if not vectors.width or not isinstance(given, Mapping):
        return [m.Arm(name, False) for name in given]
    return [
        m.Arm(name, False, None if each is None else vectors.to_json(vectors.check(each)))
        for name, each in given.items()
    ]


def describe(live: LiveBandit) -> m.Bandit:
    book, counts = live.book, live.book.counts
    retired = set(book.arms.retired)
    arms = [m.Arm(name, name in retired, book.features_json(name)) for name in book.arms.names]
    return described(live.row, book.settings, arms, {**counts._asdict(), "open": len(book.open)})


def known_of(row: BanditRow) -> m.Bandit:
    """What the database alone knows; later changes of arms and settings are missing."""
    return described(row, *settings_and_arms(row.config), UNKNOWN)


def described(
    row: BanditRow, settings: AgentSettings, arms: list[m.Arm], counts: Mapping[str, Any]
) -> m.Bandit:
    return m.Bandit(
        name=row.name,
        policy=settings.policy,
        context=plain(settings.context),
        features=plain(settings.features),
        arms=arms,
        seed=settings.seed,
        window=settings.window,
        default_reward=settings.default_reward,
        reward_range=settings.reward_range,
        context_ranges=dict(settings.context_ranges),
        out_of_range=settings.out_of_range,
        noise=settings.noise,
        horizon=settings.horizon,
        max_open=settings.max_open,
        created=row.created,
        worker=row.url or "",
        **counts,
    )


def plain(columns: Columns) -> list[str] | dict[str, str]:
    return dict(columns) if isinstance(columns, Mapping) else list(columns)
