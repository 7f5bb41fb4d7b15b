"""Draws tracker_weights.png: what the tracker believes while a world rests, jumps and drifts.

`python -m tools.publish.tracker_picture` lets it pull once in a world of three arms and looks at
its state after every step.
"""

from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MultipleLocator

from driftbandits import BanditSpec, Observation, build_policy
from driftbandits.numerics.random_keys import key
from driftbandits.policies.tracker.state import TrackerState
from driftbandits.report.curves import apart, save, styled
from driftbandits.report.style import OTHERS

TARGET = Path(__file__).parents[2] / "docs" / "pictures" / "tracker_weights.png"
SEED = 3
JUMP, DRIFT, END = 3000, 6000, 9000
NOISE = 0.3
LEVELS = (0.75, 0.5, 0.25)  # of the arms, before the jump
FALL = 0.6  # of the best arm
SWING, PERIOD = 0.3, 2000  # of the arms from DRIFT on
DRIFTS = ("0, static", "1e-5", "1e-4", "1e-3", "1e-2, fast")  # those of the policy, as labels
ARMS = OTHERS[:3]
EXPERTS = LinearSegmentedColormap.from_list("experts", ["#1d2a4d", "#7a3b78", "#e0684b", "#fbd27a"])
GREY = "#666666"
PHASES = {  # where each is written
    JUMP / 2: "at rest",
    (JUMP + DRIFT) / 2: "arm 1 has fallen; at rest again",
    (DRIFT + END) / 2: "all arms drift",
}


class Seen(NamedTuple):
    """Of every step."""

    mean: Array  # (steps, arms) true
    tracked: Array  # (steps, arms)
    weights: Array  # (steps, experts)
    arm: Array  # (steps,)


def means_at(time: Array) -> Array:
    """Rest, a fall of the best arm, rest, and from DRIFT on sines."""
    fallen = jnp.asarray(LEVELS).at[0].add(-FALL)
    phases = 2 * jnp.pi * jnp.arange(len(LEVELS)) / len(LEVELS)
    turns = 2 * jnp.pi * (time - DRIFT) / PERIOD
    sines = SWING * (jnp.sin(turns + phases) - jnp.sin(phases))
    return jnp.where(time < JUMP, jnp.asarray(LEVELS), fallen) + jnp.where(time < DRIFT, 0.0, sines)


def look() -> Seen:
    """One run, step by step."""
    policy = build_policy("tracker", BanditSpec(len(LEVELS)))
    start, steps = jax.random.split(key(SEED))
    available, context = jnp.ones(len(LEVELS), bool), jnp.zeros(0)

    def step(state: TrackerState, time: Array) -> tuple[TrackerState, Seen]:
        own, world = jax.random.split(jax.random.fold_in(steps, time))
        decision, state = policy.act(own, state, Observation(context, available))
        mean = means_at(time)
        reward = mean[decision.arm] + NOISE * jax.random.normal(world)
        state = policy.learn(state, decision.ticket, reward)
        track = state.tracks[0]
        tracked = track.experts.weights @ track.bank.mean[:, :, -1] + state.seen.first
        return state, Seen(mean, tracked, track.experts.weights, decision.arm)

    _, seen = jax.jit(lambda s: jax.lax.scan(step, s, jnp.arange(END)))(policy.init(start))
    return Seen(*map(np.asarray, seen))


def draw_means(axes: Axes, seen: Seen) -> None:
    """Broad and pale the truth, thin the belief."""
    for arm, colour in enumerate(ARMS):
        axes.plot(seen.mean[:, arm], color=colour, linewidth=5, alpha=0.25)
        axes.plot(seen.tracked[:, arm], color=colour, linewidth=1.2)
    low, high = -0.22, 1.05
    axes.set_ylim(low, high)
    for time, text in PHASES.items():
        axes.text(time, high, text, ha="center", va="top", fontsize=9, color=GREY)
    heights = [(end - low) / (high - low) for end in seen.mean[-1]]
    for arm, height in enumerate(apart(heights, gap=0.08)):
        beside(axes, height, f"arm {arm + 1}", ARMS[arm])


def draw_weights(axes: Axes, seen: Seen) -> None:
    colours = [EXPERTS(x) for x in np.linspace(0, 1, len(DRIFTS))]
    tops = seen.weights.cumsum(axis=1)
    for top, colour in zip(tops.T[::-1], colours[::-1], strict=True):  # no seams between areas
        axes.fill_between(np.arange(END), top, color=colour, linewidth=0)
    axes.set_ylim(0, 1)
    for place, (drift, colour) in enumerate(zip(DRIFTS, colours, strict=True)):
        height = 0.1 + 0.2 * place
        axes.text(1.012, height, "\u25a0", transform=axes.transAxes, color=colour, va="center")
        beside(axes, height, f"    q = {drift}", "#333333")


def draw_pulls(axes: Axes, seen: Seen) -> None:
    """Every pull a tick in the row of its arm; the best arm's row is shaded."""
    best = seen.mean.argmax(axis=1)
    for arm, colour in enumerate(ARMS):
        row = -arm
        axes.fill_between(
            np.arange(END), row - 0.42, row + 0.42, where=best == arm, color=colour, alpha=0.2, lw=0
        )
        pulls = np.flatnonzero(seen.arm == arm)
        axes.vlines(pulls, row - 0.26, row + 0.26, color=colour, linewidth=0.25)
    axes.set_yticks([0, -1, -2], ["arm 1", "arm 2", "arm 3"])
    axes.tick_params(axis="y", length=0)


def beside(axes: Axes, height: float, text: str, colour: str) -> None:
    axes.text(1.012, height, text, transform=axes.transAxes, color=colour, va="center", fontsize=9)


def dress(axes: Axes, title: str) -> None:
    axes.set_title(title, loc="left", fontsize=10, weight="bold")
    axes.set_xlim(0, END)
    axes.xaxis.set_major_locator(MultipleLocator(1000))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.spines[["top", "right"]].set_visible(False)
    for moment in (JUMP, DRIFT):
        axes.axvline(moment, color="#888888", linewidth=0.9, linestyle=(0, (4, 3)))


def figure_of(seen: Seen) -> Figure:
    figure = Figure(figsize=(9, 6.8), layout="constrained")
    means, weights, pulls = figure.subplots(3, 1, sharex=True, height_ratios=[1.25, 1.1, 0.6])
    draw_means(means, seen)
    draw_weights(weights, seen)
    draw_pulls(pulls, seen)
    dress(means, "What the arms are worth (broad) and what the tracker takes them to be (thin)")
    dress(
        weights,
        "How fast it takes the world to move: weights of its experts, by the drift q of each",
    )
    dress(pulls, "What it pulls (ticks), and which arm is best (shaded)")
    pulls.set_xlabel("pulls")
    return figure


def main() -> None:
    with styled():
        TARGET.parent.mkdir(parents=True, exist_ok=True)
        save(figure_of(look()), TARGET)
    print(f"written: {TARGET} ({TARGET.stat().st_size // 1000} KB)")


if __name__ == "__main__":
    main()
