"""What the benchmark has to know about a method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from acex.bench.ground import Ground
from acex.bench.task import Explain

CAP = 100_000  # queries, after which a method is stopped


@dataclass(frozen=True)
class Method:
    """A way to explain a row."""

    name: str
    explain: Explain
    missing: Callable[[], str | None] = lambda: None  # why it cannot run here: a package that is not installed
    without_categories: bool = False  # it knows numbers only
    package: str = "acex"  # whose version belongs to its results
    told: str = "rows"  # what it is given beside the model's labels; rows are those of the reference
    revision: int = 1  # another one as soon as the same task and seed lead to other queries: results are made again
    labels_reference: bool = False  # asks for the label of each of them, which serves for all rows that are explained

    def refuses(self, ground: Ground) -> str | None:
        """Why this method cannot explain rows of this ground; None when it can."""
        if self.without_categories and ground.is_category.any():
            return "it knows numbers only"
        return self.missing()
