"""A model behind an HTTP address. What may have been charged is never sent twice.

A request that fails is *refused* (nobody answered the door, or the server said "not now"): nothing was
charged, it may be repeated. Or it is *lost* after it was sent: the answer may have been paid for, so only
the caller may decide to ask again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from decimal import Decimal
from pathlib import Path
from threading import Lock
from time import monotonic, sleep
from typing import Any, Literal

import pandas as pd

from acex.arrays import Rows
from acex.errors import ModelFailed
from acex.models.chat import Chat
from acex.models.headers import Headers, mark
from acex.models.labels import as_labels, as_numbers
from acex.models.protocols import Inputs, JsonTemplate, MLflow, OpenInference, Wire
from acex.models.purse import Purse
from acex.models.scores import Scored
from acex.models.secrets import Secrets
from acex.models.transport import Lost, NotReached, Reply, client_library, exchange
from acex.values import Label, is_count, is_finite, listed

NOT_NOW = {429, 503}  # too many requests, unavailable: the server asks to come back
# Turned away at the door: credentials, address, method, size or type, before a model saw the rows.
# Not 400 or 422: MLflow says 400 also when the model itself has failed.
TURNED_AWAY = NOT_NOW | {301, 302, 303, 307, 308, 401, 403, 404, 405, 407, 413, 415}
FIRST_WAIT = 0.5  # seconds before the first repetition, doubled each time
PATIENCE = 60.0  # seconds: a server that asks for a longer wait is reported instead
WHOLE_ADDRESSES = {
    "v2": "http://host:8080/v2/models/NAME/infer",
    "mlflow": "http://host:5000/invocations",
    "chat": "https://host/v1/chat/completions",
}
EXCERPT = 300  # characters of a server's words that an error repeats


@dataclass(frozen=True, eq=False)
class HttpModel:
    """A model that is asked over HTTP: `predict(rows)` gives the labels.

    Args:
        url: the address that requests are posted to, in full: ".../v2/models/NAME/infer" for "v2",
            ".../invocations" for "mlflow", ".../chat/completions" for "chat", anything for "json".
        protocol: "v2" (Open Inference Protocol), "mlflow", "chat" (a language model) or "json" (others, by template).
        request: for "json", the request with a place for the rows, such as {"instances": "$rows"}; see
            `acex.models.protocols.PLACES`. For "chat", the request with a prompt that has places for columns, such as
            {"model": "...", "messages": [{"role": "user", "content": "Income $income. ..."}]};
            see `acex.models.chat.Prompt`.
        labels: where the labels are in the answer. For "json" and "mlflow" a dotted path, such as
            "predictions" or "results.label" (a key is looked up in each item of a list); for "v2" the
            name of the output, needed if there are several.
        inputs: for "v2", one tensor for all rows ("matrix") or one for each column ("columns"; texts too).
        input_name: for "v2", the name of the matrix.
        classes: the labels that the model can give, if they are known; "chat" needs them.
        version: the declared version of the model; a part of `model_id`.
        rows_per_request: most rows in a request.
        timeout: seconds from sending a request to the end of its answer.
        answer_limit: most bytes of an answer, as sent and unpacked; a longer one is cut off and counts as lost.
        rate_limit: most requests a second, in each process.
        retries: how often a refused request is repeated. A lost one never is.
        headers_from_env: header to environment variable, such as {"Authorization": "MY_TOKEN"}. Values
            are read when a request is sent and kept nowhere.
        identity_headers: those of `headers_from_env` that select the model, such as ["X-Model"]: a mark of their values
            is a part of `model_id`, so that another model never gets this one's answers.
        key_headers: those that are keys although their names do not say so. Keys are no part of `model_id`: with a new
            one nothing is paid for again.
        token_prices: for "chat", the prices of a million tokens read and of a million written.
        money: for "chat", the most that may be spent on tokens: a request that could cost more is not sent.
        account: a file where what was spent is kept, for several processes and runs; without it `money` holds for this
            HttpModel in this process.

    Example:
        >>> acex.HttpModel(  # doctest: +SKIP
        ...     "https://host/score", protocol="json", request={"instances": "$records"}, labels="predictions"
        ... )
    """

    url: str
    _: KW_ONLY
    protocol: Literal["v2", "mlflow", "json", "chat"]
    request: Any = None
    labels: str | None = None
    inputs: Inputs = "matrix"
    input_name: str = "input-0"
    classes: Sequence[Label] | None = None
    version: str | None = None
    rows_per_request: int = 100
    timeout: float = 30.0
    answer_limit: int = 16_000_000
    rate_limit: float | None = None
    retries: int = 4
    headers_from_env: Mapping[str, str] = field(default_factory=dict)
    identity_headers: Sequence[str] = ()
    key_headers: Sequence[str] = ()
    token_prices: Sequence[float] | None = None
    money: float | None = None
    account: str | Path | None = None
    _headers: Headers = field(init=False, repr=False)
    _selects: str | None = field(init=False, repr=False)
    _wire: Wire = field(init=False, repr=False)
    _pace: _Pace = field(init=False, repr=False)
    _purse: Purse | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        _check_url(self.url, self.protocol)
        if not is_count(self.rows_per_request):
            raise ValueError(f"rows_per_request must be 1 or more, got {self.rows_per_request!r}.")
        if not is_count(self.retries, 0):
            raise ValueError(f"retries must be 0 or more, got {self.retries!r}.")
        if not (is_finite(self.timeout) and self.timeout > 0):
            raise ValueError(f"timeout must be a number above 0, got {self.timeout!r}.")
        if not is_count(self.answer_limit):
            raise ValueError(f"answer_limit must be 1 byte or more, got {self.answer_limit!r}.")
        if self.rate_limit is not None and not (is_finite(self.rate_limit) and self.rate_limit > 0):
            raise ValueError(f"rate_limit must be a number above 0 or None, got {self.rate_limit!r}.")
        headers = Headers(self.headers_from_env, self.identity_headers, self.key_headers)
        object.__setattr__(self, "_headers", headers)
        object.__setattr__(self, "_selects", headers.mark())
        object.__setattr__(self, "_wire", self._chosen_wire())
        object.__setattr__(self, "_pace", _Pace(self.rate_limit))
        object.__setattr__(self, "_purse", self._filled_purse())

    def _chosen_wire(self) -> Wire:
        match self.protocol:
            case "v2":
                if self.inputs not in ("matrix", "columns"):
                    raise ValueError(f"inputs must be 'matrix' or 'columns', got {self.inputs!r}.")
                return OpenInference(self.inputs, self.input_name, self.labels)
            case "mlflow":
                return MLflow(self.labels or "predictions")
            case "json":
                if self.request is None or self.labels is None:
                    raise ValueError(
                        "protocol 'json' needs request and labels, such as request={'instances': '$rows'} and "
                        "labels='predictions' (in the shell in a file for --model-config)."
                    )
                return JsonTemplate(self.request, self.labels)
            case "chat":
                if self.labels is not None:
                    raise ValueError("labels says where labels are in an answer: with protocol 'chat' that is known.")
                return Chat(self.request, self.classes or ())
        raise ValueError(f"protocol must be 'v2', 'mlflow', 'json' or 'chat', got {self.protocol!r}.")

    def _filled_purse(self) -> Purse | None:
        if self.token_prices is None:
            if self.money is not None or self.account is not None:
                raise ValueError("money and account need token_prices, (a million tokens read, a million written).")
            return None
        if not isinstance(self._wire, Chat):
            raise ValueError("token_prices are for protocol 'chat'; elsewhere a ledger counts rows and money.")
        if self.money is not None and self._wire.most_tokens is None:
            raise ValueError("money needs a limit to what an answer may cost: 'max_completion_tokens' in request.")
        return Purse(self.token_prices, self.money, self.account)

    @property
    def model_id(self) -> str:
        """The name in the ledger: address and declared version, and a mark of what is asked there."""
        asked = [self.protocol, self.request, self.labels, self.inputs, self.input_name]
        if isinstance(self._wire, Chat):
            asked.append(self.classes_)  # they are in the request
        return " ".join(filter(None, (self.url, self.version, mark(asked), self._selects)))

    @property
    def patience(self) -> float:
        """Seconds after which a request has succeeded or failed for good, every repetition and wait included.

        By default 5 requests of 30 seconds and 4 waits of at most a minute: 390 seconds.
        """
        turns = 0.0 if self.rate_limit is None else 1 / self.rate_limit
        return (self.retries + 1) * (self.timeout + turns) + self.retries * PATIENCE

    @property
    def classes_(self) -> list[Label] | None:
        """The labels that the model can give, where they were declared."""
        return None if self.classes is None else list(self.classes)

    @property
    def spent(self) -> float | None:
        """What was spent on tokens, with what is set aside for requests under way; None without `token_prices`."""
        return None if self._purse is None else float(self._purse.spent)

    @property
    def predict_scored(self) -> Callable[[Rows], Any] | None:
        """As `predict`, with the probability of each label; None where requests do not ask for log probabilities."""
        return self._predict_scored if isinstance(self._wire, Chat) and self._wire.gives_scores else None

    def predict(self, rows: Rows) -> list[Label]:
        """One label a row, for a DataFrame or a 2-D array.

        Raises:
            ModelFailed: with `answered`, the labels of the first rows if some requests had succeeded, and
                `in_doubt`, how many of the rows after them may have been charged.
        """
        return [label for labels, _ in self._in_parts(rows) for label in labels]

    def predict_numbers(self, rows: Rows) -> list[Label]:
        """As `predict`, of a server that gives a number a row."""
        return [number for numbers, _ in self._in_parts(rows, as_numbers) for number in numbers]

    def _predict_scored(self, rows: Rows) -> Scored | list[Label]:
        """Labels with their probabilities; labels alone, which are paid for, where an answer came without them."""
        assert isinstance(self._wire, Chat)
        labels: list[Label] = []
        table: list[list[float]] = []
        for told, answer in self._in_parts(rows):
            labels += told
            table += self._wire.probabilities(answer) or []
        return labels if len(table) < len(labels) else Scored(labels, list(self.classes or ()), table)

    def _in_parts(
        self, rows: Rows, read: Callable[[Any, int], list[Label]] = as_labels
    ) -> Iterator[tuple[list[Label], Any]]:
        """The labels of a request's rows, and the whole answer, request by request."""
        size = 1 if self._wire.one_by_one else self.rows_per_request
        answered: list[Label] = []
        for start in range(0, len(rows), size):
            part = slice(start, start + size)
            try:
                labels, answer = self._ask(rows.iloc[part] if isinstance(rows, pd.DataFrame) else rows[part], read)
            except ModelFailed as error:
                error.answered = answered
                raise
            answered += labels
            yield labels, answer

    def _ask(self, rows: Rows, read: Callable[[Any, int], list[Label]]) -> tuple[list[Label], Any]:
        n = len(rows)
        try:
            content = json.dumps(self._wire.body(rows), allow_nan=False)
        except ValueError as error:
            raise ModelFailed(f"The rows cannot be written for {self.url}: {error}", in_doubt=0) from error
        try:
            headers, selects = self._headers.read(), self._headers.mark()
        except ValueError as error:
            raise ModelFailed(str(error), in_doubt=0) from None
        if selects != self._selects:
            raise ModelFailed(
                f"The environment has another value for {listed(self.identity_headers)} now than when this HttpModel "
                f"was made: another model would answer in its name. Make a new one.",
                in_doubt=0,
            )
        secrets = self._headers.secrets(headers)
        aside = self._set_aside(content)
        try:
            reply = self._post(content.encode(), headers, secrets, n)
        except ModelFailed as error:
            if not error.charged:
                self._put_back(aside)
            raise
        try:
            answer = json.loads(reply.text)
            self._put_back(aside, answer)
            labels = read(self._wire.labels(answer), n)
        except (ValueError, RecursionError) as error:
            why = secrets.blotted(str(error))[:EXCERPT]
        else:
            if not any(secrets.repeated_in(text) for text in {str(label) for label in labels}):
                return labels, answer
            why = "a label repeats a secret of headers_from_env, which must not be written down"
        said = secrets.blotted(reply.words)[:EXCERPT]
        what = "number" if read is as_numbers else "label"
        raise self._failed(f"answered, but not with one {what} a row: {why}. It said: {said!r}", in_doubt=n)

    def _set_aside(self, content: str) -> Decimal:
        """Money for the most that this request can cost. A token has at least a byte."""
        if self._purse is None or not isinstance(self._wire, Chat):
            return Decimal(0)
        most = self._purse.price(len(content.encode()), self._wire.most_tokens or 0)
        try:
            self._purse.set_aside(most)
        except ValueError as error:
            raise ModelFailed(f"Not sent to {self.url}: {error}. Nothing was charged.", in_doubt=0) from None
        return most

    def _put_back(self, aside: Decimal, answer: Any = None) -> None:
        """What of it was not needed: all, or as the answer tells; if it does not, it is taken for spent."""
        if self._purse is None or not isinstance(self._wire, Chat):
            return
        used = (0, 0) if answer is None else self._wire.tokens(answer)
        if used is not None:
            with suppress(ValueError):  # then it counts as spent, and the answer, which is paid for, is not lost
                self._purse.put_back(aside - self._purse.price(*used))

    def _post(self, content: bytes, headers: Mapping[str, str], secrets: Secrets, n: int) -> Reply:
        """The answer to a request about n rows."""
        for attempt in range(self.retries + 1):
            self._pace.wait()
            outcome = exchange(
                self.url, content, headers, secrets=secrets, timeout=self.timeout, limit=self.answer_limit
            )
            match outcome:
                case Reply(status) if 200 <= status < 300:
                    return outcome
                case Reply(status, retry_after=retry_after):
                    what = f"answered {status}: {secrets.blotted(outcome.words)[:EXCERPT]!r}"
                    if status not in NOT_NOW:
                        raise self._failed(what, in_doubt=0 if status in TURNED_AWAY else n)
                case NotReached(why):
                    what, retry_after = f"cannot be reached: {secrets.blotted(why)[:EXCERPT]}", None
                case Lost(why):
                    raise self._failed(f"gave no complete answer: {secrets.blotted(why)[:EXCERPT]}", in_doubt=n)
            wait = min(FIRST_WAIT * 2**attempt, PATIENCE) if retry_after is None else retry_after
            if wait > PATIENCE:
                what += f" (it asks to wait {wait:.0f} seconds)"
            if attempt == self.retries or wait > PATIENCE:
                break
            sleep(wait)
        raise self._failed(what, in_doubt=0)

    def _failed(self, what: str, *, in_doubt: int) -> ModelFailed:
        end = "It may have been charged and was not sent again." if in_doubt else "Nothing was charged."
        return ModelFailed(f"{self.url} {what.removesuffix('.')}. {end}", in_doubt=in_doubt)


