"""A ledger in memory whose process is killed: what was paid for is there for the next one, and for nobody else."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import acex
from acex.ledger import Ledger
from ledgers import MODEL, processes, questions, rows

DATA = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 3)), columns=["a", "b", "c"])
ROW = DATA.iloc[0] * 0 - 1


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ACEX_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*"))


def sends(log: Path, kill_after: int | None = None) -> Any:
    """A model that notes each row it is sent, and once it has been sent so many ends the process."""

    def predict(X: pd.DataFrame) -> list[str]:
        if kill_after is not None and log.exists() and len(log.read_text().splitlines()) >= kill_after:
            os.kill(os.getpid(), signal.SIGKILL)
        with log.open("a") as file:
            file.writelines(f"{row.tolist()}\n" for row in X.to_numpy())
        return ["yes" if row.sum() > 1 else "no" for row in X.to_numpy()]

    return predict


def explain(log: Path, kill_after: int | None = None, model_id: str | None = "bank-1") -> acex.Explanation:
    explainer = acex.Explainer(sends(log, kill_after), DATA, model_id=model_id, plausibility=None)
    return explainer.explain(ROW, target="yes", budget=20)


def explain_in(folder: Path, *args: Any) -> None:
    os.environ["ACEX_STATE"] = str(folder)  # a process may have been forked from one that knew another
    explain(*args)


def exit_code(folder: Path, *args: Any) -> int | None:
    child = processes.Process(target=explain_in, args=(folder, *args))
    child.start()
    child.join(120)
    return child.exitcode


def is_killed(folder: Path, *args: Any) -> bool:
    return exit_code(folder, *args) == -signal.SIGKILL


def test_an_explanation_that_is_killed_pays_for_no_answer_again(tmp_path: Path, folder: Path) -> None:
    log = tmp_path / "log"
    for kill_after in (3, 7):  # the second takes over from the first, and is killed too
        assert is_killed(folder, log, kill_after)
        assert len(left(folder)) == 1
    found = explain(log)
    sent = log.read_text().splitlines()
    assert len(sent) == len(set(sent)) > 7
    assert any(
        "answers of an earlier process, which did not come to its end" in remark for remark in found.plan.remarks
    )
    assert found.counterfactual is not None


class Tired(Exception):
    """What a model may raise."""


def tired(log: Path, after: int) -> Any:
    """The same model, which fails once it has been sent so many rows."""
    awake = sends(log)

    def predict(X: pd.DataFrame) -> list[str]:
        if log.exists() and len(log.read_text().splitlines()) >= after:
            raise Tired("no more")
        return list(awake(X))

    return predict


def fail_in(folder: Path, log: Path, after: int) -> None:
    os.environ["ACEX_STATE"] = str(folder)
    explainer = acex.Explainer(tired(log, after), DATA, model_id="bank-1", plausibility=None)
    with pytest.raises(acex.ModelFailed):
        explainer.explain(ROW, target="yes", budget=20)


def test_what_was_paid_for_before_a_model_failed_is_there_for_the_next_process(tmp_path: Path, folder: Path) -> None:
    log = tmp_path / "log"
    for after in (3, 7):
        child = processes.Process(target=fail_in, args=(folder, log, after))
        child.start()
        child.join(120)
        assert child.exitcode == 0
        assert len(left(folder)) == 1
    assert exit_code(folder, log) == 0
    sent = log.read_text().splitlines()
    assert len(sent) == len(set(sent)) > 7
    assert left(folder) == []


def test_a_process_that_comes_to_its_end_leaves_nothing(tmp_path: Path, folder: Path) -> None:
    assert exit_code(folder, tmp_path / "log") == 0
    assert left(folder) == []


def test_a_model_without_a_name_or_of_other_features_gets_nobodys_answers(tmp_path: Path, folder: Path) -> None:
    assert is_killed(folder, tmp_path / "unnamed", 3, None)
    assert left(folder) == []
    assert is_killed(folder, tmp_path / "log", 3, "bank-1")
    other = acex.Explainer(sends(tmp_path / "other"), DATA.rename(columns={"a": "z"}), model_id="bank-1")
    another = acex.Explainer(sends(tmp_path / "other"), DATA, model_id="bank-2")
    assert (other.ledger.found, another.ledger.found) == (0, 0)
    assert acex.Explainer(sends(tmp_path / "log"), DATA, model_id="bank-1").ledger.found > 0


def test_what_a_process_that_runs_has_paid_for_is_left_to_it(folder: Path) -> None:
    first = Ledger(name="bank")
    first.claim(MODEL, questions(1))
    first.settle(MODEL, rows(1), ["good"])
    assert Ledger(name="bank").known(MODEL, rows(1)) == {}
    assert len(left(folder)) == 1
    del first
    assert left(folder) == []


def test_without_a_folder_to_write_to_it_is_said_and_goes_on(folder: Path, tmp_path: Path) -> None:
    folder.write_text("a file where the folder should be")
    with pytest.warns(UserWarning, match="If this process is killed, what it paid for is lost: .*ACEX_STATE"):
        found = explain(tmp_path / "log")
    assert found.counterfactual is not None
