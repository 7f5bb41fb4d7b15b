"""Makes recurrent.npz: what PyTorch computes for the Recurrent Bandit, in double precision.

Run it in a Python of its own; the tests need its numbers only, not PyTorch:

    pip install torch==2.13.0
    python tests/policies/references/make_recurrent.py

Weights are stored as one vector: for each layer the weights and bias of the inputs, then those of
the hidden state; then the weights and bias of the output.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

STEPS = 20
LEARNING_RATE = 1e-3


class Case(NamedTuple):
    seed: int
    context_dim: int
    hidden: int
    num_arms: int
    dropout: float
    energy: float
    temperature: float
    steps: tuple[int, ...]  # after which the weights and square averages are stored


CASES = {
    "energy": Case(1, 3, 10, 5, 0.0, 0.1, 1.0, (1, 5, 20)),
    "temperature": Case(2, 3, 10, 5, 0.0, 0.0, 2.0, (1, 5, 20)),
    "energy_dropout": Case(3, 3, 10, 5, 0.3, 0.1, 1.0, (1, 5, 20)),
    "temperature_dropout": Case(4, 3, 10, 5, 0.3, 0.0, 2.0, (1, 5, 20)),
    "no_context": Case(5, 0, 32, 10, 0.1, 0.1, 1.0, (20,)),
}


class Network(nn.Module):
    """Two layers by hand, since nn.GRU takes no masks and drops nothing after its last layer."""

    def __init__(self, inputs: int, hidden: int, num_arms: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.GRUCell(inputs, hidden), nn.GRUCell(hidden, hidden)])
        self.output = nn.Linear(hidden, num_arms)

    def forward(self, inputs: Tensor, hidden: Tensor, scales: Tensor) -> tuple[Tensor, Tensor]:
        signal, new_hidden = inputs, []
        for layer, h, scale in zip(self.layers, hidden, scales, strict=True):
            new_hidden.append(layer(signal, h))
            signal = new_hidden[-1] * scale
        return self.output(signal), torch.stack(new_hidden)

    def ordered(self) -> list[nn.Parameter]:
        gates = [(g.weight_ih, g.bias_ih, g.weight_hh, g.bias_hh) for g in self.layers]
        return [*gates[0], *gates[1], self.output.weight, self.output.bias]


def flat(tensors: list[Tensor]) -> np.ndarray:
    return np.concatenate([t.detach().numpy().ravel() for t in tensors])


def loss_of(logits: Tensor, arm: int, advantage: float, energy: float) -> Tensor:
    log_probabilities = torch.log_softmax(logits, dim=0)
    return -advantage * log_probabilities[arm] + energy * (log_probabilities.exp() @ logits) ** 2


def draw_data(case: Case) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(case.seed)
    shape = (STEPS, 2, case.hidden)
    contexts = rng.normal(size=(STEPS, case.context_dim)).astype(np.float32)
    return {
        "inputs": contexts if case.context_dim else np.ones((STEPS, 1), np.float32),
        "hidden": rng.uniform(-1, 1, shape).astype(np.float32),
        "masks": rng.random(shape) >= case.dropout,
        "arms": rng.integers(case.num_arms, size=STEPS),
        "rewards": rng.uniform(-1, 2, STEPS).astype(np.float32),
    }


def train(network: Network, case: Case, data: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """One step per pull, from the first of the given hidden states."""
    weights = network.ordered()
    optimizer = torch.optim.RMSprop(weights, lr=LEARNING_RATE)
    hidden = torch.from_numpy(data["hidden"][0]).double()
    scales = torch.from_numpy(data["masks"] / (1 - case.dropout))
    traces = {"loss": [], "gradient": [], "learned_hidden": [], "weights": [], "squares": []}
    for t, inputs in enumerate(torch.from_numpy(data["inputs"]).double()):
        baseline = data["rewards"][:t].mean(dtype=np.float64) if t else 0.0
        logits, hidden = network(inputs, hidden, scales[t])
        advantage = float(data["rewards"][t] - baseline)
        loss = loss_of(logits / case.temperature, int(data["arms"][t]), advantage, case.energy)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        hidden = hidden.detach()
        if t == 0:
            traces["loss"].append(loss.item())
            traces["gradient"].append(flat([w.grad for w in weights]))
        traces["learned_hidden"].append(hidden.numpy())
        if t + 1 in case.steps:
            traces["weights"].append(flat(weights))
            traces["squares"].append(flat([optimizer.state[w]["square_avg"] for w in weights]))
    return {name: np.array(values, np.float32) for name, values in traces.items()}


def compute(case: Case) -> dict[str, np.ndarray]:
    torch.manual_seed(case.seed)
    data = draw_data(case)
    network = Network(data["inputs"].shape[1], case.hidden, case.num_arms).double()
    with torch.no_grad():
        for weights in network.parameters():  # as single precision will read them back
            weights.copy_(weights.float().double())
        initial = flat(network.ordered()).astype(np.float32)
        given = [torch.from_numpy(data[name]).double() for name in ("inputs", "hidden", "masks")]
        passes = [network(x, h, m / (1 - case.dropout)) for x, h, m in zip(*given, strict=True)]
    return {
        **{name: np.array(value) for name, value in case._asdict().items()},
        **data,
        "initial": initial,
        "logits": np.array([logits.numpy() for logits, _ in passes], np.float32),
        "new_hidden": np.array([hidden.numpy() for _, hidden in passes], np.float32),
        **train(network, case, data),
    }


def main() -> None:
    numbers = {
        f"{name}/{key}": value
        for name, case in CASES.items()
        for key, value in compute(case).items()
    }
    np.savez_compressed(Path(__file__).with_name("recurrent.npz"), **numbers)


if __name__ == "__main__":
    main()
