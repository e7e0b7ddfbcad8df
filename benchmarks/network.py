"""Black box for images: a small convolutional network if torch is installed, otherwise a dense one."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from acex.arrays import FloatArray, IntArray

BRIGHTEST = 255.0
EPOCHS, BATCH = 3, 128


def image_classifier(seed: int) -> Any:
    """An unfitted classifier of square images, one per row, with `fit` and `predict`."""
    if find_spec("torch"):
        return Convolutional(seed)
    network = MLPClassifier((64,), max_iter=20, random_state=seed, early_stopping=True)
    return make_pipeline(FunctionTransformer(_scaled), network)


def _scaled(X: FloatArray) -> FloatArray:
    return np.asarray(X, dtype=float) / BRIGHTEST


class Convolutional:
    """Two convolutions with pooling, dropout and two dense layers, as the paper describes its black box."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._network: Any = None

    def fit(self, X: FloatArray, y: IntArray) -> Convolutional:
        """Train on images, (n, side * side), with labels 0 and 1."""
        import torch
        from torch import nn

        torch.manual_seed(self.seed)
        side = round(X.shape[1] ** 0.5)
        network = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Dropout(0.25), nn.Linear(16 * (side // 4) ** 2, 32), nn.ReLU(), nn.Linear(32, 2),
        )  # fmt: skip
        images, labels = self._images(X), torch.as_tensor(np.asarray(y))
        optimiser, loss = torch.optim.Adam(network.parameters()), nn.CrossEntropyLoss()
        network.train()
        for _ in range(EPOCHS):
            for part in torch.split(torch.randperm(len(images)), BATCH):
                optimiser.zero_grad()
                loss(network(images[part]), labels[part]).backward()
                optimiser.step()
        self._network = network.eval()
        return self

    def predict(self, X: FloatArray) -> IntArray:
        """Labels of images, (n,)."""
        import torch

        with torch.no_grad():
            labels: IntArray = self._network(self._images(X)).argmax(dim=1).numpy()
        return labels

    @staticmethod
    def _images(X: FloatArray) -> Any:
        import torch

        side = round(X.shape[1] ** 0.5)
        return torch.as_tensor(_scaled(X).astype(np.float32)).reshape(-1, 1, side, side)
