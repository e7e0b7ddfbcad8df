"""A language model as a classifier: requests in their exact form, answers held to the labels, money held to its cap."""

from __future__ import annotations

import gzip
import json
import multiprocessing
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import acex
from acex import HttpModel, ModelFailed
from acex.engine.blackbox import BlackBox
from acex.ledger import BaseLedger, MemoryLedger, Question
from acex.models import http as remote
from acex.models.chat import Chat
from chats import chat, completion
from servers import Deed, drip_body, half, hang_up, pours, reset, says, serving

ROWS = pd.DataFrame({"tone": ["rude", "calm", "calm"], "words": [3, 40, 7], "cites a source": [True, False, True]})
CLASSES = ["pass", "fail"]
REQUEST = {
    "model": "grader-1",
    "temperature": 0,
    "max_completion_tokens": 40,
    "messages": [
        {"role": "system", "content": "Grade by the rubric."},
        {"role": "user", "content": "Grade this record: $record"},
    ],
}
SEVERAL = {**REQUEST, "messages": [{"role": "user", "content": "Grade each: $records"}]}
TOKEN = "sk-7f9Kd2s3cr3tt0ken"


def chance(record: Any) -> dict[str, float]:
    """The rubric: calm, and at least five words or a source."""
    good = record["tone"] == "calm" and (record["words"] >= 5 or record["cites a source"])
    return {"pass": 0.9, "fail": 0.1} if good else {"pass": 0.2, "fail": 0.8}


RIGHT = ["fail", "pass", "pass"]


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    slept: list[float] = []
    monkeypatch.setattr(remote, "sleep", slept.append)
    return slept


def asking(url: str, **settings: Any) -> HttpModel:
    address = url.replace("/score", "/v1/chat/completions")
    return HttpModel(address, protocol="chat", **{"request": REQUEST, "classes": CLASSES, "timeout": 20.0, **settings})


# -- requests ------------------------------------------------------------------------------------------------


def test_a_request_is_the_form_itself_with_the_prompt_filled_in_and_the_labels_as_a_schema() -> None:
    schema = {
        "type": "object",
        "properties": {"label": {"type": "string", "enum": ["pass", "fail"]}},
        "required": ["label"],
        "additionalProperties": False,
    }
    assert Chat(REQUEST, CLASSES).body(ROWS[:1]) == {
        "model": "grader-1",
        "temperature": 0,
        "max_completion_tokens": 40,
        "messages": [
            {"role": "system", "content": "Grade by the rubric."},
            {"role": "user", "content": 'Grade this record: {"tone": "rude", "words": 3, "cites a source": true}'},
        ],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "answer", "strict": True, "schema": schema},
        },
    }


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("$tone, $words words", "rude, 3 words"),
        ("${cites a source}? ${tone}!", "true? rude!"),
        ("costs $$5: $tone", "costs $5: rude"),
    ],
)
def test_a_prompt_has_places_for_columns(prompt: Any, expected: Any) -> None:
    wire = Chat({"model": "m", "messages": [{"role": "user", "content": prompt}]}, CLASSES)
    assert wire.one_by_one
    assert wire.body(ROWS[:1])["messages"] == [{"role": "user", "content": expected}]


def test_several_rows_are_numbered_where_the_template_says_so() -> None:
    wire = Chat(SEVERAL, CLASSES)
    body = wire.body(ROWS[:2])
    assert not wire.one_by_one
    numbered = json.loads(body["messages"][0]["content"].removeprefix("Grade each: "))
    assert numbered == {"1": ROWS.iloc[0].to_dict(), "2": ROWS.iloc[1].to_dict()}
    assert body["response_format"]["json_schema"]["schema"]["required"] == ["1", "2"]


def test_labels_of_any_type_are_texts_for_the_model_and_come_back_as_they_were() -> None:
    for classes, text, label in (([0, 1], "1", 1), ([False, True], "true", True), (["ä", "ö"], "ö", "ö")):
        wire = Chat(REQUEST, classes)
        [enum] = [one["enum"] for one in schema_of(wire.body(ROWS[:1]))["properties"].values()]
        assert text in enum
        answer = completion(REQUEST, {"label": text})
        assert wire.labels(answer) == [label] and type(wire.labels(answer)[0]) is type(label)


def schema_of(body: Any) -> Any:
    return body["response_format"]["json_schema"]["schema"]


