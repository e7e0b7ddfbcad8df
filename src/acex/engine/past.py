"""What a ledger knew of an explanation when it was begun again."""

from __future__ import annotations

from collections.abc import Sequence

from acex.engine.blackbox import BlackBox
from acex.ledger import Ask


class Past:
    """What the ledger knew of this explanation when it was begun, and what each of its questions may know."""

    def __init__(self, box: BlackBox, asks: Sequence[Ask]) -> None:
        self._box, self.is_recorded = box, box.explanation is not None
        self.asks = {ask.position: ask for ask in asks}
        # What ended once stays ended, whatever others have asked since; a larger budget goes on from there.
        self.end = None if box.explanation is None else box.ledger.explanation(box.explanation).seen_at_end
        self.n_asked = len(asks)  # when it ended
        self._now: tuple[int, int] = (-1, 0)  # a position, and what can be seen there

    def seen(self, position: int) -> int:
        """The newest answer that the question at this position may know of; the same when it is asked again."""
        if position in self.asks:
            return self.asks[position].seen
        if self._now[0] != position:
            newest = self.end if self.ended_at(position) else self._box.ledger.account(self._box.model_id).last_sequence
            self._now = position, newest or 0
        return self._now[1]

    def ended_at(self, position: int) -> bool:
        """Did it end there, before the question at this position?"""
        return self.end is not None and position == self.n_asked

    def round_at(self, position: int) -> list[Ask]:
        """The questions that were asked at once from this position on; none if nothing was."""
        asks: list[Ask] = []
        while (ask := self.asks.get(position + len(asks))) is not None:
            if asks and ask.note["first"] != asks[0].note["first"]:
                break
            asks.append(ask)
        return asks
