"""The description of a method, and the registry that `@method` fills."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from benchmarks.scenario import Scenario
from benchmarks.task import Explain


@dataclass(frozen=True)
class Method:
    """A way to explain a row."""

    name: str
    explain: Explain
    style: dict[str, Any] = field(default_factory=dict)  # of its line in plots; colours of Okabe and Ito
    given: str = "rows"  # input in addition to the model's labels; rows are those of the reference
    revision: int = 1  # increase it if queries change for the same task and seed, to measure it again
    labels_reference: bool = False  # queries the label of every reference row, once for all explained rows
    numbers_only: bool = False  # cannot handle categories
    needs: tuple[str, str] = ("acex", "")  # module, and the command that installs it

    def missing(self) -> str | None:
        """Why this method cannot run here; None if it can."""
        module, command = self.needs
        return None if find_spec(module) else f"{self.name} needs {module}, which is not installed: {command}"

    def refuses(self, scenario: Scenario) -> str | None:
        """Why this method cannot explain rows of this scenario; None if it can."""
        if self.numbers_only and scenario.is_category.any():
            return f"{self.name} handles numbers only"
        return self.missing()


METHODS: dict[str, Method] = {}


def method(name: str, **fields: Any) -> Callable[[Explain], Explain]:
    """Register the decorated function; `fields` are those of `Method`."""

    def register(explain: Explain) -> Explain:
        METHODS[name] = Method(name, explain, **fields)
        return explain

    return register
