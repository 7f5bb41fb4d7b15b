"""Draws docs/pictures/environments: what each environment and each transformation does.

`python -m tools.publish.environment_pictures` draws all of them, with names after it only those.
"""

import io
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from matplotlib.ticker import FuncFormatter, MaxNLocator
from PIL import Image

from driftbandits import Environment, build_environment
from driftbandits.core import State
from driftbandits.numerics.random_keys import key
from driftbandits.report.curves import styled
from driftbandits.report.style import OTHERS

TARGET = Path(__file__).parents[2] / "docs" / "pictures" / "environments"
WIDTH, HEIGHT, DPI = 7.0, 2.5, 110
COLOURS = 64  # of a file
GREY = "#777777"
FINE = 240  # places along an axis of a map
ONE_ARM = (0,)  # pulled all the time


class Drawing(NamedTuple):
    """A picture: what it shows, and how."""

    caption: str
    draw: Callable[[], Figure]


class Course(NamedTuple):
    """One run, step by step."""

    mean: np.ndarray  # (steps, arms)
    reward: np.ndarray  # (steps, arms)
    available: np.ndarray  # (steps, arms)


def play(text: str, steps: int, seed: int, pulls: Sequence[int] = ONE_ARM) -> Course:
    """The means, rewards and available arms of a run that pulls these arms over and over."""
    environment = build_environment(text)
    start, later = jax.random.split(key(seed))
    arms = jnp.asarray(np.resize(pulls, steps), jnp.int32)

    def step(state: object, at: tuple[Array, Array]) -> tuple[object, Course]:
        time, arm = at
        see, pay = jax.random.split(jax.random.fold_in(later, time))
        observation = environment.observe(see, state)
        sampled, mean = environment.rewards(pay, state, observation.context)
        return environment.advance(state, arm), Course(mean, sampled, observation.available)

    _, course = jax.lax.scan(step, environment.init(start), (jnp.arange(steps), arms))
    return Course(*map(np.asarray, course))


def means_at(
    environment: Environment, contexts: np.ndarray, times: Sequence[int], seed: int
) -> np.ndarray:
    """(times, contexts, arms): what every arm is worth at every context."""
    state = environment.init(key(seed))
    mean = jax.vmap(lambda state, x: environment.rewards(key(0), state, x).mean, (None, 0))
    return np.stack(
        [np.asarray(mean(state._replace(time=jnp.int32(time)), contexts)) for time in times]
    )


def panels(count: int = 1, height: float = HEIGHT, **settings: object) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    axes = figure.subplots(1, count, squeeze=False, **settings)[0]
    for one in axes:
        one.spines[["top", "right"]].set_visible(False)
        one.tick_params(labelsize=8, color=GREY)
        one.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        one.xaxis.set_major_locator(MaxNLocator(5))
    return figure, list(axes)


def label(axes: Axes, x: str, y: str, title: str = "") -> None:
    axes.set_xlabel(x, fontsize=9)
    axes.set_ylabel(y, fontsize=9)
    axes.set_title(title, fontsize=9, loc="left")


def lines(axes: Axes, values: np.ndarray, x: np.ndarray | None = None) -> None:
    """A line for every arm, which keeps its jumps."""
    steps = np.arange(len(values)) if x is None else x
    for arm, course in enumerate(values.T):
        axes.plot(steps, course, color=OTHERS[arm], linewidth=1.6, drawstyle="steps-post")
    axes.set_xlim(steps[0], steps[-1])


def over_time(text: str, steps: int, seed: int = 1) -> Callable[[], Figure]:
    def draw() -> Figure:
        figure, (axes,) = panels()
        lines(axes, play(text, steps, seed).mean)
        label(axes, "step", "mean reward")
        return figure

    return draw


def by_pulls(texts: dict[str, str], pulls: int, seed: int = 1) -> Callable[[], Figure]:
    """The mean of each arm after so many pulls of it; a panel for each text."""

    def draw() -> Figure:
        figure, axes = panels(len(texts), sharey=True)
        for one, (title, text) in zip(axes, texts.items(), strict=True):
            arms = build_environment(text).spec.num_arms
            own = [play(text, pulls, seed, [arm]).mean[:, arm] for arm in range(arms)]
            lines(one, np.stack(own, axis=1))
            label(one, "pulls of the arm", "mean reward" if one is axes[0] else "", title)
            one.set_ylim(0, 1.05)
            one.xaxis.set_major_locator(MaxNLocator(5 if len(texts) == 1 else 2))
        return figure

    return draw


