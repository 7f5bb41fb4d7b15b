"""Should the tracker remember? Its second bank on the hidden state of a GRU that learns online.

    h = GRU((context or 1, last arm, last reward), h);   features of the second bank: (h, z)
    per reward one RMSprop step on (output of the pulled arm - reward)^2, through `window` steps

Rewards are scaled by their mean and deviation so far. Everything else is the tracker's: filters,
index, effect of the run length, gate. It is measured beside the tracker in the same worlds; two of
them, `echo` and `rhythm`, are there for a memory to win.

python -m benchmarks.tracker_memory           # writes docs/tracker/memory.md
python -m benchmarks.tracker_memory --short   # prints the two for a memory, small
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from driftbandits import build_environment, build_policy, paired_difference, simulate, simulation
from driftbandits.core import BanditSpec, Decision, Environment, Key, Observation, Policy, Rewards
from driftbandits.environments.bernoulli import nothing_to_see, toss
from driftbandits.metrics import policy_regret
from driftbandits.parts import run_lengths, tracks
from driftbandits.parts.arms import context_or_one, count_pull, draw, greedy_law
from driftbandits.parts.fourier import random_waves
from driftbandits.parts.gate import Gate, closer, open_gate
from driftbandits.parts.networks import affine, gru
from driftbandits.parts.run_lengths import Runs
from driftbandits.parts.seen_rewards import SeenRewards, none_seen, see, spread
from driftbandits.parts.tracks import Track
from driftbandits.policies.recurrent_linear import (
    Network,
    RecurrentLinearTicket,
    init_network,
    unroll,
)
from driftbandits.policies.tracker import (
    FIRST_PULLS,
    FIRST_PULLS_WITH_CONTEXT,
    WAVE_DRIFTS,
    WAVE_PRIOR,
    TrackerTicket,
    advise,
    expected,
    features_of,
    follow,
    tracker,
    weigh_run,
)
from driftbandits.simulation import Progress, Trace, block_width

PAGE = Path(__file__).parents[1] / "docs" / "tracker" / "memory.md"
SEED, RUNS, HORIZON = 70_000, 20, 10_000
SHORT_RUNS, SHORT_HORIZON = 4, 2_000
SIGNS = 10  # of life, in a simulation

# The tracker's defaults.
DRIFTS = (0.0, 1e-5, 1e-4, 1e-3, 1e-2)
PRIOR, SLOPE_PRIOR, SLOPE_SPEED = 1.5, 3.0, 30.0
SHARE, KEPT, DOUBT, WIDTH, GROWTH = 1e-4, 0.999, 2.0, 1.0, 1.0
EFFECT, RANDOMNESS = 0.01, 0.1

HIDDEN_DRIFTS = (*WAVE_DRIFTS, 1e-2)  # the features move as the network learns


class Memory(NamedTuple):
    """The GRU and what it has seen."""

    network: Network
    optimizer: optax.OptState
    inputs: Array  # (window, inputs) float32, of the last decisions
    hidden: Array  # (window, hidden) float32, of the last moments; the newest is the present one
    made: Array  # () int32, decisions, counted up to window
    last: Array  # (num_arms + 1,) float32, the arm and the scaled reward learnt last


class RememberingState(NamedTuple):
    tracks: tuple[Track, ...]  # of the context, and of the hidden state beside it
    memory: Memory
    gate: Gate
    seen: SeenRewards
    runs: Runs
    pulls: Array  # (num_arms,) int32
    squares: Array  # (context_dim,) float32, sum over the contexts
    time: Array  # () int32, decisions


class RememberingTicket(NamedTuple):
    tracker: TrackerTicket
    memory: RecurrentLinearTicket


def remembering_tracker(
    spec: BanditSpec, *, hidden: int = 16, window: int = 8, learning_rate: float = 0.003
) -> Policy:
    """The tracker, by its defaults, with a GRU in the place of the waves.

    Of the learning rates 0.001, 0.003 and 0.01 the second was best on `rhythm`, and better than the
    third on `echo` (8 runs of 10,000 steps with the seed 71000; the first was not tried on `echo`,
    nor other sizes on either).
    """
    num_arms, dim = spec.num_arms, spec.context_dim
    least = FIRST_PULLS_WITH_CONTEXT if dim else FIRST_PULLS
    optimizer = optax.rmsprop(learning_rate, decay=0.99, eps=1e-8, eps_in_sqrt=False)
    learning = SHARE, KEPT, DOUBT, WIDTH, GROWTH
    speeds, priors = [SLOPE_SPEED] * dim + [1.0], [SLOPE_PRIOR] * dim + [PRIOR]
    about = [tracks.constants(DRIFTS, speeds, priors, *learning)]
    speeds, priors = [1.0] * hidden + speeds, [WAVE_PRIOR] * hidden + priors
    about.append(tracks.constants(HIDDEN_DRIFTS, speeds, priors, *learning))

    def init(key: Key) -> RememberingState:
        inputs = max(dim, 1) + num_arms + 1
        network = init_network(key, inputs, hidden, num_arms)
        memory = Memory(
            network,
            optimizer.init(network),
            jnp.zeros((window, inputs)),
            jnp.zeros((window, hidden)),
            jnp.int32(0),
            jnp.zeros(num_arms + 1),
        )
        return RememberingState(
            tuple(tracks.start(constants, num_arms) for constants in about),
            memory,
            open_gate(),
            none_seen(),
            run_lengths.no_runs(),
            jnp.zeros(num_arms, jnp.int32),
            jnp.zeros(dim),
            jnp.int32(0),
        )

    def act(
        key: Key, state: RememberingState, context: Array, available: Array
    ) -> tuple[Decision, RememberingState]:
        time, squares = state.time + 1, state.squares + context**2
        (linear,) = features_of(random_waves(key, 0, dim, 1.0), context, squares / time)
        memory, seen = look(state.memory, context_or_one(linear[:-1]))
        features = linear, jnp.append(memory.hidden[-1], linear)
        effect = run_lengths.effect_now(state.runs, EFFECT)
        push = run_lengths.push(state.runs, effect, num_arms)
        advice = [
            advise(*tracks.index(*of), push, effect.chance, RANDOMNESS, available)
            for of in zip(state.tracks, about, features, strict=True)
        ]
        first = jnp.any(available & (state.pulls < least))
        law = follow([a.law for a in advice], state.gate, spread(state.seen))
        law = jnp.where(first, greedy_law(-state.pulls, available), law)
        arm = draw(key, law)
        follows = jnp.stack([a.best[arm] > 0 for a in advice])
        again = (arm == state.runs.last) & (state.runs.length > 0)
        ticket = RememberingTicket(
            TrackerTicket(features, arm, effect, again, first, follows, time),
            RecurrentLinearTicket(seen, state.memory.hidden[0], memory.made, arm),
        )
        return Decision(arm, law, ticket), state._replace(
            memory=memory,
            runs=run_lengths.pull(state.runs, arm),
            pulls=count_pull(state.pulls, arm),
            squares=squares,
            time=time,
        )

    def learn(
        state: RememberingState, tickets: RememberingTicket, reward: Array
    ) -> RememberingState:
        ticket = tickets.tracker
        seen, above = see(state.seen, reward)
        judges, arm = ~ticket.first, ticket.arm
        known = list(zip(state.tracks, about, strict=True))
        at_once, one = jnp.int32(0), jnp.int32(1)  # no reward of these problems is late
        made = [
            tracks.forecast(*of, z, arm, at_once)
            for of, z in zip(known, ticket.features, strict=True)
        ]
        learnt = [
            tracks.learn(*of, arm, forecast, above - expected(ticket), spread(seen), judges, one)
            for of, forecast in zip(known, made, strict=True)
        ]
        never = state.pulls == 0
        scaled = (above - seen.mean) / jnp.sqrt(spread(seen))
        return state._replace(
            tracks=tuple(tracks.set_level(track, never, seen.mean) for track in learnt),
            memory=train(state.memory, tickets.memory, scaled, optimizer),
            gate=closer(state.gate, ticket.follows, above, judges),
            seen=seen,
            runs=weigh_run(state.runs, ticket, state.tracks[0], made[0], above, DOUBT),
        )

    return Policy(init, act, learn)


def look(memory: Memory, context: Array) -> tuple[Memory, Array]:
    """The hidden state moves on; with the inputs that led to it."""
    now = jnp.concatenate([context, memory.last])
    inputs = jnp.concatenate([memory.inputs[1:], now[None]])
    h = gru(memory.network.layer, now, memory.hidden[-1])
    moved = jnp.concatenate([memory.hidden[1:], h[None]])
    made = jnp.minimum(memory.made + 1, len(inputs))
    return memory._replace(inputs=inputs, hidden=moved, made=made), inputs


def train(
    memory: Memory,
    ticket: RecurrentLinearTicket,
    reward: Array,
    optimizer: optax.GradientTransformation,
) -> Memory:
    """One step of the network towards the pulled arm's scaled reward."""

    def loss(network: Network) -> Array:
        h = unroll(network.layer, ticket.inputs, ticket.hidden, ticket.made)
        return (affine(network.output, h)[ticket.arm] - reward) ** 2

    updates, moments = optimizer.update(jax.grad(loss)(memory.network), memory.optimizer)
    pulled = jax.nn.one_hot(ticket.arm, memory.last.size - 1)
    return memory._replace(
        network=optax.apply_updates(memory.network, updates),
        optimizer=moments,
        last=jnp.append(pulled, reward),
    )