# -- answers -------------------------------------------------------------------------------------------------


def test_rows_go_in_and_labels_come_out() -> None:
    with serving(chat(chance)) as server:
        assert asking(server.url).predict(ROWS) == RIGHT
        assert len(server.bodies) == 3
    with serving(chat(chance)) as server:
        assert asking(server.url, request=SEVERAL, rows_per_request=2).predict(ROWS) == RIGHT
        assert [len(schema_of(body)["required"]) for body in server.bodies] == [2, 1]


def reply(content: Any, **more: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": content, "refusal": None}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"choices": [{**choice, **more}]}


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (reply("pass"), "Expecting value"),  # a plain word: the schema was ignored
        (reply('{"label": "Pass"}'), "'Pass', expected one of 'pass', 'fail'"),
        (reply('{"label": "undecided"}'), "'undecided', expected one of"),
        (reply('{"label": ["pass"]}'), r"\['pass'\], expected one of"),
        (reply('{"label": null}'), "the label is None"),
        (
            reply('{"label": "pass", "why": "calm"}'),
            "expected the keys 'label' in the answer, got 'label', 'why'",
        ),
        (reply('{"label": "pass", "label": "fail"}'), "duplicate key"),
        (reply('{"labels": "pass"}'), "expected the keys 'label' in the answer, got 'labels'"),
        (reply('"pass"'), "expected an object with labels, got"),
        (reply('["pass"]'), "expected an object with labels, got"),
        (reply("3"), "expected an object with labels, got"),
        (reply('{"label": "pa', finish_reason="length"), "cut off: raise max_completion_tokens"),
        (reply('{"label": "pass"}', finish_reason="content_filter"), "content filter"),
        (reply(None), "content is None, not text"),
        (
            reply("", message={"role": "assistant", "content": None, "refusal": "I cannot."}),
            "refused: 'I cannot.'",
        ),
        ({"choices": []}, r"no choices\[0\]\.message\.content"),
        ({"error": {"message": "overloaded"}}, r"no choices\[0\]\.message\.content"),
        ([], r"no choices\[0\]\.message\.content"),
        ("pass", r"no choices\[0\]\.message\.content"),
    ],
)
def test_what_is_none_of_the_labels_is_no_answer_and_is_not_asked_again(answer: Any, message: str) -> None:
    with serving(says(200, json.dumps(answer))) as server:
        with pytest.raises(ModelFailed, match=f"(?s)one label per row: .*{message}.*may have been charged") as e:
            asking(server.url).predict(ROWS)
        assert len(server.bodies) == 1 and e.value.in_doubt == 1


HOSTILE = {
    "text of 5 MB": reply("a" * 5_000_000),
    "label of 5 MB": reply(json.dumps({"label": "a" * 5_000_000})),
    "deep nesting": reply("[" * 100_000),
    "deep nesting in the label": reply('{"label": ' + "[" * 100_000 + "]" * 100_000 + "}"),
    "duplicate key of 5 MB": reply('{"label": "pass", "label": "%s"}' % ("a" * 5_000_000)),
    "number of 5 MB": reply('{"label": %s}' % ("9" * 5_000_000)),
    "100,000 keys": reply(json.dumps({str(i): "pass" for i in range(100_000)})),
    "control characters": reply(json.dumps({"label": "pass\x00\x1b[2J\u202e"})),
    "refusal of 5 MB": reply("", message={"content": "", "refusal": "no" * 2_500_000}),
    "choices of the wrong type": {"choices": "pass"},
    "message of the wrong type": {"choices": [{"message": "pass"}]},
    "content of the wrong type": reply({"label": "pass"}),
}


@pytest.mark.parametrize("answer", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_answer_fails_with_a_short_message(answer: Any) -> None:
    with serving(says(200, json.dumps(answer))) as server, pytest.raises(ModelFailed, match="one label") as caught:
        asking(server.url).predict(ROWS[:1])
    assert len(str(caught.value)) < 1000 and str(caught.value).isprintable()
    assert caught.value.in_doubt == 1


def test_nesting_of_the_whole_answer_fails_with_a_short_message() -> None:
    with (
        serving(says(200, '{"choices": ' * 100_000)) as server,
        pytest.raises(ModelFailed, match="one label") as caught,
    ):
        asking(server.url).predict(ROWS[:1])
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    "content", ['{"1": "pass"}', '{"1": "pass", "3": "pass"}', '{"1": "pass", "2": "pass", "3": "pass"}', "{}"]
)
def test_several_rows_need_a_label_each(content: str) -> None:
    with serving(says(200, json.dumps(reply(content)))) as server:
        with pytest.raises(ModelFailed, match="one label per row: expected") as caught:
            asking(server.url, request=SEVERAL).predict(ROWS[:2])
        assert caught.value.in_doubt == 2


