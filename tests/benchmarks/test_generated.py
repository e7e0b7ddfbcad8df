from __future__ import annotations

from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_moons

from benchmarks.generated import moons, tic_tac_toe


def test_moons_are_scikit_learns_with_zero_mean_and_unit_variance() -> None:
    data = moons()
    X, y = make_moons(200, noise=0.2, random_state=0)
    assert list(data.rows.columns) == ["x0", "x1"]
    assert_allclose(data.codes.mean(axis=0), 0, atol=1e-12)
    assert_allclose(data.codes.std(axis=0), 1)
    assert_allclose(data.codes * X.std(axis=0) + X.mean(axis=0), X)
    assert_array_equal(data.outcomes, y)


def test_tic_tac_toe_ends_in_958_boards_of_which_x_wins_626() -> None:
    data = tic_tac_toe()
    assert data.outcomes.value_counts().to_dict() == {"positive": 626, "negative": 332}
    assert not data.rows.duplicated().any()
    assert "".join(data.rows.iloc[0]) == "xxxxooxoo"


def test_playing_every_game_of_tic_tac_toe_ends_on_the_same_boards() -> None:
    def ends(board: str, player: str) -> set[str]:
        rows = [
            board[0:3],
            board[3:6],
            board[6:9],
            board[0::3],
            board[1::3],
            board[2::3],
            board[0::4],
            board[2:7:2],
        ]
        if "xxx" in rows or "ooo" in rows or "b" not in board:
            return {board}
        moves = [board[:i] + player + board[i + 1 :] for i in range(9) if board[i] == "b"]
        return set().union(*(ends(move, "o" if player == "x" else "x") for move in moves))

    assert {"".join(row) for row in tic_tac_toe().rows.itertuples(index=False)} == ends("b" * 9, "x")