def echo(num_arms: int = 5, high: float = 0.8, low: float = 0.4) -> Environment:
    """Coins; the best one is the neighbour of the arm pulled two steps ago."""

    def init(key: Key) -> Array:
        return jax.random.randint(key, (2,), 0, num_arms)  # the last arm but one, and the last

    def observe(key: Key, arms: Array) -> Observation:
        return nothing_to_see(num_arms)

    def rewards(key: Key, arms: Array, context: Array) -> Rewards:
        best = (arms[0] + 1) % num_arms
        return toss(key, jnp.where(jnp.arange(num_arms) == best, high, low))

    def advance(arms: Array, arm: Array) -> Array:
        return jnp.stack([arms[1], arm])

    return Environment(BanditSpec(num_arms), init, observe, rewards, advance)


class RhythmState(NamedTuple):
    cycle: Array  # (num_arms + 1,) int32, the best arm of every beat
    beat: Array  # () int32


def rhythm(num_arms: int = 5, high: float = 0.8, low: float = 0.3) -> Environment:
    """Coins; another one is best at every step, in a cycle of all arms and one of them again."""

    def init(key: Key) -> RhythmState:
        order = jax.random.permutation(key, num_arms)
        return RhythmState(jnp.append(order, order[num_arms // 2]), jnp.int32(0))

    def observe(key: Key, state: RhythmState) -> Observation:
        return nothing_to_see(num_arms)

    def rewards(key: Key, state: RhythmState, context: Array) -> Rewards:
        best = state.cycle[state.beat]
        return toss(key, jnp.where(jnp.arange(num_arms) == best, high, low))

    def advance(state: RhythmState, arm: Array) -> RhythmState:
        return state._replace(beat=(state.beat + 1) % (num_arms + 1))

    return Environment(BanditSpec(num_arms), init, observe, rewards, advance)


FOR_A_MEMORY: dict[str, Callable[[], Environment]] = {"echo": echo, "rhythm": rhythm}
PROBLEMS = [
    "bernoulli",
    "sinusoidal",
    "bernoulli(max_consecutive=10)",
    "bernoulli(fatigue=0.9)",
    "abrupt",
    *FOR_A_MEMORY,
]


class Measured(NamedTuple):
    regret: np.ndarray  # (runs,) policy regret at the end
    microseconds: float  # of a core, per step and run


def measure(policy: Policy, world: Environment, runs: int, horizon: int) -> Measured:
    """Time counts from the first sign of life on, when all is compiled."""
    clock: list[tuple[int, float]] = []

    def progress(done: int, total: int) -> None:
        clock.append((done, time.process_time()))

    def trace_of(policy: Policy, progress: Progress | None = None) -> Trace:
        return simulate(
            policy,
            world,
            horizon=horizon,
            runs=runs,
            seed=SEED,
            record_every=horizon // SIGNS,
            chunk=horizon // SIGNS,
            cores=1,
            progress=progress,
        )

    trace = trace_of(policy, progress)
    oracle = trace_of(build_policy("oracle", world.spec))
    (first, begin), (last, end) = clock[1], clock[-1]
    steps = (last - first) * block_width(policy)
    return Measured(policy_regret(trace, oracle)[:, -1], (end - begin) / steps * 1e6)


def row(problem: str, runs: int, horizon: int) -> str:
    own = FOR_A_MEMORY.get(problem)
    world = own() if own else build_environment(problem)
    plain = measure(tracker(world.spec), world, runs, horizon)
    remembers = measure(remembering_tracker(world.spec), world, runs, horizon)
    mean, low, high = paired_difference(remembers.regret, plain.regret)
    cells = [f"`{problem}`"]
    for regret, _ in (plain, remembers):
        error = regret.std(ddof=1) / len(regret) ** 0.5
        cells += [f"{regret.mean():.0f} ± {error:.0f}", f"{regret.max():.0f}"]
    cells.append(f"{mean:+.0f} ({low:+.0f} to {high:+.0f})")
    cells += [f"{plain.microseconds:.1f}", f"{remembers.microseconds:.1f}"]
    return f"| {' | '.join(cells)} |"


HEAD = """\
| problem | tracker | worst | with the GRU | worst | difference, 95% | us | us with the GRU |
| --- | --- | --- | --- | --- | --- | --- | --- |"""


def page(table: str) -> str:
    return f"""# The tracker with a GRU, by `python -m benchmarks.tracker_memory`

Policy regret after {HORIZON:,} steps, {RUNS} runs, seed {SEED}: mean ± standard error, and the
worst run. The difference is that with the GRU minus that of the tracker, in the same worlds. The
last two columns are microseconds of a core per step and run, in blocks of {RUNS} runs.

{table}
"""


def main() -> None:
    short = "--short" in sys.argv
    runs, horizon = (SHORT_RUNS, SHORT_HORIZON) if short else (RUNS, HORIZON)
    simulation.WIDEST = runs  # no wider blocks than there are runs: the numbers stay the same
    print(HEAD, flush=True)
    rows = []
    for problem in FOR_A_MEMORY if short else PROBLEMS:
        rows.append(row(problem, runs, horizon))
        print(rows[-1], flush=True)
    if not short:
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(page("\n".join([HEAD, *rows])))


if __name__ == "__main__":
    main()
