"""A ledger for one process: dicts, and no files.

Only threads of this process can claim a row, so leases never expire: a row is in flight as long as the thread that
claimed it is alive and has not claimed again.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from acex.errors import LedgerFailed
from acex.ledger.base import Account, Answer, BaseLedger, OpenModel, RowState, is_other_thread
from acex.ledger.row_keys import PlainLabel


class _Model(OpenModel):
    """`answers` decides; `index` derives the rest from it, so that an interrupt leaves nothing inconsistent."""

    now = 0.0

    def __init__(self, name: str) -> None:
        self.account = Account(name, name)
        self.rows: dict[str, RowState] = {}
        self.answers: list[Answer] = []
        self.contradictions: set[tuple[str, PlainLabel]] = set()
        self._n_indexed = 0

    def append(self, answers: Sequence[Answer], recorded_by: str) -> None:
        self.answers.extend(answers)  # one atomic step: after an interrupt, all of them are there or none
        self.index()

    def contradict(self, row: str, label: PlainLabel, recorded_by: str) -> None:
        self.contradictions.add((row, label))

    def index(self) -> None:
        while self._n_indexed < len(self.answers):
            answer = self.answers[self._n_indexed]
            row = self.rows.setdefault(answer.row, RowState())
            if not row.answers or row.answers[-1] is not answer:
                row.answers.append(answer)
            self._n_indexed += 1
        if self.account.last_sequence != self._n_indexed:
            self.account = replace(self.account, last_sequence=self._n_indexed)


class MemoryLedger(BaseLedger):
    """A ledger that lasts as long as the process."""

    is_memory = True
    lease = math.inf

    def __init__(self) -> None:
        self._models: dict[str, _Model] = {}
        self._lock = threading.RLock()
        self._pid = os.getpid()

    def __repr__(self) -> str:
        return "<acex ledger in memory>"

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError(
            "A ledger in memory cannot be sent to another process. Use a file, such as Ledger('answers.db')."
        )

    def close(self) -> None:
        """Do nothing: there is nothing to close."""

    @contextmanager
    def _open(self, model: str, rows: Sequence[str] | None = (), *, writes: bool = True) -> Iterator[_Model]:
        """The model with all its rows, locked against other threads."""
        if os.getpid() != self._pid:
            raise LedgerFailed(
                "A ledger in memory belongs to the process that made it: answers recorded here would be lost. "
                "Use a file, such as ledger='answers.db'."
            )
        with self._lock:
            found = self._models.get(model)
            if found is None:
                found = self._models[model] = _Model(model)
            found.index()
            yield found

    def _me(self) -> str:
        return f"thread {threading.get_ident()}"

    def _is_alive(self, claimed_by: str) -> bool:
        return is_other_thread(claimed_by)

    @contextmanager
    def holding(self, model: str, rows: Sequence[str]) -> Iterator[None]:
        yield

    def answers(
        self, model: str, *, after: int = 0, up_to: int | None = None, newest: int | None = None
    ) -> list[Answer]:
        with self._open(model) as found:
            wanted = found.answers[after:up_to]
            return wanted if newest is None else wanted[max(len(wanted) - newest, 0) :]

    def _labels(self, model: str) -> list[PlainLabel]:
        return list(dict.fromkeys(answer.label for answer in self.answers(model)))

    def contradicted(self, model: str) -> set[str]:
        with self._open(model) as found:
            # A correction may have accepted the other label.
            return {row for row, label in found.contradictions if found.rows[row].answers[-1].label != label}

    def copy_to(self, other: BaseLedger) -> None:
        """Copy models with their budgets, charges and newest answers to a new ledger."""
        for key in self._models:
            with self._open(key) as model:
                with other._open(key) as copy:
                    copy.account = replace(model.account, last_sequence=0)
                newest = [state.answers[-1] for state in model.rows.values() if state.answers]
                rows, labels, scores, _ = zip(*newest, strict=True) if newest else ((), (), (), ())
                other.record(key, rows, labels, scores=scores)