def test_the_order_of_the_keys_does_not_matter() -> None:
    with serving(says(200, json.dumps(reply('{"2": "fail", "1": "pass"}')))) as server:
        assert asking(server.url, request=SEVERAL).predict(ROWS[:2]) == ["pass", "fail"]


# -- failures, as over HTTP in general -----------------------------------------------------------------------------


@pytest.mark.parametrize("deed", [says(429, "slow down"), says(503, "", retry_after="2")])
def test_a_busy_endpoint_is_asked_again(deed: Deed, waits: list[float]) -> None:
    with serving(deed, deed, chat(chance)) as server:
        assert asking(server.url).predict(ROWS[:1]) == ["fail"]
        assert len(server.bodies) == 3 and len(waits) == 2


@pytest.mark.parametrize("status", [302, 401, 403, 404, 413])
def test_who_is_turned_away_was_not_charged(status: int) -> None:
    with serving(says(status, '{"error": {"message": "no"}}')) as server:
        with pytest.raises(ModelFailed, match=f"answered {status}.*Nothing was charged"):
            asking(server.url).predict(ROWS)
        assert len(server.bodies) == 1


LOST = {
    "500": says(500, "out of memory"),
    "400": says(400, "bad request"),
    "reset": reset,
    "hang up": hang_up,
    "half": half,
    "not json": says(200, "<html>"),
    "empty": says(200, ""),
    "other charset": says(200, json.dumps(reply('{"label": "pass"}')).encode("utf-16")),
    "another server": says(200, '{"labels": ["pass"]}'),
    "bomb": says(200, gzip.compress(bytes(10**7)) * 10, content_encoding="gzip"),
    "endless": pours(b"HTTP/1.1 200 OK\r\n\r\n"),
}


@pytest.mark.parametrize("deed", LOST.values(), ids=LOST)
def test_what_may_have_been_charged_is_sent_once_and_its_money_is_spent(deed: Deed, waits: list[float]) -> None:
    with serving(deed) as server:
        model = asking(server.url, token_prices=(1.0, 2.0), money=1.0)
        box = priced(model)
        with pytest.raises(ModelFailed, match="charged"):
            box.ask(ROWS[:1])
        assert len(server.bodies) == 1 and waits == []
        assert money_used(box) == pytest.approx(most(server.bodies[0])) == pytest.approx(model.spent)


def test_an_endpoint_that_drips_is_left_at_the_timeout() -> None:
    with serving(drip_body) as server, pytest.raises(ModelFailed, match=r"0\.5 seconds.*may have been charged"):
        asking(server.url, timeout=0.5).predict(ROWS)


def test_labels_before_a_failure_are_not_lost() -> None:
    with serving(chat(chance), chat(chance), half) as server, pytest.raises(ModelFailed) as caught:
        asking(server.url).predict(ROWS)
    assert (caught.value.answered, caught.value.in_doubt) == (["fail", "pass"], 1)


def test_a_key_comes_from_the_environment_and_is_shown_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHAT_KEY", f"Bearer {TOKEN}")
    answer = reply(json.dumps({"label": TOKEN}))
    with serving(says(200, json.dumps(answer)), says(401, f"Incorrect API key provided: {TOKEN}")) as server:
        model = asking(server.url, headers_from_env={"Authorization": "CHAT_KEY"})
        for _ in range(2):
            with pytest.raises(ModelFailed, match=r"\*\*\*") as caught:
                model.predict(ROWS)
            assert TOKEN not in str(caught.value)
        assert server.headers[0]["Authorization"] == f"Bearer {TOKEN}"
    assert TOKEN not in repr(model) + model.model_id


def test_a_language_model_gives_labels_only() -> None:
    with pytest.raises(TypeError, match="predict_proba"):
        acex.Model(asking("http://host/score"), scores=True)


# -- money ---------------------------------------------------------------------------------------------------


