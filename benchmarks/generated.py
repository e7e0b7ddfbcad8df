"""Data sets that need no file: two moons, the final boards of tic-tac-toe, and images from their pixels."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from acex.datasets import OUTCOME, Dataset
from acex.space.kinds import Integer, Nominal
from acex.space.space import Space

SQUARES = [f"{row}_{column}" for row in ("top", "middle", "bottom") for column in ("left", "middle", "right")]
LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))


def moons() -> Dataset:
    """Two interleaved half circles, 200 points in the plane, zero mean and unit variance."""
    from sklearn.datasets import make_moons

    X, y = make_moons(200, noise=0.2, random_state=0)
    rows = pd.DataFrame((X - X.mean(axis=0)) / X.std(axis=0), columns=pd.Index(["x0", "x1"]))
    return Dataset(
        name="moons",
        rows=rows,
        outcomes=pd.Series(y, name=OUTCOME),
        space=Space.infer(rows, grid=False),
        target=1,
        title="Two moons (generated)",
    )


def tic_tac_toe() -> Dataset:
    """The 958 final boards of tic-tac-toe, "positive" where x has won: first wins of x, then of o, then draws.

    x moves first. Each group is sorted, with x before o before b (blank).
    """
    boards = [(_outcome(board), board) for board in product("xob", repeat=9)]
    final = [(board, winner) for wanted in ("x", "o", "draw") for winner, board in boards if winner == wanted]
    rows = pd.DataFrame([board for board, _ in final], columns=pd.Index(SQUARES), dtype="str")
    outcomes = pd.Series([winner for _, winner in final]).eq("x").map({True: "positive", False: "negative"})
    return Dataset(
        name="tic_tac_toe",
        rows=rows,
        outcomes=outcomes.astype("str").rename(OUTCOME),
        space=Space(tuple(Nominal(square, ("x", "o", "b")) for square in SQUARES)).like(rows),
        target="positive",
        title="Tic-Tac-Toe Endgame",
    )


def _outcome(board: tuple[str, ...]) -> str | None:
    """The winner, "x" or "o", or "draw"; None if a game cannot end here."""
    lead = board.count("x") - board.count("o")
    has_line = {player: any(all(board[i] == player for i in line) for line in LINES) for player in "xo"}
    # The game stops when a player completes a line, so the other player has none.
    if has_line["x"] and lead == 1 and not has_line["o"]:
        return "x"
    if has_line["o"] and lead == 0 and not has_line["x"]:
        return "o"
    if "b" not in board and lead == 1 and not any(has_line.values()):
        return "draw"
    return None


def images(
    name: str,
    pixels: np.ndarray[Any, Any],
    outcomes: np.ndarray[Any, Any],
    *,
    brightest: int,
    target: str,
    title: str,
) -> Dataset:
    """Square images, one per row of `pixels`, (n, side * side).

    Every pixel may have any value up to `brightest`, even if it is 0 in all images.
    """
    side = round(pixels.shape[1] ** 0.5)
    names = [f"pixel_{i}_{j}" for i in range(side) for j in range(side)]
    rows = pd.DataFrame(pixels, columns=pd.Index(names))
    return Dataset(
        name=name,
        rows=rows,
        outcomes=pd.Series(outcomes, name=OUTCOME, dtype="str"),
        space=Space(tuple(Integer(pixel, 0, brightest) for pixel in names)).like(rows),
        target=target,
        title=title,
    )
