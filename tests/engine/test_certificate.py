"""Certificates: a changed digit is found, a signature protects, nothing secret is in them, promises are checked."""

from __future__ import annotations

import json
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519, x25519
from hypothesis import given, settings
from hypothesis import strategies as st

import acex
from acex.audit.verify import Verified, n_queries, verify
from acex.engine.certificate import canonical_form, certified, faults, parsed, sum_of
from acex.engine.redaction import redacted
from acex.options import Options
from acex.show.report import certificate_in, explanation_page, page_of
from acex.spreadsheets import write_csv
from servers import Handler, serving

DATA = pd.DataFrame(
    {
        "age": np.arange(20, 60),
        "income": np.random.default_rng(0).permutation(np.linspace(1000.0, 5000.0, 40).round(2)),
        "job": ["clerk", "cook", "nurse", "smith"] * 10,
        "debt": np.tile([0.1, 0.25, 0.5, 0.75], 10),
    }
)


def model(rows: pd.DataFrame) -> list[str]:
    return ["good" if i > 3000 and d < 0.6 else "bad" for i, d in zip(rows["income"], rows["debt"], strict=True)]


def factual() -> pd.Series[Any]:
    """A row whose debt may fall and whose income is too low."""
    return DATA[(DATA["debt"] == 0.5) & (DATA["income"] < 2500)].iloc[0]


@cache
def explained() -> acex.Explanation:
    options: Any = {"freeze": ["age"], "ranges": {"income": (0, 4000)}, "directions": {"debt": "decrease"}}
    return acex.explain(model, factual(), data=DATA, target="good", budget=14, **options)


@cache
def text() -> str:
    return explained().to_json()


def failed(verified: Verified) -> set[str]:
    return {check.promise for check in verified.checks if check.holds is False}


def test_an_explanation_holds_what_it_promises() -> None:
    verified = verify(parsed(text()), model=model)
    assert verified.holds, verified
    held = {check.promise for check in verified.checks if check.holds}
    assert held == {"sum", "labels", "budget", "limits", "cost", "record", "model"}
    assert "not signed" in verified.checks[0].words
    assert n_queries(parsed(text())) == 2


def test_the_form_does_not_depend_on_spaces_or_the_order_of_names() -> None:
    document = json.loads(text())
    mixed = json.dumps(dict(reversed(document.items())), indent=4, ensure_ascii=True)
    assert faults(parsed(mixed)) == []
    assert canonical_form(parsed('{"b": [1.50, true, null], "a": "é"}')) == '{"a":"\\u00e9","b":[1.5,true,null]}'


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_changed_digit_anywhere_is_found(data: st.DataObject) -> None:
    whole = text()
    places = [m.start() for m in re.finditer(r"\d", whole)]
    place = data.draw(st.sampled_from(places))
    digit = data.draw(st.sampled_from([d for d in "0123456789" if d != whole[place]]))
    changed = whole[:place] + digit + whole[place + 1 :]
    try:
        document = parsed(changed)
    except ValueError:
        return  # such as 07, which is no JSON
    if document == parsed(whole):
        return  # the last of seventeen digits need not change the number
    assert faults(document) != []
    try:
        holds = verify(document).holds
    except ValueError:
        return  # it is no explanation any more
    assert not holds


@pytest.mark.parametrize("version", [2, True, 1.0, "1", None])
def test_another_version_of_a_certificate_is_refused(version: Any) -> None:
    document = json.loads(text())
    document["certificate"]["version"] = version
    assert "version" in faults(document)[0]


def test_two_values_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="two values of one name"):
        parsed('{"a": 1, "a": 2}')
    with pytest.raises(ValueError, match="NaN is not a number"):
        parsed('{"a": NaN}')


