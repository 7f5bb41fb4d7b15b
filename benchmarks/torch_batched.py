"""The Recurrent Bandit in PyTorch as fast as we could make it: many networks in one set of tensors.

The gradients are written by hand: of a matrix they are outer products, which are never kept for all
networks. `torch.compile` fuses what remains, above all RMSprop, into one pass over the weights.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from benchmarks.torch_loop import DROPOUT, ENERGY, HIDDEN, LEARNING_RATE

DECAY, EPSILON = 0.99, 1e-8
EAGER_BLOCK = 10  # networks whose gradients stay in cache
Parameters = dict[str, Tensor]


def init(networks: int, num_arms: int) -> Parameters:
    shapes = {
        "inputs1": (3 * HIDDEN, 1),
        "inputs2": (3 * HIDDEN, HIDDEN),
        "hidden1": (3 * HIDDEN, HIDDEN),
        "hidden2": (3 * HIDDEN, HIDDEN),
        "output": (num_arms, HIDDEN),
    }
    shapes |= {f"{name}_bias": shape[:1] for name, shape in shapes.items()}
    bound = HIDDEN**-0.5
    return {
        name: torch.empty(networks, *shape).uniform_(-bound, bound)
        for name, shape in shapes.items()
    }


def affine(w: Parameters, name: str, x: Tensor) -> Tensor:
    return torch.bmm(w[name], x[:, :, None])[:, :, 0] + w[f"{name}_bias"]


def gru(from_input: Tensor, from_hidden: Tensor, h: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The next hidden state, and what its gradient needs."""
    (r_in, u_in, n_in), (r_h, u_h, n_h) = from_input.chunk(3, 1), from_hidden.chunk(3, 1)
    reset, update = torch.sigmoid(r_in + r_h), torch.sigmoid(u_in + u_h)
    new = torch.tanh(n_in + reset * n_h)
    return (1 - update) * new + update * h, (reset, update, new, n_h, h)


def gru_gradients(above: Tensor, kept: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
    """Of the gates' sums from the input, and of those from the hidden state."""
    reset, update, new, n_h, h = kept
    d_new = above * (1 - update) * (1 - new**2)
    d_reset = d_new * n_h * reset * (1 - reset)
    d_update = above * (h - new) * update * (1 - update)
    return (
        torch.cat([d_reset, d_update, d_new], 1),
        torch.cat([d_reset, d_update, d_new * reset], 1),
    )


def forward(
    w: Parameters, h1: Tensor, h2: Tensor, masks: Tensor
) -> tuple[Tensor, Tensor, Tensor, tuple[Tensor, ...], tuple[Tensor, ...]]:
    next1, kept1 = gru(w["inputs1"][:, :, 0] + w["inputs1_bias"], affine(w, "hidden1", h1), h1)
    from_input = affine(w, "inputs2", next1 * masks[0])
    next2, kept2 = gru(from_input, affine(w, "hidden2", h2), h2)
    return affine(w, "output", next2 * masks[1]), next1, next2, kept1, kept2


def logit_gradient(logits: Tensor, arms: Tensor, advantage: Tensor) -> Tensor:
    p = torch.softmax(logits, 1)
    energy = (p * logits).sum(1, keepdim=True)
    pulled = torch.nn.functional.one_hot(arms, logits.shape[1])
    return advantage[:, None] * (p - pulled) + ENERGY * 2 * energy * p * (1 + logits - energy)


def descend(w: Tensor, v: Tensor, g: Tensor) -> None:
    """RMSprop."""
    v.mul_(DECAY).addcmul_(g, g, value=1 - DECAY)
    w.addcdiv_(g, v.sqrt().add_(EPSILON), value=-LEARNING_RATE)


def outer(d: Tensor, x: Tensor) -> Tensor:
    return d[:, :, None] * x[:, None, :]


def learn(
    w: Parameters,
    v: Parameters,
    d: Tensor,
    next1: Tensor,
    next2: Tensor,
    kept1: tuple[Tensor, ...],
    kept2: tuple[Tensor, ...],
    masks: Tensor,
    block: int,
) -> None:
    """One RMSprop step from the gradient of the logits, a block of networks at a time."""
    above2 = torch.bmm(d[:, None], w["output"])[:, 0] * masks[1]
    d_in2, d_h2 = gru_gradients(above2, kept2)
    above1 = torch.bmm(d_in2[:, None], w["inputs2"])[:, 0] * masks[0]
    d_in1, d_h1 = gru_gradients(above1, kept1)
    pairs = {
        "inputs1": (d_in1, torch.ones_like(d_in1[:, :1])),
        "inputs2": (d_in2, next1 * masks[0]),
        "hidden1": (d_h1, kept1[-1]),
        "hidden2": (d_h2, kept2[-1]),
        "output": (d, next2 * masks[1]),
    }
    for name, (gradient, x) in pairs.items():
        descend(w[f"{name}_bias"], v[f"{name}_bias"], gradient)
        for some in zip(*(t.split(block) for t in (w[name], v[name], gradient, x)), strict=True):
            descend(some[0], some[1], outer(some[2], some[3]))


def contestant(
    networks: int = 100,
    num_arms: int = 10,
    period: int = 10_000,
    seed: int = 0,
    threads: int = 2,
    compiled: bool = True,
) -> Callable[[int], Tensor]:
    """Takes a number of steps of every network; returns their regrets so far."""
    torch.set_num_threads(threads)
    torch.manual_seed(seed)
    think = torch.compile(forward) if compiled else forward
    improve = torch.compile(learn) if compiled else learn
    block = networks if compiled else EAGER_BLOCK
    w = init(networks, num_arms)
    v = {name: torch.zeros_like(value) for name, value in w.items()}
    theta = torch.rand(networks, num_arms)
    phases = torch.arange(num_arms) / num_arms
    h1 = h2 = torch.zeros(networks, HIDDEN)
    baseline, regret, t = torch.zeros(networks), torch.zeros(networks), 0

    @torch.no_grad()
    def proceed(steps: int) -> Tensor:
        nonlocal h1, h2, baseline, regret, t
        torch.set_num_threads(threads)
        for t in range(t, t + steps):  # noqa: B020
            masks = (torch.rand(2, networks, HIDDEN) >= DROPOUT) / (1 - DROPOUT)
            logits, next1, next2, kept1, kept2 = think(w, h1, h2, masks)
            arms = torch.multinomial(torch.softmax(logits, 1), 1)[:, 0]
            means = theta * torch.sin(2 * torch.pi * (t / period + phases)).abs()
            mean = means.gather(1, arms[:, None])[:, 0]
            reward = (torch.rand(networks) < mean).float()
            advantage = reward - baseline
            d = logit_gradient(logits, arms, advantage)
            improve(w, v, d, next1, next2, kept1, kept2, masks, block)
            h1, h2 = next1, next2
            baseline = baseline + advantage / (t + 1)
            regret = regret + means.amax(1) - mean
        t += 1
        return regret

    return proceed
