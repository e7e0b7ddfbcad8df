"""What a data set is: readable rows, their labels, and the space the rows live in."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from acex.arrays import FloatArray, IntArray
from acex.space.kinds import Integer
from acex.space.space import Space


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows with labels, ready to fit a model on and to explain.

    Example:
        >>> import acex.datasets
        >>> data = acex.datasets.loan()
        >>> data.target
        'approved'
    """

    name: str
    rows: pd.DataFrame  # features only
    labels: pd.Series[Any]
    space: Space
    target: Hashable  # the label people would want
    title: str
    positive: tuple[Hashable, ...]  # the labels that count as 1

    @cached_property
    def codes(self) -> FloatArray:
        """The rows as points, (n, d)."""
        return self.space.encode(self.rows)

    @cached_property
    def binary(self) -> IntArray:
        """1 where the label is a positive one and 0 elsewhere, (n,)."""
        return self.labels.isin(self.positive).to_numpy().astype(np.intp)


def images(
    name: str,
    pixels: npt.NDArray[Any],
    labels: npt.NDArray[Any],
    *,
    brightest: int,
    target: str,
    title: str,
) -> Dataset:
    """Square images, one a row of `pixels`, (n, side * side).

    Every pixel may take each value up to `brightest`, also where the data never light it.
    """
    side = round(pixels.shape[1] ** 0.5)
    names = [f"pixel_{i}_{j}" for i in range(side) for j in range(side)]
    rows = pd.DataFrame(pixels, columns=pd.Index(names))
    return Dataset(
        name=name,
        rows=rows,
        labels=pd.Series(labels, name="target", dtype="str"),
        space=Space(tuple(Integer(pixel, 0, brightest) for pixel in names)).like(rows),
        target=target,
        title=title,
        positive=(target,),
    )
