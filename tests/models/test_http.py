"""A model behind HTTP, asked for real: what may have been charged is never sent twice."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import re
import signal
import socket
import sys
import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import acex
from acex import HttpModel, MissingExtra, ModelFailed
from acex.engine.blackbox import BlackBox
from acex.ledger import MemoryLedger, canonical
from acex.ledger.sql import Ledger
from acex.models import http as remote
from acex.models import transport
from ledgers import killed
from servers import Deed, drip_body, drip_headers, half, hang_up, labels, pours, raw, reset, says, serving

ROWS = np.array([[1.0], [-1.0], [2.0], [-2.0], [3.0]])
RIGHT = ["yes", "no", "yes", "no", "yes"]
NOT_NOW = says(503, "starting")
TOKEN = "s3cr3t-t0ken+7f9Kd2"


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits, which are recorded instead of slept."""
    slept: list[float] = []
    monkeypatch.setattr(remote, "sleep", slept.append)
    return slept


def asking(url: str, **settings: Any) -> HttpModel:
    defaults: dict[str, Any] = {"request": {"rows": "$rows"}, "labels": "labels", "timeout": 20.0}
    return HttpModel(url, protocol="json", **{**defaults, **settings})


# -- answers -----------------------------------------------------------------------------------------------


def test_rows_go_in_and_labels_come_out() -> None:
    with serving(labels) as server:
        model = asking(server.url)
        assert model.predict(ROWS) == RIGHT
        assert model.predict(pd.DataFrame(ROWS, columns=["a"])) == RIGHT
        assert server.bodies == [{"rows": ROWS.tolist()}] * 2
        assert server.headers[0]["content-type"] == "application/json"


@pytest.mark.parametrize(("size", "sizes"), [(1, [1] * 5), (2, [2, 2, 1]), (5, [5]), (100, [5])])
def test_a_request_holds_no_more_rows_than_allowed(size: int, sizes: list[int]) -> None:
    with serving(labels) as server:
        assert asking(server.url, rows_per_request=size).predict(ROWS) == RIGHT
        assert [len(body["rows"]) for body in server.bodies] == sizes


def test_a_template_for_one_row_asks_row_by_row() -> None:
    with serving(says(200, '{"label": "yes"}')) as server:
        assert asking(server.url, request={"x": "$row"}, labels="label").predict(ROWS[:2]) == ["yes", "yes"]
        assert server.bodies == [{"x": [1.0]}, {"x": [-1.0]}]


def test_servers_of_other_protocols_are_understood() -> None:
    with serving(says(200, '{"predictions": ["a"]}')) as server:
        url = server.url.replace("/score", "/invocations")
        assert HttpModel(url, protocol="mlflow").predict(pd.DataFrame({"x": [1]})) == ["a"]
        assert server.bodies == [{"dataframe_split": {"columns": ["x"], "data": [[1]]}}]
    with serving(says(200, '{"outputs": [{"name": "p", "shape": [1], "data": ["a"]}]}')) as server:
        url = server.url.replace("/score", "/v2/models/m/infer")
        assert HttpModel(url, protocol="v2").predict(ROWS[:1]) == ["a"]
        assert server.bodies[0]["inputs"][0]["datatype"] == "FP64"


def test_no_rows_need_no_request() -> None:
    with serving(labels) as server:
        assert asking(server.url).predict(ROWS[:0]) == []
        assert server.bodies == []


def test_it_can_be_explained() -> None:
    with serving(labels) as server:
        explanation = acex.explain(asking(server.url), ROWS[1], data=ROWS, target="yes", budget=10)
        assert explanation.outcome == "found"
        assert sum(len(body["rows"]) for body in server.bodies) == explanation.n_queries


# -- refused: nothing was charged, so it is sent again -------------------------------------------------------


@pytest.mark.parametrize("status", [429, 503])
def test_a_server_that_is_busy_is_asked_again(status: int, waits: list[float]) -> None:
    with serving(says(status, "busy"), says(status, "busy"), labels) as server:
        assert asking(server.url).predict(ROWS) == RIGHT
        assert len(server.bodies) == 3
        assert waits == [0.5, 1.0]


