"""P(hit) of strategy "feasible": a small network trained on simulated searches.

The network (trained by `python -m benchmarks train`, evaluated with NumPy alone) reads about fifty numbers that
describe a point given the evidence (`belief_inputs`), among them the predictions of Gaussian processes, and returns its
log odds of being a hit. Labels, scores, known outcomes and answers of other searches are all inputs: how far to trust
each was learned too.

    x   inputs, (n, f)     W, b   weights and biases of a layer

    x -> (x - centre) / spread, clipped to [-6, 6] -> silu(x W + b) for each hidden layer -> x W + b

Models that memorised noisy rows answer differently for these than for all points around them, and no input shows this.
So without known outcomes the log odds l of an unchanged reference row become (l + ROW_ODDS) / ROW_SPREAD: less certain,
and higher for cheap rows, which the network considers unlikely.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np
from scipy.special import expit

from acex.arrays import BoolArray, FloatArray
from acex.search.belief_inputs import belief_inputs
from acex.search.evidence import Evidence, Points
from acex.search.problem import History, Problem

WEIGHTS = Path(__file__).parent / "weights.npz"
MAX_INPUT = 6.0  # in deviations from the centre; training saw hardly anything beyond
ROW_ODDS, ROW_SPREAD = 0.5, 1.25  # chosen on simulated tasks (docs/research.md)
NEARBY, NEIGHBOURS = 0.1, 16  # neighbourhood: deviation of every number, in standard deviations, and number of points


@dataclass(frozen=True, eq=False)
class BeliefNetwork:
    """Weights of a network and the names of its inputs."""

    centre: FloatArray  # (f,)
    spread: FloatArray  # (f,)
    layers: tuple[tuple[FloatArray, FloatArray], ...]  # (inputs, outputs) and (outputs,) each
    names: tuple[str, ...]  # of the inputs
    revision: int  # of `belief_inputs`

    @classmethod
    def load(cls, path: Path, prefix: str) -> BeliefNetwork:
        """The network whose arrays have this prefix in an .npz file."""
        with np.load(path) as archive:
            arrays = {name.removeprefix(prefix): archive[name] for name in archive.files if name.startswith(prefix)}
        depth = sum(name.startswith("W") for name in arrays)
        layers = tuple((arrays[f"W{i}"], arrays[f"b{i}"]) for i in range(depth))
        names = tuple(str(name) for name in arrays["names"])
        return cls(arrays["centre"], arrays["spread"], layers, names, int(arrays["revision"]))

    def arrays(self, prefix: str) -> dict[str, FloatArray]:
        """The arrays that `load` reads."""
        arrays = {"centre": self.centre, "spread": self.spread, "names": np.array(self.names)}
        arrays["revision"] = np.array(self.revision)
        for i, (W, b) in enumerate(self.layers):
            arrays |= {f"W{i}": W, f"b{i}": b}
        return {prefix + name: array for name, array in arrays.items()}

    def log_odds(self, x: FloatArray) -> FloatArray:
        """Outputs of the network, (n, f) -> (n, outputs)."""
        h: FloatArray = np.clip((x - self.centre) / self.spread, -MAX_INPUT, MAX_INPUT).astype(np.float32)
        for W, b in self.layers[:-1]:
            h = h @ W + b
            h = h * expit(h)
        W, b = self.layers[-1]
        return (h @ W + b).astype(float)


@cache
def load_network(prefix: str) -> BeliefNetwork | None:
    """The network of this prefix in the package; None before the first training."""
    return BeliefNetwork.load(WEIGHTS, prefix) if WEIGHTS.exists() else None


class Belief:
    """P(hit) of points that were not asked.

    Args:
        success: which queries are hits that count, (n,); by default all hits.
    """

    def __init__(self, problem: Problem, history: History, success: BoolArray | None = None) -> None:
        self.problem = problem
        self.evidence = Evidence(problem, history, history.is_hit if success is None else success)

    def probability(self, points: Points) -> FloatArray:
        """P(hit) of points to ask, (n,)."""
        network = load_network("hit_")
        # The network was trained on labels and probabilities. Before the first hit, numeric answers say more.
        only_numbers = self.problem.width is not None and self.evidence.best is None
        if network is None or only_numbers:
            return self.evidence.by_posterior(points)
        log_odds = network.log_odds(belief_inputs(self.evidence, points))[:, 0]
        if self.problem.hint is None:
            log_odds = np.where(points.is_row, (log_odds + ROW_ODDS) / ROW_SPREAD, log_odds)
        return np.asarray(expit(log_odds))

    def robustness(self, X: FloatArray) -> FloatArray:
        """Mean P(hit) in a small neighbourhood of points, (n,), by the Gaussian process alone."""
        if len(X) == 0:  # a forest does not accept an empty array
            return np.zeros(0)
        near = self.problem.region.space.snap((X[:, None] + self._cloud).reshape(-1, X.shape[1]))
        probability = self.evidence.by_posterior(Points(self.evidence.context, near))
        return np.asarray(probability.reshape(len(X), -1).mean(axis=1))

    @cached_property
    def _cloud(self) -> FloatArray:
        """Offsets of the neighbours, (NEIGHBOURS, d); always the same."""
        scale = self.problem.scale
        steps = np.random.default_rng(0).normal(size=(NEIGHBOURS, len(scale.deviations)))
        cloud: FloatArray = steps * NEARBY * np.where(scale.is_nominal, 0.0, scale.deviations)
        return cloud
