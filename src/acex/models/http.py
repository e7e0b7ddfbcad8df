"""A model behind an HTTP endpoint. A request that may have been charged is never retried.

A failed request was either *refused* (no connection, or the server asks to retry later): nothing was charged, and it is
retried. Or it was *lost* after it was sent: it may have been charged, so only the caller may send it again.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from decimal import Decimal
from functools import partial
from threading import Lock, get_ident
from time import monotonic, sleep
from typing import Any, Literal

from acex.arrays import Rows, rows_at
from acex.errors import ModelFailed, optional
from acex.models.chat import Chat
from acex.models.labels import as_labels, as_numbers
from acex.models.protocols import Inputs, JsonTemplate, MLflow, OpenInference, WireProtocol
from acex.models.transport import Headers, NotReached, Reply, Unanswered, excerpt, exchange, short_hash
from acex.values import Label, check_count, check_positive, is_finite, listed

RETRY_LATER = {429, 503}  # Too Many Requests, Service Unavailable
# Rejected before the model saw the rows, because of credentials, address, method, size or type.
# Not 400 or 422: MLflow also responds with 400 if the model itself has failed.
NOT_CHARGED = RETRY_LATER | {301, 302, 303, 307, 308, 401, 403, 404, 405, 407, 413, 415}
FIRST_WAIT = 0.5  # seconds before the first retry, doubled for each further one
LONGEST_WAIT = 60.0  # seconds; the request fails if the server asks for a longer wait
FULL_ADDRESSES = {
    "v2": "http://host:8080/v2/models/NAME/infer",
    "mlflow": "http://host:5000/invocations",
    "chat": "https://host/v1/chat/completions",
}
SHORTEST_SECRET = 7  # characters; a shorter secret may be part of an ordinary label


@dataclass(frozen=True, eq=False)
class HttpModel:
    """A model behind an HTTP endpoint: `predict(rows)` returns the labels.

    Args:
        url: the full address that requests are posted to: ".../v2/models/NAME/infer" for "v2",
            ".../invocations" for "mlflow", ".../chat/completions" for "chat", anything for "json".
        protocol: "v2" (Open Inference Protocol), "mlflow", "chat" (a language model) or "json" (others, by template).
        request: for "json", the request with a placeholder for the rows, such as {"instances": "$rows"}; see
            `acex.models.protocols.PLACEHOLDERS`. For "chat", the request with a prompt that has placeholders for
            columns, such as {"model": "...", "messages": [{"role": "user", "content": "Income $income. ..."}]};
            see `acex.models.chat.Prompt`.
        labels: where the labels are in the response. For "json" and "mlflow" a dotted path, such as
            "predictions" or "results.label" (a key is looked up in each item of a list); for "v2" the
            name of the output, needed if there are several.
        inputs: for "v2", one tensor for all rows ("matrix") or one for each column ("columns"; texts too).
        input_name: for "v2", the name of the matrix.
        classes: the labels that the model can return, if they are known; any other answer is an error. Required for
            "chat".
        version: the declared version of the model; a part of `model_id`.
        rows_per_request: maximum number of rows in a request; 1 if the request has a placeholder for a single row.
        timeout: seconds from sending a request to the end of the response.
        rate_limit: maximum requests per second, in each process.
        retries: how often a refused request is retried. A lost one never is.
        headers_from_env: maps headers to environment variables, such as {"Authorization": "MY_TOKEN"}. Values
            are read when a request is sent and not stored.
        identity_headers: headers of `headers_from_env` that select the model, such as ["X-Model"]: a hash of their
            values is a part of `model_id`, so that no other model gets this one's answers.
        key_headers: headers that are keys although their names do not suggest it. Keys are not part of `model_id`:
            stored answers stay valid with a new key.
        token_prices: for "chat", the prices per million input tokens and per million output tokens.
        money: for "chat", the most that may be spent on tokens, by everyone who uses the same ledger: a request that
            could cost more is not sent. It applies to explanations, not to `predict` itself.

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
    rate_limit: float | None = None
    retries: int = 4
    headers_from_env: Mapping[str, str] = field(default_factory=dict)
    identity_headers: Sequence[str] = ()
    key_headers: Sequence[str] = ()
    token_prices: Sequence[float] | None = None
    money: float | None = None
    _headers: Headers = field(init=False, repr=False)
    _selects: str | None = field(init=False, repr=False)
    _protocol: WireProtocol = field(init=False, repr=False)
    _traffic: _Traffic = field(init=False, repr=False)

    def __post_init__(self) -> None:
        _check_url(self.url, self.protocol)
        check_count("rows_per_request", self.rows_per_request)
        check_count("retries", self.retries, least=0)
        check_positive("timeout", self.timeout, "number of seconds")
        check_positive("rate_limit", self.rate_limit, optional=True)
        headers = Headers(self.headers_from_env, self.identity_headers, self.key_headers)
        object.__setattr__(self, "_headers", headers)
        object.__setattr__(self, "_selects", headers.identity_hash())
        object.__setattr__(self, "_protocol", self._make_protocol())
        if self._protocol.one_by_one:
            object.__setattr__(self, "rows_per_request", 1)
        self._check_prices()
        object.__setattr__(self, "_traffic", _Traffic(self.rate_limit))

    def _make_protocol(self) -> WireProtocol:
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
                    raise ValueError("labels cannot be set with protocol 'chat': the form of the answer is fixed.")
                return Chat(self.request, self.classes or ())
        raise ValueError(f"protocol must be 'v2', 'mlflow', 'json' or 'chat', got {self.protocol!r}.")

    def _check_prices(self) -> None:
        if self.token_prices is None:
            if self.money is not None:
                raise ValueError("money needs token_prices (per million input tokens, per million output tokens).")
            return
        if not (len(self.token_prices) == 2 and all(is_finite(price) and price >= 0 for price in self.token_prices)):
            raise ValueError(
                f"token_prices must be two numbers, per million input tokens and per million output tokens, "
                f"got {self.token_prices!r}."
            )
        check_positive("money", self.money, zero=True, optional=True)
        if not isinstance(self._protocol, Chat):
            raise ValueError("token_prices are for protocol 'chat'; elsewhere a ledger counts rows and money.")
        if self.money is not None and self._protocol.most_tokens is None:
            raise ValueError("money needs a limit to what an answer may cost: 'max_completion_tokens' in request.")

    @property
    def model_id(self) -> str:
        """The name in the ledger: address, declared version, and a hash of the request."""
        hashed = [self.protocol, self.request, self.labels, self.inputs, self.input_name]
        if isinstance(self._protocol, Chat):
            hashed.append(self.classes_)  # part of the request
        return " ".join(filter(None, (self.url, self.version, short_hash(hashed), self._selects)))

    @property
    def classes_(self) -> list[Label] | None:
        """The labels that the model can return, if they were declared."""
        return None if self.classes is None else list(self.classes)

    @property
    def spent(self) -> float | None:
        """Money that this process has spent on tokens; None without `token_prices`."""
        return None if self.token_prices is None else float(sum(list(self._traffic.spent.values())))

    @property
    def spent_in_thread(self) -> Decimal:
        """Money that this thread has spent so far."""
        return self._traffic.spent[get_ident()]

    def price_per_row(self, rows: Rows) -> Decimal:
        """Upper bound on the price of any one of these rows."""
        parts = [rows_at(rows, slice(i, i + 1)) for i in range(len(rows))]
        try:
            return max((self._highest_price(self._content(part)) for part in parts), default=Decimal(0))
        except ValueError:  # it cannot be sent, so it costs nothing; `predict` raises the reason
            return Decimal(0)

    def _highest_price(self, content: bytes) -> Decimal:
        """Upper bound on the price of a request. A token has at least one byte."""
        most = self._protocol.most_tokens if isinstance(self._protocol, Chat) else None
        return self._price(len(content), most or 0)

    def _price(self, read: int, written: int) -> Decimal:
        per_million = [Decimal(str(price)) for price in self.token_prices or (0, 0)]
        return (per_million[0] * read + per_million[1] * written) / 1_000_000

    def predict(self, rows: Rows) -> list[Label]:
        """One label per row, for a DataFrame or a 2-D array.

        Raises:
            ModelFailed: with `answered`, the labels of the first rows if some requests succeeded, and
                `in_doubt`, how many of the rows after them may have been charged.
        """
        return self._in_parts(rows, partial(as_labels, classes=self.classes_))

    def predict_numbers(self, rows: Rows) -> list[Label]:
        """Like `predict`, for a server that returns one number per row."""
        return self._in_parts(rows, as_numbers)

    def _in_parts(self, rows: Rows, read: Callable[[Any, int], list[Label]]) -> list[Label]:
        """The labels (or numbers) of all rows, split into requests of `rows_per_request`."""
        answered: list[Label] = []
        for start in range(0, len(rows), self.rows_per_request):
            try:
                answered += self._send(rows_at(rows, slice(start, start + self.rows_per_request)), read)
            except ModelFailed as error:
                error.answered = answered
                raise
        return answered

    def _content(self, rows: Rows) -> bytes:
        return json.dumps(self._protocol.body(rows), allow_nan=False).encode()

    def _send(self, rows: Rows, read: Callable[[Any, int], list[Label]]) -> list[Label]:
        n = len(rows)
        try:
            content, headers = self._content(rows), self._headers.read()
            if self._headers.identity_hash() != self._selects:
                raise ValueError(
                    f"the environment variables of {listed(self.identity_headers)} have changed since this HttpModel "
                    f"was created, so another model would answer under the same name. Create a new HttpModel."
                )
        except ValueError as error:
            raise ModelFailed(f"The rows cannot be sent to {self.url}: {error}", in_doubt=0) from error
        secrets = self._headers.secrets(headers)
        reply, answer = self._post(content, headers, secrets, n), None
        try:
            answer = json.loads(reply.content.decode("utf-8-sig"))
            labels = read(self._protocol.labels(answer), n)
        except (ValueError, RecursionError) as error:
            why = excerpt(str(error), secrets)
        else:
            if not any(s in str(label) for s in secrets if len(s) >= SHORTEST_SECRET for label in labels):
                self._charge(content, answer)
                return labels
            why = "a label contains a secret of headers_from_env, which must not be stored"
        text = excerpt(reply.readable_text, secrets)
        what = "number" if read is as_numbers else "label"
        what = f"did not answer with one {what} per row: {why}. The answer: {text!r}"
        raise self._failed(what, content, in_doubt=n, answer=answer)

    def _charge(self, content: bytes, answer: Any) -> Decimal:
        """Add the price of a request to `spent` and return it: as the response states, otherwise the upper bound."""
        tokens = self._protocol.tokens(answer) if isinstance(self._protocol, Chat) else None
        used = self._highest_price(content) if tokens is None else self._price(*tokens)
        self._traffic.spent[get_ident()] += used
        return used

    def _post(self, content: bytes, headers: Mapping[str, str], secrets: Sequence[str], n: int) -> Reply:
        """Send a request with n rows and return the reply; a refused request is retried."""
        for attempt in range(self.retries + 1):
            self._traffic.wait()
            outcome = exchange(self.url, content, headers, timeout=self.timeout)
            match outcome:
                case Reply(status) if 200 <= status < 300:
                    return outcome
                case Reply(status, retry_after=retry_after):
                    what = f"answered {status}: {excerpt(outcome.readable_text, secrets)!r}"
                    if status not in RETRY_LATER:
                        raise self._failed(what, content, in_doubt=0 if status in NOT_CHARGED else n)
                case NotReached(why):
                    what, retry_after = f"cannot be reached: {excerpt(why, secrets)}", None
                case Unanswered(why):
                    raise self._failed(f"gave no complete answer: {excerpt(why, secrets)}", content, in_doubt=n)
            wait = min(FIRST_WAIT * 2**attempt, LONGEST_WAIT) if retry_after is None else retry_after
            if wait > LONGEST_WAIT:
                what += f" (it asks for a wait of {wait:.0f} seconds)"
            if attempt == self.retries or wait > LONGEST_WAIT:
                break
            sleep(wait)
        raise self._failed(what, content, in_doubt=0)

    def _failed(self, what: str, content: bytes, *, in_doubt: int, answer: Any = None) -> ModelFailed:
        """The error for a failed request; what it may have cost is added to `spent`."""
        end = "It may have been charged and was not sent again." if in_doubt else "Nothing was charged."
        error = ModelFailed(f"{self.url} {what.removesuffix('.')}. {end}", in_doubt=in_doubt)
        error.used = self._charge(content, answer) if in_doubt else Decimal(0)
        return error


