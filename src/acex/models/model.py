"""`acex.Model`: wraps a model together with its name, class names, noise and other options of the engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from functools import cached_property
from typing import Any, TypeAlias

from acex.arrays import Rows, aligned_answer, row_wise_advice
from acex.errors import ModelFailed
from acex.ledger.base import model_key
from acex.models.adapters import adapted, as_numeric, as_predict, known_labels, no_labels
from acex.models.http import HttpModel
from acex.models.labels import (
    Predict,
    Scored,
    as_labels,
    as_numbers,
    as_scores,
    checked_class_names,
    has_fractions,
    without_class_names,
)
from acex.search.votes import Noise, Share
from acex.values import Label, check_positive

Scores: TypeAlias = list[tuple[Any, float]]  # the probability of each label, for one row


class Model:
    """A model that needs a name, class names, probabilities, repeated queries or a time limit.

    Wherever a `Model` is accepted, a plain object or function is accepted too and gets the defaults.

    Args:
        predict: a function from rows to one label per row, an object with `predict` (and `predict_proba` for
            `scores`), an `HttpModel`, or a model from `load_model`; None if all labels come from `Session.tell`.
        name: the name of the model in a ledger; by default the `model_id` of a file or an `HttpModel`.
        version: the version of the model; a part of its name in a ledger, so that a new version has its own answers.
        class_names: what the labels mean, such as {0: "rejected", 1: "approved"}.
        scores: use and record the probability of each label; the decision is then the likeliest label.
        noise: the share of answers that are wrong by chance, below 0.5; "auto" estimates it from repeated queries.
        confirm: with noise, by how many the answers for a returned row must outnumber those against it.
        timeout: seconds after which a query counts as failed; None means no limit.

    Example:
        >>> import acex
        >>> model = acex.Model(lambda rows: rows["income"] > 3000, name="loans", version="2026-11")
        >>> model.identity(is_shared=True)
        'loans@2026-11'
    """

    def __init__(
        self,
        predict: Any,
        *,
        name: str | None = None,
        version: str | None = None,
        class_names: Mapping[Any, str] | None = None,
        scores: bool = False,
        noise: Share = 0,
        confirm: int = 3,
        timeout: float | None = None,
    ) -> None:
        if isinstance(predict, Model):
            raise TypeError("predict is already an acex.Model; set name, version and the rest there.")
        if isinstance(predict, HttpModel):
            _refuse_set_twice(predict, version=version, timeout=timeout)
        check_positive("timeout", timeout, "number of seconds", optional=True)
        self.wrapped, self.scores, self.timeout = predict, bool(scores), timeout
        self.noise, self.confirm = noise, confirm
        self.voting = Noise.of(noise, confirm)  # None without noise
        if self.voting is not None and scores:
            raise ValueError("noise needs labels: it cannot be combined with scores=True.")
        self.name, self.version = _name_and_version(predict, name, version)
        self._adapted = _refuse_query if predict is None else adapted(predict)
        self.no_labels: str | None = no_labels(self._adapted)  # why it returns numbers; None if it returns labels
        if self.no_labels is not None and scores:
            raise TypeError(f"scores=True needs a model with labels. {self.no_labels}")
        self._predict = as_predict(self._adapted, self.scores) if self.no_labels is None else self._predict_numbers
        self.labels: list[Label] | None = known_labels(self._adapted)  # None if unknown
        self.class_names = {} if class_names is None else checked_class_names(class_names, self.labels)

    @classmethod
    def of(cls, model: Any) -> Model:
        """The model itself if it is a `Model`, otherwise a `Model` with the defaults."""
        return model if isinstance(model, Model) else cls(model)

    def __repr__(self) -> str:
        return f"Model({self.wrapped!r}, name={self.name!r}, version={self.version!r})"

    @property
    def kind(self) -> str:
        """The type of the model, as a description."""
        return "model whose labels come from tell" if self.wrapped is None else type(self.wrapped).__name__

    @property
    def priced(self) -> HttpModel | None:
        """The wrapped `HttpModel` if it has token prices, otherwise None."""
        model = self.wrapped
        return model if isinstance(model, HttpModel) and model.token_prices is not None else None

    @property
    def rows_per_request(self) -> int | None:
        """The maximum number of rows per request; None if there is no limit."""
        return self.wrapped.rows_per_request if isinstance(self.wrapped, HttpModel) else None

    @property
    def labels_by_name(self) -> dict[Label, Label]:
        """The label of each class name."""
        return {name: label for label, name in self.class_names.items()}

    def identity(self, *, is_shared: bool) -> str:
        """The key of the model in a ledger: its name, with "@" and the version if it has one.

        Args:
            is_shared: whether others use the ledger too, so that the key must be unique to this model.

        Raises:
            ValueError: the ledger is shared, and the model has no name.
        """
        if self.name is None and is_shared:
            raise ValueError(
                f"A ledger needs a name for this {self.kind}, such as acex.Model(model, name='loans', "
                f"version='2026-11') (in the shell --model-name); change the version whenever the model changes."
            )
        return model_key(self.name or "model", self.version)

    def to_labels(self, values: Any) -> Any:
        """The values with class names replaced by their labels; None stays None."""
        return without_class_names(values, self.labels_by_name)

    def read(self, answers: Any, n: int) -> list[Label]:
        """The model's answers to n rows, obtained elsewhere, as labels or numbers; class names are allowed.

        Raises:
            ValueError: there is not exactly one answer per row, or an answer is not a label of this model.
        """
        if self.no_labels is not None or (self.labels is None and has_fractions(answers)):
            return as_numbers(self.to_labels(answers), n)
        return as_labels(self.to_labels(answers), n, self.labels)

    def send(self, rows: Rows, *, numbers: bool = False) -> tuple[list[Label], list[Scores] | None]:
        """Query the model: one label (or number) per row, and with `scores` the probabilities of each row's labels.

        Raises:
            ModelFailed: the model raised, or did not return one of its labels (or a number) per row.
        """
        predict = self._predict_numbers if numbers else self._predict
        try:
            answer = aligned_answer(predict, rows)
        except ModelFailed:  # from an HttpModel, which records what may have been charged
            raise
        except Exception as error:
            raise ModelFailed(f"The model raised {type(error).__name__}: {error}{row_wise_advice(error)}") from error
        n = len(rows)
        try:
            if isinstance(answer, Scored):
                return as_labels(answer.labels, n), as_scores(answer, n)
            return as_numbers(answer, n) if numbers else as_labels(answer, n, self.labels), None
        except ValueError as error:
            what = "number" if numbers else "label"
            advice = row_wise_advice(answer)
            raise ModelFailed(f"The model's answer is not one {what} per row: {error}.{advice}") from None

    @cached_property
    def _predict_numbers(self) -> Predict:
        return as_numeric(self._adapted)


def _refuse_query(rows: Rows) -> Any:
    raise ModelFailed("There is no model to query; labels come from tell.", in_doubt=0)


def _refuse_set_twice(model: HttpModel, **given: Any) -> None:
    defaults = {field.name: field.default for field in fields(HttpModel)}
    for name, value in given.items():
        own = getattr(model, name)
        if value is not None and own != defaults[name]:
            raise ValueError(f"{name} is set in Model ({value!r}) and in HttpModel ({own!r}); set it in one of them.")


def _name_and_version(predict: Any, name: str | None, version: str | None) -> tuple[str | None, str | None]:
    """Name and version in the ledger.

    The `model_id` of an `HttpModel` contains its version; any other name does not, so the version is returned too.
    """
    if name is not None and version is None and isinstance(predict, HttpModel):
        version = predict.version
    name = getattr(predict, "model_id", None) if name is None else name
    for what, value in (("name", name), ("version", version)):
        if not (value is None or isinstance(value, str)):
            raise TypeError(f"{what} must be text, got {value!r}.")
        if value is not None and not value.strip():
            raise ValueError(f"{what} must not be empty.")
    if name is not None and version is not None and "@" in name:
        raise ValueError(f"name {name!r} must not contain '@' when a version is given: the ledger key is name@version.")
    return name, version