def test_retry_after_is_honoured(waits: list[float]) -> None:
    with serving(says(429, "", retry_after="7"), says(503, "", retry_after="soon"), labels) as server:
        assert asking(server.url).predict(ROWS) == RIGHT
    assert waits == [7.0, 1.0]  # anything but seconds is ignored


def test_a_server_that_asks_for_too_much_patience_is_reported(waits: list[float]) -> None:
    with serving(says(429, "quota used up", retry_after="3600")) as server:
        with pytest.raises(ModelFailed, match="'quota used up'") as e:
            asking(server.url).predict(ROWS)
        assert (len(server.bodies), waits, e.value.charged) == (1, [], False)


def test_patience_ends_with_the_retries(waits: list[float]) -> None:
    with serving(NOT_NOW) as server:
        with pytest.raises(ModelFailed, match="'starting'") as caught:
            asking(server.url, retries=2).predict(ROWS)
        assert len(server.bodies) == 3
    assert waits == [0.5, 1.0]
    assert (caught.value.charged, caught.value.in_doubt, caught.value.answered) == (False, 0, [])


def test_waits_double_up_to_a_minute(waits: list[float]) -> None:
    with serving(NOT_NOW) as server, pytest.raises(ModelFailed, match=r"'starting'\. Nothing"):
        asking(server.url, retries=9).predict(ROWS)
    assert waits == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]