KEY_IN_URL = re.compile(r"(?:key|token|secret|password|signature|sig)$", re.IGNORECASE)  # query parameters


def _check_url(url: str, protocol: str) -> None:
    httpx2 = optional("httpx2", "acex.HttpModel", "http")
    try:
        parts = httpx2.URL(url)
    except (httpx2.InvalidURL, TypeError) as error:
        raise ValueError(f"url: {url!r} is not an address: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.host:
        raise ValueError(f"url: expected http://... or https://..., got {url!r}.")
    if parts.userinfo:
        raise ValueError("url: a password in the address would be stored; use headers_from_env instead.")
    if keys := [name for name in parts.params if KEY_IN_URL.search(name)]:
        raise ValueError(f"url: {keys[0]!r} in the address would be stored; pass keys with headers_from_env instead.")
    example = FULL_ADDRESSES.get(protocol)
    if example is not None and not parts.path.endswith(example[example.rindex("/") :]):
        raise ValueError(f"url: expected the full address, such as {example}, got {url!r}.")


class _Traffic:
    """The rate limit of one process, and the money spent by each thread; a thread only changes its own entry."""

    def __init__(self, per_second: float | None) -> None:
        self._per_second, self._free_at, self._lock = per_second, 0.0, Lock()
        self.spent = defaultdict[int, Decimal](Decimal)

    def wait(self) -> None:
        """Block until the next request may be sent."""
        if self._per_second is None:
            return
        with self._lock:
            now = monotonic()
            start = max(now, self._free_at)
            self._free_at = start + 1 / self._per_second
        sleep(start - now)

    def __reduce__(self) -> tuple[type[_Traffic], tuple[float | None]]:
        return _Traffic, (self._per_second,)  # another process starts from zero