@pytest.mark.parametrize(
    ("change", "promise"),
    [
        (lambda d: d["asked"][d["positions"][0]].__setitem__(0, 59), "limits"),
        (lambda d: d["asked"][d["positions"][0]].__setitem__(3, 0.75), "limits"),
        (lambda d: d["asked"][d["positions"][0]].__setitem__(1, 4897.44), "limits"),
        (lambda d: d["queries"][d["positions"][0]].__setitem__("label", "bad"), "labels"),
        (lambda d: d.__setitem__("n_queries", 99), "budget"),
        (lambda d: d["queries"][d["positions"][0]].__setitem__("cost", 0.001), "cost"),
        (lambda d: d.__setitem__("label_after", "splendid"), "record"),
        (lambda d: d["changes"][0].__setitem__("after", 17), "record"),
    ],
)
def test_a_broken_promise_is_named_also_with_a_new_checksum(change: Any, promise: str) -> None:
    document = json.loads(text())
    change(document)
    del document["certificate"]
    verified = verify(parsed(certified(document)))
    assert promise in failed(verified) and "sum" not in failed(verified)


def test_a_model_that_answers_differently_is_reported() -> None:
    verified = verify(parsed(text()), model=lambda rows: ["bad"] * len(rows))
    assert failed(verified) == {"model"}
    assert [check.words for check in verified.checks if check.holds is False] == [
        "the model answers 'bad' for its counterfactual; it was 'good'."
    ]


def test_exactly_two_rows_are_asked() -> None:
    seen: list[int] = []

    def counting(rows: pd.DataFrame) -> list[str]:
        seen.append(len(rows))
        assert rows.dtypes.tolist() == DATA.dtypes.tolist()
        return model(rows)

    verify(parsed(text()), model=counting)
    assert sum(seen) == 2


def test_a_rule_that_is_a_function_is_not_checked() -> None:
    e = acex.explain(model, factual(), data=DATA, target="good", budget=8, rules=[lambda rows: rows["income"] < 6000])
    [rule] = [check for check in verify(parsed(e.to_json())).checks if check.promise == "rules"]
    assert rule.holds is None


# -- signatures ------------------------------------------------------------------------------------------------


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    for name in ("ann", "bob"):
        key = ed25519.Ed25519PrivateKey.generate()
        pem, pkcs8, no = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        (tmp_path / f"{name}.pem").write_bytes(key.private_bytes(pem, pkcs8, no))
        public = key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo)
        (tmp_path / f"{name}.pub").write_bytes(public)
    return tmp_path


def test_only_who_has_the_key_can_sign(keys: Path) -> None:
    signed = explained().to_json(sign=keys / "ann.pem")
    assert faults(parsed(signed), keys / "ann.pub") == []
    assert "the signature is valid" in faults(parsed(signed), keys / "bob.pub")[0]
    assert faults(parsed(text()), keys / "ann.pub") == ["it is not signed."]
    forged = json.loads(signed)
    forged["label_after"] = "splendid"
    del forged["certificate"]
    again = certified(forged, keys / "bob.pem")
    assert faults(parsed(again)) == []  # the sum and bob's signature fit
    assert faults(parsed(again), keys / "ann.pub") != []
    assert b"PRIVATE" not in signed.encode() and (keys / "ann.pem").read_text().split("\n")[1] not in signed


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_changed_letter_of_the_signature_is_found(data: st.DataObject) -> None:
    key = ed25519.Ed25519PrivateKey.from_private_bytes(b"7" * 32)
    pem, pkcs8, no = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    path = Path(sys.prefix).parent / "unused"  # read from memory below

    class Memory:
        def read_bytes(self) -> bytes:
            return key.private_bytes(pem, pkcs8, no)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("acex.engine.certificate.Path", lambda _: Memory())
        document = certified({"a": 1}, path)
    begin = document.index('"certificate"')
    places = [m.start() for m in re.finditer(r"[A-Za-z0-9+/]", document) if m.start() > begin + 15]
    place = data.draw(st.sampled_from(places))
    letter = data.draw(st.sampled_from([c for c in "0aZ9+/" if c != document[place]]))
    changed = document[:place] + letter + document[place + 1 :]
    try:
        told = parsed(changed)
    except ValueError:  # no longer JSON, which is said too
        return
    assert faults(told) != []