def most(body: Any, prices: tuple[float, float] = (1.0, 2.0)) -> float:
    """What a request can cost at most, by hand: a token a byte, and every token that may be written."""
    return float(len(json.dumps(body)) * prices[0] + body["max_completion_tokens"] * prices[1]) / 1e6


def bill(bodies: list[Any], prices: tuple[float, float] = (1.0, 2.0)) -> float:
    """What the stub would charge: it says so in its usage."""
    used = [completion(body, {"label": "fail"})["usage"] for body in bodies]
    return float(sum(u["prompt_tokens"] * prices[0] + u["completion_tokens"] * prices[1] for u in used)) / 1e6


def test_tokens_are_counted_as_the_endpoint_tells() -> None:
    with serving(chat(chance)) as server:
        model = asking(server.url, token_prices=(1.0, 2.0))
        assert model.spent == 0.0
        model.predict(ROWS)
        assert model.spent == pytest.approx(bill(server.bodies))
    assert asking("http://host/score").spent is None


def test_an_unusable_answer_counts_as_it_tells_and_a_refused_request_as_nothing() -> None:
    answer = reply(None, refusal="no") | {"usage": {"prompt_tokens": 300, "completion_tokens": 7}}
    with serving(says(200, json.dumps(answer)), says(401, "")) as server:
        model = asking(server.url, token_prices=(1.0, 2.0))
        for _ in range(2):
            with pytest.raises(ModelFailed):
                model.predict(ROWS[:1])
        assert model.spent == pytest.approx(314e-6)


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@pytest.mark.parametrize(("body", "n"), [(REQUEST, 1), (SEVERAL, 3)])
@pytest.mark.parametrize("timeout", [None, 60.0])
def test_an_unusable_answer_counts_against_the_money_as_it_tells(
    kind: str, body: Any, n: int, timeout: float | None, tmp_path: Path
) -> None:
    usage = {"prompt_tokens": 300, "completion_tokens": 7}
    unusable = says(200, json.dumps(reply(None, refusal="no") | {"usage": usage}))
    with serving(unusable, chat(chance, usage=usage)) as server:
        ledger = MemoryLedger() if kind == "memory" else acex.Ledger(tmp_path / "l.db")
        ledger.budget("chat", money=1.0)
        model = asking(server.url, request=body, token_prices=(1.0, 2.0), money=1.0, timeout=30.0)
        box = BlackBox(acex.Model(model, timeout=timeout), ledger, 1000, model_id="chat")
        for requests in (1, 2):
            with suppress(ModelFailed):
                box.ask(ROWS[:n])
            assert money_used(box) == pytest.approx(requests * 314e-6) == pytest.approx(model.spent)
        assert len(ledger.answers("chat")) == n


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": "9", "completion_tokens": 1}, {"prompt_tokens": -5}])
def test_where_the_endpoint_does_not_tell_the_most_is_counted(usage: Any) -> None:
    with serving(chat(chance, usage=usage)) as server:
        model = asking(server.url, token_prices=(1.0, 2.0))
        model.predict(ROWS[:1])
        assert model.spent == pytest.approx(most(server.bodies[0]))


def priced(model: HttpModel, ledger: BaseLedger | None = None) -> BlackBox:
    """The model with its money as an explainer asks it."""
    ledger = MemoryLedger() if ledger is None else ledger
    if model.money is not None:
        ledger.budget("chat", money=model.money)
    return BlackBox(acex.Model(model), ledger, 1000, model_id="chat")


def money_used(box: BlackBox) -> float:
    return float(box.ledger.account("chat").money_used)


def replies(n: int, first: int = 0) -> pd.DataFrame:
    """Different rows, about as long as each other."""
    rows = pd.concat([ROWS[:1]] * n, ignore_index=True)
    return rows.assign(**{ROWS.columns[0]: [f"reply {i:04d}" for i in range(first, first + n)]})