def test_a_refused_connection_is_tried_again(waits: list[float]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(ModelFailed, match="/score cannot be reached") as caught:
        asking(f"http://127.0.0.1:{port}/score").predict(ROWS)
    assert waits == [0.5, 1.0, 2.0, 4.0]
    assert not caught.value.charged


@pytest.mark.parametrize("status", [302, 401, 403, 404, 413])
def test_who_is_turned_away_was_not_charged_and_does_not_insist(status: int) -> None:
    with serving(says(status, "no such luck", location="http://127.0.0.1:9/")) as server:
        with pytest.raises(ModelFailed, match=rf"answered {status}: 'no such luck'\. Nothing was charged") as caught:
            asking(server.url).predict(ROWS)
        assert len(server.bodies) == 1
        assert not caught.value.charged


# -- lost: it may have been charged, so it is never sent again -----------------------------------------------


@pytest.mark.parametrize(
    ("deed", "message"),
    [
        (says(500, "out of memory"), "answered 500: 'out of memory'"),
        (says(400, "bad row"), "answered 400: 'bad row'"),
        (says(502, "bad gateway"), "answered 502"),
        (reset, "gave no complete answer: ReadError"),
        (hang_up, "gave no complete answer: RemoteProtocolError"),
        (half, "gave no complete answer: RemoteProtocolError"),
        (raw(b"250 mail.example at your service\r\n"), "gave no complete answer: RemoteProtocolError"),
        (raw(b"HTTP/1.1 200 OK\r\nx: " + b"y" * 2_000_000), "gave no complete answer"),
        (raw(b"HTTP/1.1 103 Early Hints\r\n\r\n" * 1000), "gave no complete answer"),
        (raw(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}x"), "gave no complete answer"),
        (raw(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n"), "gave no complete answer"),
        (raw(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\n{}"), "gave no complete answer"),
        (
            says(200, b"not zipped", content_encoding="gzip"),
            "gave no complete answer: .*incorrect header",
        ),
        (says(200, "<html>"), "one label per row: Expecting value.*The answer: '<html>'"),
        (says(200, ""), "one label per row: Expecting value"),
        (says(200, "[" * 100_000), "one label per row: maximum recursion depth"),
        (says(200, b"\xff\xfe\x00"), "one label per row"),
        (says(200, "{}"), "no 'labels'"),
        (says(200, '{"labels": ["yes"]}'), "expected 5 labels, got 1"),
        (says(200, '{"labels": "yes"}'), "expected 5 labels, got 'yes'"),
        (says(200, '{"labels": null}'), "expected 5 labels, got None"),
        (says(200, '{"labels": ["a", "a", "a", "a", null]}'), "got None, which is not a label"),
        (says(200, '{"labels": ["a", "a", "a", "a", NaN]}'), "got nan, which is not a label"),
        (says(200, '{"labels": [1, 1, 1, 1, NaN]}'), "got nan, which is not a label"),
        (says(200, '{"labels": [0.1, 1, 1, 1, 1]}'), "got 0.1, which is a score"),
        (says(200, '{"labels": [{}, {}, {}, {}, {}]}'), "got {}, which is not a label"),
        (says(200, '{"labels": [[1], [1, 2], [], [], []]}'), "not a label"),
    ],
)
def test_what_may_have_been_charged_is_sent_once(deed: Deed, message: str, waits: list[float]) -> None:
    with serving(deed) as server:
        with pytest.raises(ModelFailed, match=f"(?s){message}.*It may have been charged and was not sent again") as e:
            asking(server.url).predict(ROWS)
        assert len(server.bodies) == 1
    assert waits == []
    assert (e.value.charged, e.value.in_doubt, e.value.answered) == (True, 5, [])


@pytest.mark.parametrize("deed", [drip_body, drip_headers], ids=["body", "headers"])
def test_a_server_that_drips_is_left_at_the_timeout(deed: Deed) -> None:
    with serving(deed) as server:
        with pytest.raises(ModelFailed, match=r"0\.5 seconds.*may have been charged") as caught:
            asking(server.url, timeout=0.5).predict(ROWS)
        assert len(server.bodies) == 1
        assert caught.value.in_doubt == 5


# -- bodies that are too long, packed or written otherwise ---------------------------------------------------

CHUNKS = b"HTTP/1.1 %s\r\ntransfer-encoding: chunked\r\n\r\n1000000000\r\n"
UNTIL_CLOSED = b"HTTP/1.1 %s\r\n\r\n"


@pytest.mark.parametrize("start", [CHUNKS, UNTIL_CLOSED], ids=["chunked", "until closed"])
def test_an_endless_body_is_cut_while_it_is_read(start: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "ANSWER_LIMIT", 1_000_000)
    with serving(pours(start % b"200 OK"), labels) as server:
        with pytest.raises(ModelFailed, match="bytes"):
            asking(server.url).predict(ROWS)
        assert asking(server.url).predict(ROWS) == RIGHT
        assert server.poured < 20_000_000  # the limit, and what was under way


def test_an_endless_rejection_is_a_rejection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "ANSWER_LIMIT", 1_000_000)
    with serving(pours(UNTIL_CLOSED % b"401 Unauthorized")) as server:
        with pytest.raises(ModelFailed, match="/score answered 401") as caught:
            asking(server.url).predict(ROWS)
        assert not caught.value.charged


def test_a_busy_server_that_breaks_off_is_asked_again() -> None:
    with serving(says(503, "sta", content_length="1000"), labels) as server:
        assert asking(server.url).predict(ROWS) == RIGHT


def test_a_compressed_answer_is_limited_by_its_decompressed_size() -> None:
    bomb = gzip.compress(bytes(10**9))  # 1 MB that decompresses to 1 GB
    with serving(says(200, bomb, content_encoding="gzip")) as server:
        model = asking(server.url)
        tracemalloc.start()
        try:
            with pytest.raises(ModelFailed, match="bytes"):
                model.predict(ROWS)
            assert tracemalloc.get_traced_memory()[1] < 150_000_000
        finally:
            tracemalloc.stop()


def test_an_incomplete_compressed_answer_may_have_been_charged() -> None:
    body = gzip.compress(json.dumps({"labels": RIGHT}).encode())[:-12]
    with serving(says(200, body, content_encoding="gzip")) as server:
        with pytest.raises(ModelFailed, match="may have been charged"):
            asking(server.url).predict(ROWS)
        assert server.headers[0]["accept-encoding"] == "gzip"


def test_a_compressed_answer_is_read() -> None:
    long = json.dumps({"labels": RIGHT, "noise": np.random.default_rng(0).random(50_000).tolist()}).encode()
    with serving(says(200, gzip.compress(long), content_encoding="gzip")) as server:
        assert asking(server.url).predict(ROWS) == RIGHT


def test_a_body_as_long_as_the_limit_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    body = json.dumps({"labels": RIGHT})
    with serving(says(200, body)) as server:
        monkeypatch.setattr(transport, "ANSWER_LIMIT", len(body))
        assert asking(server.url).predict(ROWS) == RIGHT
        monkeypatch.setattr(transport, "ANSWER_LIMIT", len(body) - 1)
        with pytest.raises(ModelFailed, match="bytes"):
            asking(server.url).predict(ROWS)


@pytest.mark.parametrize("charset", ["utf-8", "utf-8-sig"])
def test_an_answer_is_utf_8(charset: str) -> None:
    answer = json.dumps({"labels": ["genügend"]}, ensure_ascii=False).encode(charset)
    with serving(says(200, answer)) as server:
        assert asking(server.url).predict(ROWS[:1]) == ["genügend"]


@pytest.mark.parametrize("charset", ["latin-1", "utf-16", "shift-jis"])
def test_an_answer_in_another_charset_may_have_been_charged(charset: str) -> None:
    word = "大丈夫" if charset == "shift-jis" else "genügend"
    answer = json.dumps({"labels": [word]}, ensure_ascii=False).encode(charset)
    reply = says(200, answer, content_type=f"application/json; charset={charset}")
    with serving(reply) as server, pytest.raises(ModelFailed, match=r"utf-8.*may have been charged"):
        asking(server.url).predict(ROWS[:1])


def test_long_words_of_a_server_are_cut() -> None:
    with serving(says(500, "x" * 10_000)) as server, pytest.raises(ModelFailed) as caught:
        asking(server.url).predict(ROWS)
    assert "x" * 300 in str(caught.value) and "x" * 301 not in str(caught.value)
    with serving(says(200, f'{{"labels": "{"x" * 10_000}"}}')) as server, pytest.raises(ModelFailed) as caught:
        asking(server.url).predict(ROWS)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("answer", ["error: overloaded", ""])
def test_a_label_outside_the_classes_may_have_been_charged_and_is_not_recorded(answer: str) -> None:
    with serving(labels, says(200, json.dumps({"labels": ["yes", answer]}))) as server:
        model = asking(server.url, rows_per_request=2, classes=["yes", "no"])
        box = BlackBox(acex.Model(model), MemoryLedger(), 10)
        with pytest.raises(ModelFailed, match=f"'{answer}'.*not a label.*may have been charged") as caught:
            box.ask(ROWS)
        assert (caught.value.answered, caught.value.in_doubt) == (["yes", "no"], 2)
        assert set(box.ledger.known(box.model_id, canonical(ROWS))) == set(canonical(ROWS[:2]))
        assert box.ledger.account(box.model_id).n_charged == 4


def test_numbers_need_not_be_among_the_classes() -> None:
    with serving(says(200, '{"labels": [0.25]}')) as server:
        assert asking(server.url, classes=["yes", "no"]).predict_numbers(ROWS[:1]) == [0.25]


# -- in parts ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("deed", "in_doubt"), [(half, 2), (NOT_NOW, 0)])
def test_labels_that_were_paid_for_before_a_failure_are_not_lost(deed: Deed, in_doubt: int) -> None:
    with serving(labels, deed) as server:
        with pytest.raises(ModelFailed) as caught:
            asking(server.url, rows_per_request=2, retries=0).predict(ROWS)
        assert len(server.bodies) == 2  # the third part was not sent
    error = pickle.loads(pickle.dumps(caught.value))
    assert (error.answered, error.in_doubt, str(error)) == (["yes", "no"], in_doubt, str(caught.value))


def test_the_black_box_keeps_what_was_answered_before_a_failure() -> None:
    with serving(labels, half, labels) as server:
        box = BlackBox(acex.Model(asking(server.url, rows_per_request=2)), MemoryLedger(), 10)
        with pytest.raises(ModelFailed, match="gave no complete answer") as caught:
            box.ask(ROWS)
        assert caught.value.in_doubt == 2
        known = box.ledger.known(box.model_id, canonical(ROWS))
        assert set(known) == set(canonical(ROWS[:2]))
        assert [answer.label for answer in box.ask(ROWS)] == RIGHT
        assert [len(body["rows"]) for body in server.bodies] == [2, 2, 2, 1]


def stopped_by(number: signal.Signals, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second request from now on, and only this one, ends with this signal to its own process."""
    exchange, calls = transport.exchange, iter([False, True])

    def exchanged(*args: Any, **settings: Any) -> Any:
        if next(calls, False):
            os.kill(os.getpid(), number)
        return exchange(*args, **settings)

    monkeypatch.setattr(remote, "exchange", exchanged)


def test_an_interrupt_between_requests_keeps_the_answers_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(labels) as server:
        box = BlackBox(acex.Model(asking(server.url, rows_per_request=2)), MemoryLedger(), 7)
        stopped_by(signal.SIGINT, monkeypatch)
        with pytest.raises(KeyboardInterrupt):
            box.ask(ROWS)
        assert set(box.ledger.known(box.model_id, canonical(ROWS))) == set(canonical(ROWS[:2]))
        # Two rows may have been charged without an answer; the last one was not sent.
        assert (box.n_queries, box.ledger.account(box.model_id).n_charged, box.remaining) == (4, 4, 3)
        assert [answer.label for answer in box.ask(ROWS)] == RIGHT
        assert [body["rows"] for body in server.bodies] == [ROWS[:2].tolist(), ROWS[2:4].tolist(), ROWS[4:].tolist()]


def test_a_kill_between_requests_keeps_the_answers_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(labels) as server:
        model = acex.Model(asking(server.url, request={"rows": ["$row"]}, labels="labels.0"))

        def work() -> None:
            stopped_by(signal.SIGKILL, monkeypatch)
            BlackBox(model, Ledger(tmp_path / "l.db"), 5).ask(ROWS)

        killed(work)
        with Ledger(tmp_path / "l.db") as ledger:
            assert set(ledger.known("model", canonical(ROWS))) == set(canonical(ROWS[:1]))
            assert [answer.label for answer in BlackBox(model, ledger, 5).ask(ROWS)] == RIGHT
        assert len(server.bodies) == 5


def test_an_interrupt_while_rows_are_asked_again_keeps_what_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(labels) as server:
        box = BlackBox(acex.Model(asking(server.url, rows_per_request=2)), MemoryLedger(), 5)
        box.ledger.import_answers(box.model_id, canonical(ROWS), ["no"] * 5)
        stopped_by(signal.SIGINT, monkeypatch)
        with pytest.raises(KeyboardInterrupt):
            box.ask_again(ROWS)
        assert box.ledger.contradicted(box.model_id) == set(canonical(ROWS[:1]))
        assert box.ledger.account(box.model_id).n_charged == 4


# -- rate, headers, and what is kept -------------------------------------------------------------------------


def test_requests_keep_their_distance(monkeypatch: pytest.MonkeyPatch, waits: list[float]) -> None:
    monkeypatch.setattr(remote, "monotonic", lambda: 100.0)
    pace = remote._Traffic(4.0)
    for _ in range(3):
        pace.wait()
    assert waits == [0.0, 0.25, 0.5]
    pickle.loads(pickle.dumps(pace)).wait()
    assert waits[3] == 0.0


def test_repetitions_keep_their_distance_too(waits: list[float]) -> None:
    with serving(NOT_NOW, labels) as server:
        assert asking(server.url, rate_limit=1000.0).predict(ROWS) == RIGHT
    assert len(waits) == 3 and waits[1] == 0.5  # a turn, the server's wish, another turn


def test_headers_come_from_the_environment_as_it_is_when_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(labels) as server:
        model = asking(server.url, headers_from_env={"Authorization": "MY_TOKEN"})
        for token in ("Bearer one", "Bearer two\n"):
            monkeypatch.setenv("MY_TOKEN", token)
            model.predict(ROWS)
        assert [headers["Authorization"] for headers in server.headers] == ["Bearer one", "Bearer two"]


@pytest.mark.parametrize(
    ("value", "how"), [("", "is not set"), ("a\nb", "holds characters"), ("é", "holds characters")]
)
def test_a_header_that_cannot_be_sent_is_reported_by_its_name_only(
    value: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", value)
    with serving(labels) as server:
        with pytest.raises(ModelFailed, match=f"The environment variable MY_TOKEN for 'X-Key' {how}[^é]*$") as e:
            asking(server.url, headers_from_env={"X-Key": "MY_TOKEN"}).predict(ROWS)
        assert server.bodies == [] and not e.value.charged


@pytest.mark.parametrize(
    "deed",
    [
        says(401, "no: s3cr3t-t0ken"),
        says(200, "s3cr3t-t0ken"),
        says(429, "Bearer s3cr3t-t0ken"),
        says(500, "x" * 290 + "s3cr3t-t0ken"),
    ],
)
def test_a_secret_is_nowhere(deed: Deed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "Bearer s3cr3t-t0ken")
    with serving(deed) as server:
        model = asking(server.url, headers_from_env={"Authorization": "MY_TOKEN"}, retries=0)
        with pytest.raises(ModelFailed, match=r"\*\*\*") as caught:
            model.predict(ROWS)
    error: BaseException | None = caught.value
    while error is not None:
        assert "s3cr3t" not in str(error) + repr(vars(error))
        error = error.__cause__ or error.__context__
    assert "s3cr3t" not in repr(model) + model.model_id
    assert b"s3cr3t" not in pickle.dumps(model) + pickle.dumps(caught.value)


@pytest.mark.parametrize("label", [TOKEN, f"denied for {TOKEN}"])
def test_a_label_with_a_secret_is_refused_and_not_stored(
    label: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MY_TOKEN", f"Bearer {TOKEN}")
    with serving(says(200, json.dumps({"labels": [label]}))) as server:
        model = asking(server.url, headers_from_env={"Authorization": "MY_TOKEN"}, retries=0)
        with (
            acex.Ledger(tmp_path / "answers.db") as ledger,
            pytest.raises(ModelFailed, match="headers_from_env") as caught,
        ):
            BlackBox(acex.Model(model), ledger, 10).ask(ROWS[:1])
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert TOKEN not in f"{caught.value} {vars(caught.value)}" and TOKEN.encode() not in written


def test_a_short_secret_does_not_make_a_label_invalid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "no")
    with serving(labels) as server:
        assert asking(server.url, headers_from_env={"X-Key": "MY_TOKEN"}).predict(ROWS) == RIGHT


def test_an_overlong_label_is_refused_and_not_quoted() -> None:
    for length, match in ((1_000, None), (1_001, "1,001 characters"), (5_000_000, "5,000,000 characters")):
        with serving(says(200, json.dumps({"labels": ["x" * length]}))) as server:
            model = asking(server.url)
            if match is None:
                assert model.predict(ROWS[:1]) == ["x" * length]
                continue
            with pytest.raises(ModelFailed, match=match) as caught:
                model.predict(ROWS[:1])
            assert len(str(caught.value)) < 1_000 and caught.value.in_doubt == 1


def test_plain_words_are_shown_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", f"Bearer {TOKEN}")
    words = (
        "Bearer realm=api: 3 of 5 rows at %20 /v1/models/loans-2026, id 0b5e22aa-9c1f, c29tZXRoaW5nIGVsc2U= [115, 101]"
    )
    with serving(says(500, words)) as server, pytest.raises(ModelFailed, match=re.escape(words)):
        asking(server.url, headers_from_env={"Authorization": "MY_TOKEN"}).predict(ROWS)


def test_a_model_travels_to_a_worker() -> None:
    with serving(labels) as server:
        model = asking(server.url, rate_limit=1000.0, classes=["no", "yes"])
        copy = pickle.loads(pickle.dumps(model))
        assert repr(copy) == repr(model)
        assert copy.predict(ROWS) == RIGHT
        assert copy.classes_ == ["no", "yes"]


def test_the_id_is_the_address_the_version_and_what_is_asked() -> None:
    model = asking("http://host/score", version="7")
    assert model.model_id.startswith("http://host/score 7 ")
    assert model.model_id == asking("http://host/score", version="7", timeout=1.0, retries=0).model_id
    others = [
        asking("http://host/score"),
        asking("http://host/score", version="8"),
        asking("http://other/score", version="7"),
        asking("http://host/score", version="7", labels="second"),
        asking("http://host/score", version="7", request={"rows": "$rows", "model": "b"}),
    ]
    assert len({m.model_id for m in (model, *others)}) == 6


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (lambda: asking("http://host/score", version="7"), "http://host/score 7 1a9362756931"),
        (
            lambda: asking("http://host/score", version="7", headers_from_env={"Authorization": "T"}),
            "http://host/score 7 1a9362756931",
        ),
        (
            lambda: HttpModel("http://host:8080/v2/models/m/infer", protocol="v2"),
            "http://host:8080/v2/models/m/infer 2c6994a83ba0",
        ),
        (
            lambda: HttpModel("http://host:5000/invocations", protocol="mlflow"),
            "http://host:5000/invocations b422d1eb8f2a",
        ),
    ],
)
def test_the_id_is_the_one_of_version_0_1_0_so_that_its_ledgers_stay_free(model: Any, expected: str) -> None:
    assert model().model_id == expected


def selecting(url: str, **settings: Any) -> HttpModel:
    headers = {"Authorization": "MY_TOKEN", "X-Model": "MY_MODEL"}
    return asking(url, headers_from_env=headers, identity_headers=["X-Model"], **settings)


def test_another_model_behind_the_same_address_does_not_get_the_answers_of_the_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def by_model(handler: Any) -> None:
        word = "yes" if handler.headers["X-Model"] == "a" else "no"
        handler.reply(200, json.dumps({"labels": [word] * len(handler.body["rows"])}))

    monkeypatch.setenv("MY_TOKEN", TOKEN)
    answers = []
    with serving(by_model) as server, acex.Ledger(tmp_path / "answers.db") as ledger:
        for name in ("a", "b", "a"):
            monkeypatch.setenv("MY_MODEL", name)
            model = selecting(server.url)
            box = BlackBox(acex.Model(model), ledger, 10, model_id=model.model_id)
            answers.append((box.ask(ROWS[:1])[0].label, box.n_queries))
    assert answers == [("yes", 1), ("no", 1), ("yes", 0)]


def test_a_rotated_key_pays_for_nothing_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_MODEL", "loans-7")
    ids = set()
    for token in ("one", "two"):
        monkeypatch.setenv("MY_TOKEN", token)
        ids.add(selecting("http://host/score").model_id)
    assert len(ids) == 1
    assert "loans-7" not in ids.pop()  # only a hash of it


def test_a_model_that_was_exchanged_under_way_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", TOKEN)
    monkeypatch.setenv("MY_MODEL", "a")
    with serving(labels) as server:
        model = pickle.loads(pickle.dumps(selecting(server.url)))
        assert model.predict(ROWS) == RIGHT
        monkeypatch.setenv("MY_MODEL", "b")  # or a worker has another environment
        with pytest.raises(ModelFailed, match="'X-Model'") as caught:
            model.predict(ROWS)
        assert len(server.bodies) == 1 and not caught.value.charged


def test_what_selects_the_model_is_no_secret_and_may_be_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", TOKEN)
    monkeypatch.setenv("MY_MODEL", "loans-2026-11")
    words = "there is no model loans-2026-11"
    with serving(says(404, words)) as server, pytest.raises(ModelFailed, match=f"answered 404: '{words}'"):
        selecting(server.url).predict(ROWS)


def test_a_header_that_may_select_the_model_gets_a_remark() -> None:
    with pytest.warns(UserWarning, match="identity_headers") as caught:
        asking("http://host/score", headers_from_env={"X-Tenant": "TENANT", "api-key": "KEY"})
    assert [str(w.message).split("'")[1] for w in caught] == ["X-Tenant"]
    assert caught[0].filename == __file__


def test_in_a_shell_the_remark_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from commands import run

    monkeypatch.setenv("TENANT", "a")
    pd.DataFrame(ROWS, columns=["a"]).to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "remote.toml").write_text('request = {rows = "$rows"}\nlabels = "labels"')
    with serving(labels) as server:
        model = ("--model", server.url, "--protocol", "json", "--model-config", tmp_path / "remote.toml")
        done = run("explain", tmp_path / "rows.csv", "--row", 0, *model, "--header-from-env", "X-Tenant=TENANT")
    assert done.exit_code == 0, done.stderr
    assert "warning: headers_from_env: does 'X-Tenant' select the model?" in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    "settings",
    [
        {"headers_from_env": dict.fromkeys(["Authorization", "X-API-Key", "Ocp-Apim-Subscription-Key", "Cookie"], "V")},
        {"headers_from_env": {"X-Acme": "V"}, "key_headers": ["X-Acme"]},
        {"headers_from_env": {"X-Model": "MY_MODEL"}, "identity_headers": ["X-Model"]},
    ],
)
def test_a_key_or_a_header_that_was_named_gets_none(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_MODEL", "a")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asking("http://host/score", **settings)


def test_no_server_can_make_it_wait_longer_than_a_minute_between_retries(waits: list[float]) -> None:
    with serving(says(503, "", retry_after="60")) as server:
        model = asking(server.url, retries=3)
        with pytest.raises(ModelFailed):
            model.predict(ROWS)
    assert len(waits) == 3 and max(waits) <= 60


# -- wrong settings are refused before anything is sent ---------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "settings", "message"),
    [
        ("host/score", {}, r"expected http://\.\.\. or https"),
        ("ftp://host/score", {}, r"expected http://\.\.\. or https"),
        ("http://", {}, r"expected http://\.\.\. or https"),
        ("http://host:port/", {}, "is not an address"),
        ("http://me:pw@host/score", {}, r"^url: a password in the address would be stored[^@]*$"),
        ("http://host", {"protocol": "v2"}, r"the full address, such as http://host:8080/v2/models/NAME/infer"),
        ("http://host", {"protocol": "mlflow"}, r"the full address, such as http://host:5000/invocations"),
        ("http://host", {"protocol": "v1"}, "protocol must be 'v2', 'mlflow', 'json' or 'chat', got 'v1'"),
        ("http://host", {"labels": None}, "protocol 'json' needs request and labels"),
        ("http://host", {"request": {"x": 1}}, "has no placeholder for the rows"),
        ("http://host/infer", {"protocol": "v2", "inputs": "rows"}, "inputs must be 'matrix' or 'columns', got 'rows'"),
        ("http://host", {"rows_per_request": 0}, "rows_per_request: expected a whole number of at least 1, got 0"),
        ("http://host", {"retries": -1}, "retries: expected a whole number of at least 0, got -1"),
        ("http://host", {"timeout": 0}, "timeout: expected a positive number of seconds, got 0"),
        ("http://host", {"rate_limit": -2.0}, "rate_limit: expected None or a positive number, got -2.0"),
        (
            "http://host",
            {"identity_headers": ["X-Model"]},
            "identity_headers: 'X-Model' is not in headers_from_env",
        ),
        ("http://host", {"key_headers": ["X-Acme"]}, "key_headers: 'X-Acme' is not in headers_from_env"),
        (
            "http://host",
            {"headers_from_env": {"Authorization": "V"}, "identity_headers": ["Authorization"]},
            "identity_headers: 'Authorization' is a key",
        ),
        (
            "http://host",
            {"headers_from_env": {"X-Model": "NOT_SET_AT_ALL"}, "identity_headers": ["X-Model"]},
            "The environment variable NOT_SET_AT_ALL for 'X-Model' is not set",
        ),
        (
            "http://host",
            {"headers_from_env": {"X": "Bearer abc"}},
            r"^headers_from_env\['X'\][^B]*environment variable\.$",
        ),
    ],
)
def test_wrong_settings_are_refused_at_once(url: str, settings: dict[str, Any], message: str) -> None:
    defaults = {"protocol": "json", "request": "$rows", "labels": "labels"}
    with pytest.raises(ValueError, match=message):
        HttpModel(url, **{**defaults, **settings})


def test_rows_that_cannot_be_written_are_not_sent() -> None:
    with serving(labels) as server:
        with pytest.raises(ModelFailed, match="compliant") as caught:
            asking(server.url).predict(np.array([[np.inf]]))
        assert not caught.value.charged
        assert server.bodies == []


def test_what_is_missing_is_sent_as_null() -> None:
    rows = pd.DataFrame({"a": [1.0, 2.0], "b": pd.array([None, 2], dtype="Int64"), "c": [3.0, np.nan]})
    with serving(labels) as server:
        asking(server.url).predict(rows)
        assert server.bodies[0]["rows"] == [[1.0, None, 3.0], [2.0, 2, None]]
        with pytest.raises(ModelFailed, match=r"'input-0': .*missing values"):
            HttpModel(f"{server.url}/v2/models/m/infer", protocol="v2").predict(np.array([[np.nan]]))


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx2", None)
    with pytest.raises(MissingExtra, match="HttpModel"):
        asking("http://host/score")
