"""What each policy and environment is for: the order of the reference, and worlds for examples."""

from typing import NamedTuple


class Use(NamedTuple):
    """What policies or environments are for."""

    title: str
    names: tuple[str, ...]
    world: str = ""  # an environment that shows it, for policies


POLICY_USES = (
    Use("A start", ("tracker",), "sinusoidal"),
    Use(
        "Rewards that do not change",
        ("thompson", "gaussian_thompson", "ucb", "kl_ucb", "epsilon_greedy"),
        "bernoulli",
    ),
    Use("Forgetting", ("sw_ucb", "d_ucb", "sw_thompson", "discounted_thompson"), "sinusoidal"),
    Use("Change detection", ("cusum_ucb", "m_ucb", "glr_ucb", "bandit_over_bandit"), "abrupt"),
    Use("An adversary", ("exp3", "exp3_s", "rexp3"), "adversarial"),
    Use(
        "Arms that wear out",
        ("swa", "fewa", "eff_fewa", "raw_ucb", "eff_raw_ucb"),
        "rotting(num_arms=5, life=200)",
    ),
    Use("Contexts", ("lin_ts", "lin_ucb", "neural_linear", "neural_ucb", "neural_ts"), "nonlinear"),
    Use(
        "Contexts, with drift",
        ("d_lin_ts", "d_lin_ucb", "sw_lin_ucb", "recurrent_linear"),
        "rotating_linear",
    ),
    Use("The paper's own", ("recurrent",), "sinusoidal"),
    Use("Baselines", ("uniform", "oracle"), "bernoulli"),
)
ENVIRONMENT_USES = (
    Use("Rewards that do not change", ("bernoulli", "close_arms")),
    Use("Sudden changes", ("abrupt", "flipping", "shocks")),
    Use("Gradual drift", ("sinusoidal", "seasonal", "random_walk", "trending")),
    Use("Arms that change by being pulled", ("rotting", "rising", "recharging", "following")),
    Use(
        "Contexts",
        (
            "linear",
            "rotating_linear",
            "flipping_linear",
            "sparse_linear",
            "nonlinear",
            "wheel",
            "rotating_wheel",
        ),
    ),
    Use("Arms with features", ("shared_linear", "articles")),
    Use("Your data, or an adversary", ("table", "adversarial")),
    Use(
        "Transformations of any environment",
        ("max_consecutive", "fatigue", "sleeping", "delayed", "noisy", "heavy_tailed", "scaled"),
    ),
)


def use_of(name: str) -> Use:
    """The use that a policy, an environment or a transformation is listed under."""
    return next(use for use in (*POLICY_USES, *ENVIRONMENT_USES) if name in use.names)