KEY_IN_URL = re.compile(r"(?:key|token|secret|password|signature|sig)$", re.IGNORECASE)  # names of parameters


def _check_url(url: str, protocol: str) -> None:
    httpx2 = client_library()
    try:
        parts = httpx2.URL(url)
    except (httpx2.InvalidURL, TypeError) as error:
        raise ValueError(f"url: {url!r} is not an address: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.host:
        raise ValueError(f"url: expected http://... or https://..., got {url!r}.")
    if parts.userinfo:
        raise ValueError("url: a password in the address would be stored; give it with headers_from_env instead.")
    if keys := [name for name in parts.params if KEY_IN_URL.search(name)]:
        raise ValueError(f"url: {keys[0]!r} in the address would be stored; give a key with headers_from_env instead.")
    example = WHOLE_ADDRESSES.get(protocol)
    if example is not None and not parts.path.endswith(example[example.rindex("/") :]):
        raise ValueError(f"url: expected the whole address, such as {example}, got {url!r}.")


class _Pace:
    """Lets through at most so many a second, evenly; each process has its own."""

    def __init__(self, per_second: float | None) -> None:
        self._per_second, self._free_at, self._lock = per_second, 0.0, Lock()

    def wait(self) -> None:
        if self._per_second is None:
            return
        with self._lock:
            now = monotonic()
            start = max(now, self._free_at)
            self._free_at = start + 1 / self._per_second
        sleep(start - now)

    def __reduce__(self) -> tuple[type[_Pace], tuple[float | None]]:
        return _Pace, (self._per_second,)