def recharging() -> Figure:
    """Arms that were pulled once, and then another one."""
    figure, (axes,) = panels()
    text = "recharging(num_arms=5)"
    own = [play(text, 40, 2, [arm, *[(arm + 1) % 5] * 40]).mean[1:, arm] for arm in range(5)]
    lines(axes, np.stack(own, axis=1), np.arange(1, 40))
    label(axes, "steps since the last pull of the arm", "mean reward")
    axes.set_ylim(0, 1)
    return figure


def following() -> Figure:
    """Which arm is worth how much, after which."""
    figure, (axes,) = panels(height=2.9)
    arms = 5
    means = np.stack([play(f"following(num_arms={arms})", 2, 4, [j]).mean[1] for j in range(arms)])
    shown = axes.imshow(means, cmap="viridis", vmin=0, vmax=1)
    for j in range(arms):
        for k in range(arms):
            colour = "white" if means[j, k] < 0.6 else "black"
            text = f"{means[j, k]:.2f}"
            axes.text(k, j, text, ha="center", va="center", fontsize=7, color=colour)
    axes.spines[:].set_visible(False)
    names = [f"arm {arm}" for arm in range(arms)]
    axes.set_xticks(range(arms), names)
    axes.set_yticks(range(arms), [f"after {name}" for name in names])
    axes.tick_params(length=0)
    figure.colorbar(shown, ax=axes).ax.tick_params(labelsize=8)
    return figure


def on_circle(count: int = FINE) -> np.ndarray:
    angles = np.linspace(0, 2 * np.pi, count)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def degrees(axes: Axes, axis: str) -> None:
    getattr(axes, f"set_{axis}ticks")([0, 90, 180, 270, 360], ["0°", "90°", "180°", "270°", "360°"])


def linear() -> Figure:
    figure, (axes,) = panels()
    environment = build_environment("linear(num_arms=4, context_dim=2)")
    lines(axes, means_at(environment, on_circle(), [0], 3)[0], np.linspace(0, 360, FINE))
    degrees(axes, "x")
    label(axes, "angle of a context of two numbers", "mean reward")
    return figure


def best_over_time(text: str, steps: int, seed: int) -> Callable[[], Figure]:
    """The best arm by time and by the angle of the context."""

    def draw() -> Figure:
        figure, (axes,) = panels()
        times = np.linspace(0, steps - 1, 2 * FINE).astype(int)
        means = means_at(build_environment(text), on_circle(), list(times), seed)
        show_best(axes, means.argmax(axis=2).T, means.shape[2], (0, steps, 0, 360))
        axes.set_aspect("auto")
        degrees(axes, "y")
        label(axes, "step", "angle of the context")
        return figure

    return draw


def show_best(
    axes: Axes, best: np.ndarray, arms: int, extent: tuple[float, float, float, float]
) -> None:
    axes.imshow(
        best, origin="lower", extent=extent, cmap=ListedColormap(OTHERS[:arms]), vmin=-0.5,
        vmax=arms - 0.5, interpolation="nearest",
    )  # fmt: skip


def articles() -> Figure:
    """What articles in four places are worth to one reader, with gaps where a place is empty."""
    figure, (axes,) = panels()
    environment = build_environment("articles(num_arms=4, life=1000, quality=1, period=20000)")
    reader, start, steps = jnp.array([0.5, -0.5, 0.5, 0.5]), environment.init(key(4)), 4000

    def step(state: State, _: None) -> tuple[State, Array]:
        mean = environment.rewards(key(0), state, reader).mean
        available = environment.observe(key(0), state).available
        return environment.advance(state, jnp.int32(0)), jnp.where(available, mean, jnp.nan)

    lines(axes, np.asarray(jax.lax.scan(step, start, length=steps)[1]))
    label(axes, "step", "click rate for one reader")
    return figure