def ask_until_spent(box: BlackBox, rows: pd.DataFrame) -> int:
    """How many rows were answered before the money was spent."""
    for i in range(len(rows)):
        try:
            box.ask(rows[i : i + 1])
        except acex.BudgetSpent:
            return i
    return len(rows)


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_money_is_a_hard_cap(kind: str, tmp_path: Path) -> None:
    with serving(chat(chance)) as server:
        model = asking(server.url, token_prices=(1.0, 2.0), money=0.003)
        box = priced(model, None if kind == "memory" else acex.Ledger(tmp_path / "l.db"))
        n = ask_until_spent(box, replies(60))
        assert 5 < n == len(server.bodies) < 60
        assert bill(server.bodies) == pytest.approx(money_used(box)) == pytest.approx(model.spent)
        assert bill(server.bodies) <= 0.003 < bill(server.bodies) + most(server.bodies[-1])  # no other fits for certain
        assert ask_until_spent(box, replies(5, first=100)) == 0
        box.ask(replies(1))  # known answers are free


def test_a_price_per_row_beside_token_prices_is_refused(tmp_path: Path) -> None:
    data = pd.concat([ROWS] * 10, ignore_index=True)
    with serving(chat(chance)) as server, acex.Ledger(tmp_path / "l.db") as ledger:
        model = acex.Model(asking(server.url, token_prices=(1.0, 2.0), money=1.0), name="chat")
        acex.Explainer(model, data, ledger=ledger).explain(data.iloc[0], budget=2)
        spent = ledger.account("chat").money_used
        with pytest.raises(ValueError, match=r"price_per_row: .*'chat'.* token_prices"):
            ledger.budget("chat", money=5, price_per_row=0.02)
        assert ledger.tables.models()["spent"].tolist() == [pytest.approx(float(spent))]
        ledger.budget("other", rows=9, price_per_row=0.02)
        other = acex.Model(asking(server.url, token_prices=(1.0, 2.0), money=1.0), name="other")
        with pytest.raises(ValueError, match=r"'other' is set twice: token_prices .* price_per_row"):
            acex.Explainer(other, data, ledger=ledger)
        assert ledger.account("other").row_budget == 9 and len(server.bodies) == 2


def test_a_model_does_not_change_the_cap_of_a_ledger(tmp_path: Path) -> None:
    data = pd.concat([ROWS] * 10, ignore_index=True)
    with serving(chat(chance)) as server, acex.Ledger(tmp_path / "l.db") as ledger:
        model = acex.Model(asking(server.url, token_prices=(1.0, 2.0), money=5.0), name="chat")
        ledger.budget("chat", money=0.25)
        with pytest.raises(ValueError, match=r"money=5: .* cap of 0\.25 for 'chat'.* ledger\.budget"):
            acex.Explainer(model, data, ledger=ledger)
        ledger.budget("chat", money=5)
        acex.Explainer(model, data, ledger=ledger)
        assert ledger.account("chat").money_budget == 5


def test_refused_requests_cost_nothing() -> None:
    with serving(says(503, ""), says(503, ""), chat(chance), says(401, "")) as server:
        box = priced(asking(server.url, token_prices=(1.0, 2.0), money=1.0))
        box.ask(replies(1))
        with pytest.raises(ModelFailed):
            box.ask(replies(1, first=1))
        assert money_used(box) == pytest.approx(bill(server.bodies[:1]))


def test_the_cap_holds_for_many_threads() -> None:
    with serving(chat(chance)) as server:
        model = asking(server.url, token_prices=(1.0, 2.0), money=0.008)
        ledger = MemoryLedger()
        with ThreadPoolExecutor(4) as threads:
            parts = [(priced(model, ledger), replies(40, first=100 * i)) for i in range(4)]
            sent = sum(threads.map(lambda part: ask_until_spent(*part), parts))
        assert 20 < sent == len(server.bodies) < 160
        assert bill(server.bodies) == pytest.approx(float(ledger.account("chat").money_used))
        assert bill(server.bodies) <= 0.008


def _ask_many(model: HttpModel, path: Path, first: int) -> None:
    with acex.Ledger(path) as ledger:
        ask_until_spent(priced(model, ledger), replies(60, first))


