"""An experiment: a question, the simulations that answer it, and claims about the result.

`files` reads it from a file. An experiment runs policies in environments, or makes a drawing that
needs no runs.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from driftbandits import check
from driftbandits.choice import Choice, parse, write
from driftbandits.experiments.claims import Claim, on_each, parse_claim, with_rivals
from driftbandits.simulation.engine import POINTS

CHOOSING = 3  # one run in three chooses settings, the others judge


@dataclass(frozen=True)
class Sweep:
    """One setting over several values.

    Attributes:
        of: Whose setting it is: "policy" or "environment".
        setting: The name of the setting.
        values: The values it takes.
    """

    of: str  # "policy" or "environment"
    setting: str
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Line:
    """One curve of an experiment: a policy in an environment.

    Attributes:
        label: The unique name of the curve in its experiment.
        policy_name: The policy's name in the legend.
        policy: The policy as written, such as `"recurrent(energy=0)"`.
        environment_name: The environment's name in the figure.
        environment: The environment as written.
        group: In a sweep, the common name of the curves that differ only in the swept value.
        value: The value of the swept setting.
        tunes: If this curve is a candidate in tuning, the label of the curve that it may replace.
    """

    label: str  # what it is called in this experiment; unique
    policy_name: str  # the policy's name in the legend
    policy: str  # as written, e.g. "recurrent(energy=0)"
    environment_name: str
    environment: str
    group: str = ""  # in a sweep: what the lines that differ in the swept value have in common
    value: Any = None  # of the swept setting
    tunes: str = ""  # the label of the line that this one is a candidate for


@dataclass(frozen=True)
class Experiment:
    """A question, the simulations that answer it, and claims about the result.

    Usually [`read_experiment`][driftbandits.read_experiment] makes one from a TOML file, whose keys
    are the attributes below.

    Attributes:
        name: The name of the folder that gets the results.
        title: The heading of the figure and of the section in the report.
        question: What the experiment is meant to answer, in a sentence or two.
        reference: The paper and section that it is from.
        environments: Pairs of a name and an environment as written. Each gets its own panel.
        policies: Pairs of a name in the legend and a policy as written.
        horizon: The number of pulls per run.
        runs: The number of repetitions.
        seed: The random seed.
        measure: A name in `MEASURES`.
        scale: The scale of the vertical axis, "linear" or "log".
        sweep: A setting that takes several values, if there is one.
        tuning: For each policy that is tuned, its settings and the values to try.
        hindsight: If true, all runs choose the tuned settings and all runs are shown.
        points: About how many times per run are recorded.
        claims: The claims, as tables like those in the file. `parsed_claims` checks them.
        readings: How you interpreted what the source leaves open.
        quick: The size of a quick look: runs, horizon and so on.
        drawing: The name of a drawing, which takes the place of policies and runs.
        times: The pulls at which a drawing is made.

    Example:
        ```python
        from driftbandits import Experiment

        experiment = Experiment(
            name="mine",
            title="Does UCB beat chance?",
            environments=(("slow", "sinusoidal(period=4000)"),),
            policies=(("ucb", "ucb"), ("chance", "uniform")),
            horizon=200,
            runs=4,
        )
        print([line.label for line in experiment.lines()])
        ```
    """

    name: str
    title: str
    question: str = ""
    reference: str = ""  # the paper and section it is from
    environments: tuple[tuple[str, str], ...] = ()  # (name, as written)
    policies: tuple[tuple[str, str], ...] = ()  # (name in the legend, as written)
    horizon: int = 10_000
    runs: int = 20
    seed: int = 0
    measure: str = "regret"
    scale: str = "linear"
    sweep: Sweep | None = None
    tuning: Mapping[str, Mapping[str, Sequence[Any]]] = field(default_factory=dict)
    hindsight: bool = False  # all runs choose the tuned settings, and all are shown
    points: int = POINTS  # recorded times per run, about
    claims: tuple[Mapping[str, Any], ...] = ()  # as written; `parsed_claims` has read them
    readings: tuple[str, ...] = ()  # how what the source leaves open was interpreted
    quick: Mapping[str, Any] | None = None  # runs, horizon and swept values of a quick look
    drawing: str | None = None
    times: tuple[int, ...] = (0,)  # of a drawing

    def lines(self) -> list[Line]:
        """Returns every curve, environment by environment."""
        return [
            line
            for environment in self.environments
            for policy in self.policies
            for line in self._swept(environment, policy)
        ]

    def _swept(self, environment: tuple[str, str], policy: tuple[str, str]) -> Iterator[Line]:
        label = self.label(policy[0], environment[0])
        if self.sweep is None:
            yield Line(label, *policy, *environment)
            yield from self._candidates(environment, policy)
            return
        for value in self.sweep.values:
            name = f"{label}, {self.sweep.setting}={value}"
            line = Line(name, *policy, *environment, group=label, value=value)
            key = f"policies.{policy[0]}" if self.sweep.of == "policy" else "environments"
            swept = with_setting(key, getattr(line, self.sweep.of), self.sweep.setting, value)
            yield replace(line, **{self.sweep.of: swept})

    def legend(self) -> list[str]:
        """Returns the names of the policies that the figures may show."""
        return [*(name for name, _ in self.policies), *map(tuned_name, self.tuning)]

    def label(self, policy: str, environment: str) -> str:
        """Returns the name of the curve of a policy in an environment."""
        return policy if len(self.environments) == 1 else f"{policy} on {environment}"

    def _candidates(self, environment: tuple[str, str], policy: tuple[str, str]) -> Iterator[Line]:
        """The policy with each combination of the settings that it is to be tuned over."""
        name, text = policy
        grid = self.tuning.get(name, {})
        for values in product(*grid.values()) if grid else ():
            chosen = dict(zip(grid, values, strict=True))
            tried = ", ".join(f"{setting}={write(value)}" for setting, value in chosen.items())
            for setting, value in chosen.items():
                text = with_setting(f"policies.{name}", text, setting, value)
            label = self.label(f"{name}, {tried}", environment[0])
            tunes = self.label(name, environment[0])
            yield Line(label, name, text, *environment, tunes=tunes)

    def with_size(
        self, runs: int | None = None, horizon: int | None = None, seed: int | None = None
    ) -> "Experiment":
        """Returns the same experiment with other sizes.

        Args:
            runs: The number of repetitions. None leaves it as it is, here and below.
            horizon: The number of pulls per run.
            seed: The random seed.
        """
        given = {"runs": runs, "horizon": horizon, "seed": seed}
        changed = replace(self, **{k: v for k, v in given.items() if v is not None})  # type: ignore[arg-type]
        check_sizes(changed)
        return changed

    def parsed_claims(self) -> list[Claim]:
        """Returns the claims, checked, with their shorthands spelled out.

        Raises:
            InputError: If a claim has a mistake.
        """
        lines, swept = self._shown(), list(self.sweeps())
        environments = [name for name, _ in self.environments]
        return [
            parse_claim(with_rivals(table, lines), list(lines), swept)
            for claim in self.claims
            for table in on_each(claim, environments, self.label)
        ]

    def _shown(self) -> dict[str, tuple[str, str]]:
        """The curves that claims may name, each with the names of its policy and environment."""
        lines = [line for line in self.lines() if not line.tunes]
        written = {line.label: (line.policy_name, line.environment_name) for line in lines}
        tuned = {
            self.label(tuned_name(name), environment): (name, environment)
            for name in self.tuning
            for environment, _ in self.environments
        }
        return written | tuned

    def sweeps(self) -> dict[str, dict[Any, str]]:
        """Returns, for each policy and environment of a sweep, the label of each value's curve."""
        if self.sweep is None:
            return {}
        found: dict[str, dict[Any, str]] = {}
        for line in self.lines():
            found.setdefault(line.group, {})[line.value] = line.label
        return found

    def made_quick(self) -> "Experiment":
        """Returns the experiment at the size in `quick`, or as it is if there is none."""
        if not self.quick:
            return self
        chosen = self.quick.get("environments", [name for name, _ in self.environments])
        tuning = self.tuning if self.quick.get("tuning", True) else {}
        fewer = replace(
            self,
            environments=tuple(item for item in self.environments if item[0] in chosen),
            tuning=tuning,
            hindsight=self.hindsight and bool(tuning),
        )
        small = fewer.with_size(self.quick.get("runs"), self.quick.get("horizon"))
        kept = self.quick.get("values")
        if kept is None or self.sweep is None:
            return small
        claims = tuple(
            {**claim, "values": [value for value in claim["values"] if value in kept]}
            if "values" in claim
            else claim
            for claim in self.claims
        )
        return replace(small, sweep=replace(self.sweep, values=tuple(kept)), claims=claims)


def tuned_name(policy: str) -> str:
    """The name of a policy with its best settings."""
    return f"{policy} tuned"


def with_setting(key: str, text: str, setting: str, value: Any) -> str:
    choice = parse(key, text)
    return str(Choice(choice.name, {**choice.settings, setting: value}))


def check_sizes(experiment: Experiment) -> None:
    check.integer(horizon=experiment.horizon, runs=experiment.runs, points=experiment.points)
    if experiment.tuning and not experiment.hindsight and experiment.runs < CHOOSING:
        check.fail("runs", f"at least {CHOOSING} where something is tuned", experiment.runs)
    check.integer(seed=experiment.seed, at_least=0)