def weights() -> Figure:
    """The weight of the number that matters: what a context of ones earns."""
    figure, (axes,) = panels()
    environment = build_environment("sparse_linear(num_arms=4)")
    times = np.linspace(0, 20_000, 400).astype(int)
    ones = np.ones((1, environment.spec.context_dim), np.float32)
    lines(axes, means_at(environment, ones, list(times), 1)[:, 0], times)
    label(axes, "step", "weight of the one number")
    return figure


def square(edge: float = 1.0) -> np.ndarray:
    x, y = np.meshgrid(*[np.linspace(-edge, edge, FINE)] * 2)
    return np.stack([x.ravel(), y.ravel()], axis=1).astype(np.float32)


def maps(
    text: str, times: dict[int, str], arms: int, seed: int, *, round_: bool
) -> Callable[[], Figure]:
    """The best arm at every context of two numbers, at some times."""

    def draw() -> Figure:
        figure, axes = panels(len(times), height=WIDTH / len(times) + 0.75)
        best = means_at(build_environment(text), square(), list(times), seed).argmax(axis=2)
        for one, here, title in zip(axes, best, times.values(), strict=True):
            show_best(one, here.reshape(FINE, FINE), arms, (-1, 1, -1, 1))
            if round_:
                one.images[0].set_clip_path(Circle((0, 0), 1, transform=one.transData))
                one.spines[:].set_visible(False)
            one.set_xticks([-1, 0, 1])
            one.set_yticks([-1, 0, 1] if one is axes[0] else [])
            label(one, "first number", "second number" if one is axes[0] else "", title)
        return figure

    return draw


def wheels() -> Figure:
    figure, axes = panels(3, height=WIDTH / 3 + 0.75)
    for one, delta in zip(axes, (0.3, 0.5, 0.8), strict=True):
        best = means_at(build_environment(f"wheel(delta={delta})"), square(), [0], 0)[0].argmax(1)
        show_best(one, best.reshape(FINE, FINE), 5, (-1, 1, -1, 1))
        one.images[0].set_clip_path(Circle((0, 0), 1, transform=one.transData))
        one.spines[:].set_visible(False)
        one.set_xticks([-1, 0, 1])
        one.set_yticks([-1, 0, 1] if one is axes[0] else [])
        label(one, "first number", "second number" if one is axes[0] else "", f"delta={delta}")
    return figure


def rows(text: str, steps: int, seed: int, of: str, x: str) -> Callable[[], Figure]:
    """A row for each arm, filled in the steps in which it pays or is available."""

    def draw() -> Figure:
        figure, (axes,) = panels()
        values = getattr(play(text, steps, seed), of)
        arms = values.shape[1]
        for arm in range(arms):
            bars = [(step, 1) for step in np.flatnonzero(values[:, arm] > 0)]
            axes.broken_barh(bars, (arm - 0.38, 0.76), color=OTHERS[arm], linewidth=0)
        axes.set_yticks(range(arms), [f"arm {arm}" for arm in range(arms)])
        axes.set_xlim(0, steps)
        axes.invert_yaxis()
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel(x, fontsize=9)
        return figure

    return draw


def in_a_row(text: str, seed: int) -> Callable[[], Figure]:
    """Arm 0 pulled in rows of different lengths; dots on the bottom are pulls of arm 1."""

    def draw() -> Figure:
        figure, (axes,) = panels()
        pulls = [0] * 14 + [1] * 3 + [0] * 8 + [1] + [0] * 16 + [1] * 4
        means = play(text, len(pulls), seed, pulls).mean
        lines(axes, means)
        low, high = axes.get_ylim()
        axes.set_ylim(low - 0.22 * (high - low), high)
        for arm in (0, 1):
            at = np.flatnonzero(np.array(pulls) == arm)
            axes.plot(
                at + 0.5,
                [low - 0.12 * (high - low)] * len(at),
                "s",
                color=OTHERS[arm],
                markersize=4,
            )
        label(axes, "step (squares: which arm was pulled)", "mean reward")
        return figure

    return draw


