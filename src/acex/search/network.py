"""A small network as plain arrays: traits in, log odds out. Used with NumPy alone.

Trained by `python -m benchmarks train`.

x -> (x - centre) / spread, cut off at 6 -> silu(x W + b) for each hidden layer -> x W + b
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import expit

from acex.arrays import FloatArray

MOST = 6.0  # deviations from the centre; what lies further out was hardly seen in training


@dataclass(frozen=True, eq=False)
class Network:
    """Weights and what they were trained to read."""

    centre: FloatArray  # (f,)
    spread: FloatArray  # (f,)
    layers: tuple[tuple[FloatArray, FloatArray], ...]  # (inputs, outputs) and (outputs,) each
    names: tuple[str, ...]  # of the inputs
    revision: int  # of `traits`

    @classmethod
    def load(cls, path: Path, prefix: str) -> Network:
        """The network of this name in an archive of arrays."""
        with np.load(path) as arrays:
            held = {name.removeprefix(prefix): arrays[name] for name in arrays.files if name.startswith(prefix)}
        depth = sum(name.startswith("W") for name in held)
        layers = tuple((held[f"W{i}"], held[f"b{i}"]) for i in range(depth))
        names = tuple(str(name) for name in held["names"])
        return cls(held["centre"], held["spread"], layers, names, int(held["revision"]))

    def arrays(self, prefix: str) -> dict[str, FloatArray]:
        """What `load` reads."""
        held = {"centre": self.centre, "spread": self.spread, "names": np.array(self.names)}
        held["revision"] = np.array(self.revision)
        for i, (W, b) in enumerate(self.layers):
            held |= {f"W{i}": W, f"b{i}": b}
        return {prefix + name: array for name, array in held.items()}

    def scaled(self, x: FloatArray) -> FloatArray:
        """Inputs as the first layer sees them, (n, f), in single precision."""
        out: FloatArray = np.clip((x - self.centre) / self.spread, -MOST, MOST).astype(np.float32)
        return out

    def log_odds(self, x: FloatArray) -> FloatArray:
        """The outputs for inputs, (n, f) -> (n, outputs)."""
        h = self.scaled(x)
        for W, b in self.layers[:-1]:
            h = h @ W + b
            h = h * expit(h)
        W, b = self.layers[-1]
        return (h @ W + b).astype(float)