def test_what_is_no_key_is_named(keys: Path) -> None:
    (keys / "odd.pem").write_text("no key")
    with pytest.raises(ValueError, match=r"odd\.pem: expected an Ed25519 private key in PEM"):
        explained().to_json(sign=keys / "odd.pem")
    other = x25519.X25519PrivateKey.generate()
    pem, pkcs8, no = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (keys / "x.pem").write_bytes(other.private_bytes(pem, pkcs8, no))
    with pytest.raises(ValueError, match="expected an Ed25519 private key, got X25519PrivateKey"):
        explained().to_json(sign=keys / "x.pem")
    with pytest.raises(ValueError, match="expected an Ed25519 public key in PEM"):
        faults(parsed(explained().to_json(sign=keys / "ann.pem")), keys / "odd.pem")


def test_without_cryptography_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.exceptions", None)
    with pytest.raises(acex.MissingExtra, match=r"acex\[sign\]"):
        explained().to_json(sign="key.pem")


# -- pages and batches -----------------------------------------------------------------------------------------


def test_a_page_carries_its_certificate_and_is_made_of_it_alone() -> None:
    page = explanation_page(explained(), price_per_row=0.25)
    certificate = certificate_in(page)
    assert verify(parsed(certificate)).holds
    assert page_of(certificate) == page
    assert explained().to_html() == explained().to_html()
    with pytest.raises(ValueError, match="no certificate"):
        certificate_in("<html></html>")


def test_texts_of_every_kind_survive_in_a_page() -> None:
    odd = "a\x85b</pre><script>&amp;\u2028é"
    data = DATA.assign(job=[odd, "cook"] * 20)
    e = acex.explain(model, data.iloc[int(str(factual().name))], data=data, target="good", budget=6)
    page = e.to_html()
    assert "<script" not in page
    assert json.loads(certificate_in(page))["space"] == e.to_dict()["space"]
    assert verify(parsed(certificate_in(page))).holds


def test_a_batch_has_a_sum_over_all_and_one_for_each(tmp_path: Path) -> None:
    rows = DATA[[label == "bad" for label in model(DATA)]].head(3)
    many = acex.Explainer(model, DATA).explain_many(rows, target="good", budget=6, n_jobs=1)
    whole = parsed(many.to_json())
    assert faults(whole) == []
    assert all(verify(row["explanation"]).holds for row in whole["rows"])
    for change in ("paid", "error"):
        other = parsed(many.to_json())
        other["rows"][1][change] = "7"
        assert faults(other) != []
    other = parsed(many.to_json())
    other["rows"][0]["explanation"], other["rows"][1]["explanation"] = (other["rows"][i]["explanation"] for i in (1, 0))
    assert faults(other) != []


SECRETS = ("swordfish", "opensesame", "kiwi-4711", "melon-0815", "plum-2222")  # each in a place of its own