def waits() -> Figure:
    """From every pull to its reward."""
    figure, (axes,) = panels()
    draw = build_environment('bernoulli(delayed="geometric(mean=20, share=0.1)")').delay
    assert draw is not None
    for pull in range(30):
        wait = int(draw.draw(jax.random.fold_in(key(6), pull)))
        if wait <= draw.longest:
            axes.plot([pull, pull + wait], [pull, pull], color="#c4cdd4", linewidth=1.4)
            axes.plot(pull + wait, pull, "o", color=OTHERS[0], markersize=4)
        else:
            axes.plot(pull, pull, "x", color=OTHERS[1], markersize=5)
        axes.plot(pull, pull, "|", color=GREY, markersize=6)
    axes.set_xlim(0, None)
    axes.invert_yaxis()
    label(axes, "step", "pull")
    return figure


def samples(texts: dict[str, str], steps: int, seed: int) -> Callable[[], Figure]:
    """Sampled rewards of one arm around its mean."""

    def draw() -> Figure:
        figure, axes = panels(len(texts), sharey=True)
        for one, (title, text) in zip(axes, texts.items(), strict=True):
            course = play(text, steps, seed)
            one.plot(course.reward[:, 0], ".", color=OTHERS[5], markersize=3)
            one.plot(course.mean[:, 0], color=OTHERS[0], linewidth=1.6)
            label(one, "step", "reward" if one is axes[0] else "", title)
        return figure

    return draw


def units() -> Figure:
    figure, axes = panels(2)
    for one, text in zip(axes, ["", ", scaled=[100, -50]"], strict=True):
        text = f"sinusoidal(num_arms=3{text})"
        lines(one, play(text, 10_000, 1).mean)
        label(one, "step", "mean reward" if one is axes[0] else "", text)
    return figure


def stocks() -> Figure:
    """Sums, since single days are mostly noise."""
    figure, (axes,) = panels()
    lines(axes, play("table", 1257, 0).reward[:, :5].cumsum(axis=0))
    label(axes, "step (day)", "sum of rewards (%)")
    return figure