def test_with_a_ledger_the_cap_holds_for_several_processes_and_runs(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    with serving(chat(chance)) as server:
        model = asking(server.url, token_prices=(1.0, 2.0), money=0.003)
        spawn = multiprocessing.get_context("spawn")
        processes = [spawn.Process(target=_ask_many, args=(model, path, 100 * i)) for i in range(3)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        assert [process.exitcode for process in processes] == [0, 0, 0]
        assert 5 < len(server.bodies) < 60
        with acex.Ledger(path) as ledger:
            later = priced(asking(server.url, token_prices=(1.0, 2.0), money=0.003), ledger)
            assert bill(server.bodies) == pytest.approx(money_used(later)) and bill(server.bodies) <= 0.003
            assert ask_until_spent(later, replies(3, first=900)) == 0


def test_after_kill_9_what_was_reserved_counts_as_spent(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    with serving(drip_body) as server:
        model = asking(server.url, token_prices=(1.0, 2.0), money=0.003)
        process = multiprocessing.get_context("spawn").Process(target=_ask_many, args=(model, path, 0))
        process.start()
        while not server.bodies:
            time.sleep(0.01)
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        with acex.Ledger(path) as ledger:
            assert float(ledger.account("chat").money_used) == pytest.approx(most(server.bodies[0]))


def test_prices_are_exact(tmp_path: Path) -> None:
    for ledger in (MemoryLedger(), acex.Ledger(tmp_path / "l.db")):
        ledger.budget("chat", money=0.3)
        for i in range(3):
            ledger.claim("chat", [Question(f"[{i}]")], price=Decimal("0.1"))
        assert ledger.account("chat").money_used == Decimal("0.3")  # as floats they would be more
        with pytest.raises(acex.BudgetSpent, match=r"'chat' has spent 0\.3"):
            ledger.claim("chat", [Question("[3]")], price=Decimal("0.1"))
        ledger.record("chat", ["[0]"], ["pass"], used=Decimal("0.04"))
        ledger.release("chat", ["[1]"])
        assert ledger.account("chat").money_used == Decimal("0.14")
        with acex.Ledger(tmp_path / f"{type(ledger).__name__}.db") as copy:
            if isinstance(ledger, MemoryLedger):
                ledger.copy_to(copy)
                assert (copy.account("chat").money_used, copy.account("chat").n_charged) == (Decimal("0.14"), 2)
                assert copy.account("chat").money_budget == Decimal("0.3")


# -- explanations, and a model that contradicts itself ---------------------------------------------------------------

RNG = np.random.default_rng(0)
DATA = pd.DataFrame(
    {"tone": RNG.choice(["rude", "calm"], 80), "words": RNG.integers(0, 60, 80), "cites a source": RNG.random(80) < 0.5}
)


@pytest.mark.parametrize("request_", [REQUEST, SEVERAL], ids=["one", "several"])
def test_a_language_model_can_be_explained(request_: Any, tmp_path: Path) -> None:
    x = pd.Series({"tone": "rude", "words": 30, "cites a source": False})
    with serving(chat(chance)) as server:
        model = asking(server.url, request=request_)
        options: Any = {"data": DATA, "target": "pass", "budget": 15, "ledger": tmp_path / "answers.db"}
        e = acex.explain(model, x, queries_per_round=3, **options)
        assert e.outcome == "found" and e.counterfactual["tone"] == "calm"
        rows = sum(len(schema_of(body)["required"]) for body in server.bodies)
        assert rows == e.n_queries <= 15
        again = acex.explain(model, x, queries_per_round=3, **options)
        assert again.n_queries == 0


def test_noise_breaks_no_promise(tmp_path: Path) -> None:
    """Every counterfactual was labelled by the model; nothing is asked twice; the budget is a cap."""
    with acex.Ledger(tmp_path / "answers.db") as ledger:
        for seed in range(3):
            with serving(chat(chance, noise=0.2, seed=seed)) as server:
                model = asking(server.url, version=str(seed))
                x = pd.Series({"tone": "rude", "words": 30, "cites a source": False})
                e = acex.explain(model, x, data=DATA, budget=15, ledger=ledger)
                prompts = [body["messages"][-1]["content"] for body in server.bodies]
                assert len(prompts) == len(set(prompts)) == e.n_queries <= 15
                answers = {a.row: a.label for a in ledger.answers(model.model_id)}
                assert set(answers.values()) <= set(CLASSES) and len(answers) == len(prompts)
                if e.outcome == "found":
                    box = BlackBox(acex.Model(model), ledger, 1, model_id=model.model_id)
                    assert box.ask(e.counterfactuals[:1])[0].label == e.label_after
                    assert box.n_queries == 0


# -- settings ------------------------------------------------------------------------------------------------


def test_the_id_is_the_prompt_and_the_labels_too() -> None:
    model = asking("http://host/score")
    assert model.model_id == asking("http://host/score", timeout=1.0, token_prices=(1, 2)).model_id
    others = [asking("http://host/score", request=SEVERAL), asking("http://host/score", classes=["pass", "fail", "?"])]
    assert len({m.model_id for m in (model, *others)}) == 3


def prompt(text: Any, **more: Any) -> dict[str, Any]:
    return {"request": {"model": "m", "messages": [{"role": "user", "content": text}], **more}}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"request": None}, "protocol 'chat' needs request="),
        ({"request": {"model": "m"}}, r"request\['messages'\] must be a list"),
        ({"request": {"model": "m", "messages": ["$record"]}}, r"request\['messages'\] must be a list"),
        (prompt("Grade this."), "no placeholder for the row: write \\$record"),
        (prompt("Grade $record and $records"), "no placeholder for the row"),
        (prompt("It costs $5: $record"), r"dollar sign is \$\$; got 'It costs \$5"),
        (prompt("$record", stream=True), "request\\['stream'\\] and request\\['n'\\]"),
        (prompt("$record", n=3), "request\\['stream'\\] and request\\['n'\\]"),
        (prompt("$record", response_format={"type": "text"}), "response_format.* is set from classes"),
        (
            prompt("$record", max_tokens=0),
            r"request\['max_tokens'\]: expected None or a whole number of at least 1, got 0",
        ),
        ({"classes": None}, "needs classes, two or more different labels"),
        ({"classes": ["pass"]}, "needs classes, two or more different labels"),
        ({"classes": [1, "1"]}, "needs classes, two or more different labels"),
        ({"labels": "choices"}, "labels cannot be set with protocol 'chat'"),
        ({"money": 1.0}, "money needs token_prices"),
        ({"token_prices": (1.0,)}, "token_prices must be two numbers"),
        ({"token_prices": (1.0, -1.0)}, "token_prices must be two numbers"),
        ({"token_prices": (1.0, 2.0), "money": -1.0}, "money: expected None, zero or a positive number"),
        ({**prompt("$record"), "token_prices": (1.0, 2.0), "money": 1.0}, "'max_completion_tokens' in request"),
    ],
)
def test_wrong_settings_are_refused_at_once(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        asking("http://host/score", **settings)


def test_other_protocols_have_no_tokens() -> None:
    with pytest.raises(ValueError, match="token_prices"):
        HttpModel("http://host/invocations", protocol="mlflow", token_prices=(1.0, 2.0))
    with pytest.raises(ValueError, match="completions"):
        HttpModel("http://host/v1", protocol="chat", request=REQUEST, classes=CLASSES)


def test_rows_that_a_prompt_cannot_hold_are_not_sent() -> None:
    with serving(chat(chance)) as server:
        for rows, model, message in (
            (
                ROWS.rename(columns={"tone": "mood"}),
                asking(server.url, **prompt("$tone")),
                "'tone', which are not columns",
            ),
            (ROWS.to_numpy(), asking(server.url), "data must be a DataFrame"),
            (ROWS.assign(words=np.inf), asking(server.url), "not JSON compliant"),
        ):
            with pytest.raises(ModelFailed, match=f"The rows cannot be sent .*{message}") as caught:
                model.predict(rows)
            assert not caught.value.charged
        assert server.bodies == []


CONFIG = """
classes = ["pass", "fail"]
token_prices = [0.15, 0.6]
money = 0.01

[request]
model = "grader-1"
max_completion_tokens = 20

[[request.messages]]
role = "user"
content = "Grade $record"
"""


def test_a_language_model_is_asked_from_a_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from commands import run

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CHAT_KEY", f"Bearer {TOKEN}")
    Path("grader.toml").write_text(CONFIG)
    pd.concat([DATA[DATA["tone"] == "rude"][:1], DATA[DATA["tone"] == "calm"]]).to_csv("replies.csv", index=False)
    with serving(chat(chance)) as server:
        url = server.url.replace("/score", "/v1/chat/completions")
        words = ("--model", url, "--protocol", "chat", "--model-config", "grader.toml", "--target", "pass")
        result = run("explain", "replies.csv", "--row", 0, *words, "--header-from-env", "Authorization=CHAT_KEY")
        assert result.exit_code == 0, result.stderr
        assert "fail -> pass" in result.stdout and TOKEN not in result.stdout + result.stderr
        assert server.headers[0]["Authorization"] == f"Bearer {TOKEN}"