def test_nothing_secret_is_in_a_certificate(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TOKEN", "Bearer swordfish")
    monkeypatch.setenv("TENANT", "kiwi-4711")
    monkeypatch.setenv("ELSEWHERE", "plum-2222")
    secret_folder = tmp_path / "opensesame"
    secret_folder.mkdir()

    def chatty(handler: Handler) -> None:
        """Every other answer is an error that repeats the key."""
        n = len(handler.server.bodies)
        if n == 9:
            handler.reply(403, f"no, {handler.headers['authorization']} and {handler.headers['x-tenant']}")
        else:
            rows = pd.DataFrame(handler.body["instances"], columns=DATA.columns)
            handler.reply(200, json.dumps({"labels": model(rows)}))

    with serving(chatty) as server:
        box = acex.HttpModel(
            server.url,
            protocol="json",
            headers_from_env={"Authorization": "TOKEN", "x-tenant": "TENANT"},
            key_headers=["x-tenant"],
            request={"instances": "$rows"},
            labels="labels",
            retries=0,
        )
        with acex.Ledger(secret_folder / "l.db") as ledger:
            explainer = acex.Explainer(box, DATA, ledger=ledger)
            rows = DATA[[label == "bad" for label in model(DATA)]].head(2)
            many = explainer.explain_many(rows, target="good", budget=6, n_jobs=1)
            outcomes = [e.outcome for e in many]
            assert "found" in outcomes and "failed" in outcomes  # both kinds are looked at
            written = [
                many.to_json(),
                write_csv(many.table()),
                *(e.to_html() for e in many),
                *(e.to_json() for e in many),
            ]
        assert any("swordfish" in h.get("authorization", h.get("Authorization", "")) for h in server.headers)
    failed = acex.Explainer(box, DATA)._planner.failed(DATA.iloc[[0]], Options(), "ModelFailed: it said no")
    for text in (*written, failed.to_json(), failed.to_html()):
        assert [secret for secret in SECRETS if secret in text] == []
        assert "TOKEN" not in text and "TENANT" not in text and str(tmp_path) not in text


def test_the_path_of_a_model_file_is_no_part_of_it(tmp_path: Path) -> None:
    import skops.io
    from sklearn.linear_model import LogisticRegression

    from acex.models.files import load_model

    folder = tmp_path / "melon-0815"
    folder.mkdir()
    numbers = DATA[["age", "income", "debt"]]
    skops.io.dump(LogisticRegression().fit(numbers, model(DATA)), folder / "m.skops")
    loaded = load_model(folder / "m.skops")
    e = acex.explain(loaded, numbers.iloc[0], data=numbers, budget=2, ledger=folder / "l.db")
    for text in (e.to_json(), e.to_html()):
        assert "melon-0815" not in text and "sha256:" in text


@pytest.mark.parametrize(
    "url", ["http://me:kiwi-4711@host/score", "http://host/score?api_key=kiwi-4711", "http://host/score?v=1&TOKEN=kiwi"]
)
def test_a_key_in_an_address_is_refused_since_addresses_are_written_down(url: str) -> None:
    with pytest.raises(ValueError, match="headers_from_env") as error:
        acex.HttpModel(url, protocol="json", request={"instances": "$rows"}, labels="x")
    assert "kiwi" not in str(error.value)


# -- what is left out ------------------------------------------------------------------------------------------


def test_a_column_that_is_left_out_leaves_only_a_salted_hash(tmp_path: Path) -> None:
    e = explained()
    out = tmp_path / "left.json"
    one, other = e.to_json(redact=["income", "job"], left_out=out), e.to_json(redact=["income", "job"])
    document = parsed(one)
    assert failed(verify(document, left_out=parsed(out.read_text()))) == set()
    assert not verify(parsed(other), left_out=parsed(out.read_text())).holds  # another salt
    written = json.loads(one)
    assert "clerk" not in one and "smith" not in one
    values = {str(row[1]) for row in e.to_dict()["asked"]}
    assert not [value for value in values if value in one]
    assert set(written["settings"]["redacted"]) == {"income", "job"} and "income" not in written["settings"]["ranges"]
    assert "income and job" in written["remarks"][0]["text"]
    left = json.loads(out.read_text())
    left["income"]["column"]["values"][0] += 1
    assert failed(verify(document, left_out=left)) == {"left out"}
    back = acex.Explanation.from_json(one)
    assert back.plan.space.names == ["age", "debt"] and back.costs == e.costs
    assert [c.holds for c in verify(document).checks if c.promise == "cost"] == [None]
    with pytest.raises(ValueError, match=r"^model: columns are redacted"):
        verify(document, model=model)


def test_a_page_leaves_columns_out_too() -> None:
    e = explained()
    changed = e.changes["feature"].tolist()
    page = e.to_html(redact=changed)  # every change
    assert "edacted" in page
    for value in e.trace[changed[0]].astype(str):
        assert f">{value}<" not in page
    assert verify(parsed(certificate_in(page))).holds


def test_what_cannot_be_left_out_is_named() -> None:
    document = explained().to_dict()
    with pytest.raises(ValueError, match="'wage'"):
        redacted(document, ["wage"])
    with pytest.raises(ValueError, match="every column would be left out"):
        redacted(document, DATA.columns.map(str))
    assert redacted(document, []) == (document, {})


def test_the_sum_is_the_one_of_the_standard() -> None:
    import hashlib

    assert sum_of(parsed('{"b":2,"a":"x"}')) == hashlib.sha256(b'{"a":"x","b":2}').hexdigest()