DRAWINGS = {
    "bernoulli": Drawing(
        "Mean rewards of five arms in one run: they never change.",
        over_time("bernoulli(num_arms=5)", 1000),
    ),
    "close_arms": Drawing(
        "Mean rewards of five arms with every=1000: one is a little better, and it changes.",
        over_time("close_arms(num_arms=5, every=1000)", 5000),
    ),
    "abrupt": Drawing(
        "Mean rewards of five arms in one run: now and then all of them jump.",
        over_time("abrupt(num_arms=5, hazard=0.001)", 5000, 2),
    ),
    "flipping": Drawing(
        "Mean rewards of five arms in one run: the best and the worst swap every 1,000 steps.",
        over_time("flipping(num_arms=5)", 5000),
    ),
    "shocks": Drawing(
        "Mean rewards of five arms in one run: shocks hit all of them and fade.",
        over_time("shocks(num_arms=5)", 5000, 3),
    ),
    "sinusoidal": Drawing(
        "Mean rewards of five arms in one run: each rises and falls in its turn.",
        over_time("sinusoidal(num_arms=5)", 10_000),
    ),
    "seasonal": Drawing(
        "Mean rewards of four arms in one run: each has its own period.",
        over_time("seasonal(num_arms=4)", 5000, 2),
    ),
    "random_walk": Drawing(
        "Mean rewards of four arms in one run: they wander between 0 and 1.",
        over_time("random_walk(num_arms=4)", 3000),
    ),
    "trending": Drawing(
        "Mean rewards of five arms in one run: they move to another level and back.",
        over_time("trending(num_arms=5)", 30_000),
    ),
    "rotting": Drawing(
        "Mean reward of each arm by its own pulls: the default, and four drawn arms by each law.",
        by_pulls(
            {
                "default": "rotting",
                "law='step'": "rotting(num_arms=4, law='step', life=4000)",
                "law='geometric'": "rotting(num_arms=4, law='geometric', life=4000)",
                "law='power'": "rotting(num_arms=4, law='power', life=4000)",
            },
            10_000,
        ),
    ),
    "rising": Drawing(
        "Mean reward of each of five arms by its own pulls.",
        by_pulls({"": "rising(num_arms=5)"}, 2000, 2),
    ),
    "recharging": Drawing(
        "Mean reward of each of five arms by the steps since its last pull.", recharging
    ),
    "following": Drawing(
        "Mean reward of each arm (columns) after a pull of each arm (rows).", following
    ),
    "linear": Drawing("Mean rewards of four arms, by a context on the unit circle.", linear),
    "rotating_linear": Drawing(
        "The best of four arms (colours) by step and context: the borders move steadily.",
        best_over_time("rotating_linear(num_arms=4, context_dim=2)", 6000, 1),
    ),
    "flipping_linear": Drawing(
        "The best of four arms (colours) by step and context: it changes every 1,000 steps.",
        best_over_time("flipping_linear(num_arms=4, context_dim=2)", 5000, 3),
    ),
    "sparse_linear": Drawing(
        "The weight of the one number that matters, for four arms in one run.", weights
    ),
    "nonlinear": Drawing(
        "The best of five arms (colours) at contexts of two numbers, with every=2500.",
        maps(
            "nonlinear(context_dim=2, every=2500, frequency=3)",
            {0: "steps 0 to 2,499", 2500: "2,500 to 4,999", 5000: "5,000 to 7,499"},
            5,
            1,
            round_=False,
        ),
    ),
    "wheel": Drawing(
        "The best arm (colours) at every context, for three values of delta.",
        wheels,
    ),
    "rotating_wheel": Drawing(
        "The best arm (colours) at every context: the quadrants turn.",
        maps(
            "rotating_wheel",
            {0: "step 0", 150: "step 150", 300: "step 300", 500: "step 500"},
            5,
            0,
            round_=True,
        ),
    ),
    "shared_linear": Drawing(
        "The best of six arms (colours) by time and context, with period=2000.",
        best_over_time("shared_linear(num_arms=6, context_dim=2, arm_dim=2, period=2000)", 4000, 1),
    ),
    "articles": Drawing(
        "Click rates of the articles in four places, for one reader, with life=1000: they fade and "
        "leave, and new ones come.",
        articles,
    ),
    "table": Drawing(
        "Rewards of five of the ten stocks in river:sp500, summed over the days.", stocks
    ),
    "adversarial": Drawing(
        "Which arm pays 1 in the first 255 steps of the built-in sequence.",
        rows("adversarial", 255, 0, "reward", "step"),
    ),
    "max_consecutive": Drawing(
        "Mean rewards of two arms with max_consecutive=10: after ten pulls in a row an arm pays 0.",
        in_a_row("bernoulli(num_arms=2, max_consecutive=10)", 7),
    ),
    "fatigue": Drawing(
        "Mean rewards of two arms with fatigue=0.9: an arm pays less with every pull in a row.",
        in_a_row("bernoulli(num_arms=2, fatigue=0.9)", 7),
    ),
    "sleeping": Drawing(
        "Which of five arms are available in the first 60 steps, with sleeping=0.5.",
        rows("bernoulli(num_arms=5, sleeping=0.5)", 60, 1, "available", "step"),
    ),
    "delayed": Drawing(
        "When the rewards of 30 pulls arrive (dots), or that they never do (crosses), with "
        "geometric(mean=20, share=0.1).",
        waits,
    ),
    "noisy": Drawing(
        "Rewards of one arm (dots) and their mean (line), without and with noise.",
        samples(
            {t: t for t in ("bernoulli(num_arms=1)", "bernoulli(num_arms=1, noisy=0.5)")}, 300, 2
        ),
    ),
    "heavy_tailed": Drawing(
        "Rewards of one arm (dots) and their mean (line): most are near it, a few far away.",
        samples(
            {
                t: t
                for t in (
                    "bernoulli(num_arms=1, noisy=0.5)",
                    "bernoulli(num_arms=1, heavy_tailed=0.5)",
                )
            },
            1000,
            2,
        ),
    ),
    "scaled": Drawing("Mean rewards of the same three arms in two units.", units),
}


def write(name: str) -> None:
    buffer = io.BytesIO()
    with styled():
        DRAWINGS[name].draw().savefig(buffer, format="png", dpi=DPI)
    picture = Image.open(buffer).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    TARGET.mkdir(parents=True, exist_ok=True)
    picture.save(TARGET / f"{name}.png", optimize=True)


def main() -> None:
    for name in sys.argv[1:] or DRAWINGS:
        write(name)
        print(f"written: {name}.png ({(TARGET / f'{name}.png').stat().st_size / 1000:.0f} KB)")


if __name__ == "__main__":
    main()
