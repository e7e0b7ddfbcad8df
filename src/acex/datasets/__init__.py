"""Data sets to try things on: `load("loan")`, or a function of the same name.

`loan`, `moons`, `tic_tac_toe`, `breast_cancer` and `digits` need nothing. The published tables in `PAPER`
and `mnist` are read from the folder that the environment variable ACEX_DATA names, or downloaded from
OpenML.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from acex.datasets.bundled import breast_cancer, digits, loan, moons, tic_tac_toe
from acex.datasets.dataset import Dataset
from acex.datasets.published import PAPER, mnist, paper

__all__ = [
    "PAPER",
    "Dataset",
    "breast_cancer",
    "digits",
    "load",
    "loan",
    "mnist",
    "moons",
    "names",
    "paper",
    "tic_tac_toe",
]

# What is generated or enumerated comes last, so that tic_tac_toe needs no file.
_LOADERS: dict[str, Callable[[], Dataset]] = {
    **{name: partial(paper, name) for name in PAPER},
    "mnist": mnist,
    "loan": loan,
    "moons": moons,
    "breast_cancer": breast_cancer,
    "tic_tac_toe": tic_tac_toe,
    "digits": digits,
}


def names() -> list[str]:
    """The names that `load` knows, in alphabetical order."""
    return sorted(_LOADERS)


def load(name: str) -> Dataset:
    """The data set of this name; "-" and "_" are alike.

    Example:
        >>> import acex.datasets
        >>> len(acex.datasets.load("tic-tac-toe").rows)
        958
    """
    loader = _LOADERS.get(name.replace("-", "_"))
    if loader is None:
        raise ValueError(f"{name!r} is not a data set; there are {', '.join(names())}.")
    return loader()
