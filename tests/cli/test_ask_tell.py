from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import acex
from acex.cli.ask_tell import _alike
from acex.cli.program import WAITING
from acex.engine.recorded import load_explanation
from commands import MODEL, Result, command, environment, run

pytestmark = pytest.mark.usefixtures("loans_folder")

CASE = ("loans.csv", "--drop", "id", "--outcomes", "outcome", "--row", "0", "--budget", "9", "--target", "good")
ASK = ("ask", *CASE, "--ledger", "lab.db", "--model-name", "assay", "--queries-per-round", "3")


# The same without outcomes: no label is known but the target.
BARE = ("ask", "loans.csv", "--drop", "id,outcome", *ASK[ASK.index("--row") :])


def read(path: str = "todo.csv") -> pd.DataFrame:
    return pd.read_csv(path, dtype={"label": "str"}, keep_default_na=False)


def fill_in(path: str = "todo.csv") -> pd.DataFrame:
    """What the laboratory sends back."""
    todo = read(path)
    good = (todo["income"] > 2000) & (todo["debt"] < 0.5)
    todo["label"] = good.map({True: "good", False: "bad"})
    return todo


def tell(todo: pd.DataFrame) -> str:
    todo.to_csv("told.csv", index=False)
    result = run("tell", "told.csv", "--ledger", "lab.db", "--new-labels")
    assert result.exit_code == 0, result.stderr
    return result.stdout


def in_ledger() -> Any:
    return json.loads(run("ledger", "show", "lab.db", "--json").stdout)


def test_ask_and_tell_come_to_the_same_end_as_explain() -> None:
    rounds = 0
    while not (result := run(*ASK, "--json", "--out", "todo.csv")).stdout.startswith('{\n "format"'):
        assert result.exit_code == WAITING, result.stderr
        rounds += 1
        assert "Still waiting: 0 rows." in tell(fill_in())
        Path("todo.csv").unlink()
    assert result.exit_code == 0
    answer = json.loads(result.stdout)
    words = ("explain", *CASE, *MODEL, "--model-name", "assay", "--queries-per-round", "3", "--json")
    alone = json.loads(run(*words).stdout)
    assert answer["asked"] == alone["asked"]
    assert answer["counterfactuals"] == alone["counterfactuals"]
    assert rounds == 4  # the factual, then three at a time
    [line] = in_ledger()["explanations"]
    assert (line["outcome"], line["paid"]) == ("found", 9)
    shown = run(*ASK)
    assert "bad -> good" in shown.stdout


def test_labels_come_back_in_parts_and_in_any_order() -> None:
    run(*ASK, "--out", "todo.csv")
    tell(fill_in())
    run(*ASK, "--out", "todo.csv")
    whole = fill_in()
    part = whole.iloc[::-1].copy()
    part["label"] = [" ", *part["label"].iloc[1:]]  # the first one not yet
    assert tell(part).startswith("Recorded: 2 labels. Still waiting: 1 row.\n")
    shown = run("ledger", "show", "lab.db").stdout
    assert "waiting" in shown and "labels come from tell" in shown and "NoneType" not in shown
    run(*ASK, "--out", "todo.csv")
    assert read()["acex_id"].tolist() == [whole["acex_id"].iloc[-1]]
    assert tell(whole).startswith("Recorded: 1 label. Recorded before: 2 labels. Still waiting: 0 rows.\n")


def test_without_out_the_list_goes_to_stdout_and_the_words_to_stderr() -> None:
    result = run(*ASK)
    assert result.stdout.startswith("acex_id,age,income,debt,job,label\n")
    assert "1 row to label" in result.stderr


def test_a_list_that_was_filled_in_is_not_overwritten() -> None:
    run(*ASK, "--out", "todo.csv")
    fill_in().to_csv("todo.csv", index=False)
    result = run(*ASK, "--out", "todo.csv")
    assert result.exit_code == 2
    assert "todo.csv has 1 label not recorded yet" in result.stderr
    assert read()["label"].tolist() == ["bad"]
    Path("other.csv").write_bytes(Path("loans.csv").read_bytes())
    assert "was not written by acex ask" in run(*ASK, "--out", "other.csv").stderr


def test_a_list_does_not_replace_the_table_or_the_ledger() -> None:
    run(*ASK, "--out", "todo.csv")
    tell(fill_in())
    table = Path("told.csv").read_bytes()
    model = ("--ledger", "lab.db", "--model-name", "assay")
    words = ("ask", "told.csv", "--row", 0, "--drop", "acex_id,label", "--out", "told.csv", *model)
    assert "told.csv has another use" in run(*words).stderr and Path("told.csv").read_bytes() == table
    new = [word if word != "lab.db" else "new.csv" for word in ASK]
    assert "new.csv has another use" in run(*new, "--out", "new.csv").stderr and not Path("new.csv").exists()


def test_a_label_that_differs_is_told_and_the_first_stands() -> None:
    run(*ASK, "--out", "todo.csv")
    tell(fill_in())
    fill_in().assign(label="good").to_csv("told.csv", index=False)
    result = run("tell", "told.csv", "--ledger", "lab.db")
    assert result.exit_code == 1
    assert "1 row had another label before" in result.stderr
    assert f"line 2, acex_id {read()['acex_id'][0]}: 'bad' was recorded before, now 'good'" in result.stderr
    assert len(acex.Ledger("lab.db").contradicted("assay")) == 1


def test_numbers_rounded_by_a_spreadsheet_are_taken_and_mixed_up_lines_are_not() -> None:
    run(*ASK, "--out", "todo.csv")
    tell(fill_in().assign(debt=lambda rows: (rows["debt"] + 1e-5).round(4)))
    run(*ASK, "--out", "todo.csv")
    mixed = fill_in()
    mixed["acex_id"] = mixed["acex_id"].tolist()[::-1]
    mixed.to_csv("told.csv", index=False)
    result = run("tell", "told.csv", "--ledger", "lab.db")
    assert result.exit_code == 2
    assert "was asked with" in result.stderr and "Nothing was recorded" in result.stderr
    assert in_ledger()["models"][0]["unanswered"] == 3


def test_labels_keep_their_kind() -> None:
    for label, kept in (("1.0", 1), ("1", 1), ("true", True), ("maybe", "maybe"), ('"1"', "1")):
        Path("lab.db").unlink(missing_ok=True)
        words = [word for word in ASK if word not in ("--target", "good", "--outcomes", "outcome")]
        assert run(*words, "--drop", "outcome", "--out", "todo.csv").exit_code == WAITING
        tell(read().assign(label=label))
        [stored] = acex.Ledger("lab.db").answers("assay")
        assert (stored.label, type(stored.label)) == (kept, type(kept))
        Path("todo.csv").unlink()


def test_a_feature_called_label_is_no_harm() -> None:
    loans = pd.read_csv("loans.csv").drop(columns="id").rename(columns={"job": "label"})
    loans.to_csv("odd.csv", index=False)
    words = ("ask", "odd.csv", "--outcomes", "outcome", "--row", 0, "--ledger", "lab.db", "--model-name", "assay")
    run(*words, "--out", "todo.csv")
    todo = read().assign(acex_label="bad")
    assert "Recorded: 1 label." in tell(todo)


def test_each_step_may_be_a_process_of_its_own() -> None:
    def shell(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command(*words), env=environment(), capture_output=True, text=True)

    assert shell(*ASK, "--out", "todo.csv").returncode == WAITING
    fill_in().to_csv("todo.csv", index=False)
    assert "Recorded: 1 label." in shell("tell", "todo.csv", "--ledger", "lab.db", "--new-labels").stdout
    assert shell(*ASK, "--out", "todo.csv").returncode == WAITING
    assert len(read()) == 3


# -- labels that are misspelled, and corrected ---------------------------------------------------------------------


def tell_label(label: str, *words: str) -> Result:
    read().assign(label=label).to_csv("told.csv", index=False)
    return run("tell", "told.csv", "--ledger", "lab.db", *words)


@pytest.mark.parametrize(("label", "meant"), [("Bad", "bad"), ("GOOD ", "good"), ("b ad", None), ("baad", "bad")])
def test_a_new_spelling_of_a_label_is_refused(label: str, meant: str | None) -> None:
    run(*ASK, "--out", "todo.csv")
    tell(fill_in())
    run(*ASK, "--out", "todo.csv")
    result = tell_label(label)
    assert result.exit_code == 2
    assert meant is None or f"Did you mean {meant!r}?" in result.stderr
    assert in_ledger()["models"][0]["answered"] == 1
    is_variant = label.strip().lower() == meant
    assert tell_label(label, "--new-labels").exit_code == (2 if is_variant else 0)
    assert in_ledger()["models"][0]["answered"] == (1 if is_variant else 4)


def test_the_first_labels_need_the_flag_unless_they_were_declared() -> None:
    run(*BARE, "--out", "todo.csv")
    result = tell_label("bad")
    assert result.exit_code == 2 and "'bad' (1 row)" in result.stderr and "--new-labels" in result.stderr
    assert "Did you mean 'good'?" in tell_label("Good").stderr
    assert in_ledger()["models"][0]["answered"] == 0
    assert tell_label(" bad ", "--new-labels").exit_code == 0
    run(*BARE, "--out", "todo.csv")
    assert tell_label("good").exit_code == 0  # the target


def test_outcomes_are_known_labels() -> None:
    run(*ASK, "--out", "todo.csv")
    assert tell_label("bad").exit_code == 0
    assert (
        "known_labels"
        not in acex.load_explanation(acex.Ledger("lab.db"), in_ledger()["explanations"][0]["id"]).settings
    )


def test_an_opposite_is_not_taken_for_a_misspelled_label() -> None:
    run(*BARE, "--out", "todo.csv")
    result = tell_label("ungood")
    assert result.exit_code == 2 and "Did you mean" not in result.stderr
    assert "Did you mean 'good'?" in tell_label("godo").stderr


def test_the_first_label_can_be_corrected() -> None:
    run(*BARE, "--out", "todo.csv")
    assert tell_label("Bad", "--new-labels").exit_code == 0
    assert "--correct" in tell_label("bad").stderr
    assert "--new-labels" in tell_label("bad", "--correct").stderr
    assert tell_label("bad", "--correct", "--new-labels").exit_code == 0
    result = run(*BARE, "--out", "todo.csv")
    assert result.exit_code == WAITING and "corrected" in result.stderr
    assert len(read()) == 3 and "Recorded: 3 labels." in tell(fill_in())


@pytest.mark.parametrize("flags", [(), ("--new-labels",)])
@pytest.mark.parametrize(
    ("labels", "refused", "meant"),
    [(["Fine", "fine", "fine"], "Fine", "fine"), (["x y", "X  Y", "x y"], "X Y", "x y")],
)
def test_new_labels_of_one_file_are_compared_with_each_other(
    labels: list[str], refused: str, meant: str, flags: tuple[str, ...]
) -> None:
    run(*ASK, "--out", "todo.csv")
    tell(read().assign(label="bad"))
    run(*ASK, "--out", "todo.csv")
    read().assign(label=labels).to_csv("told.csv", index=False)
    result = run("tell", "told.csv", "--ledger", "lab.db", *flags)
    assert result.exit_code == 2
    assert f"{refused!r} differs" in result.stderr and f"Did you mean {meant!r}?" in result.stderr


def test_a_class_name_stands_for_its_label() -> None:
    words = ("--class-name", "1=good", "--class-name", "0=bad")
    case = [word for word in ASK if word not in ("--outcomes", "outcome")]
    run(*case, "--drop", "outcome", *words, "--out", "todo.csv")
    assert tell_label("bad").exit_code == 0  # declared
    assert [answer.label for answer in acex.Ledger("lab.db").answers("assay")] == [0]


def test_a_corrected_label_counts_and_the_old_one_stays_on_record() -> None:
    run(*ASK, "--out", "todo.csv")
    tell(fill_in())
    run(*ASK, "--out", "todo.csv")
    right = fill_in()
    wrong = right.assign(label=["bad" if label == "good" else "good" for label in right["label"]])
    tell(wrong)
    before = json.loads(run(*ASK, "--json").stdout)
    right.to_csv("told.csv", index=False)
    assert run("tell", "told.csv", "--ledger", "lab.db").exit_code == 1  # without --correct the first stays
    result = run("tell", "told.csv", "--ledger", "lab.db", "--correct")
    assert result.exit_code == 0 and "Recorded: 0 labels. Corrected: 3 labels." in result.stdout
    assert "acex ask" in result.stderr
    Path("todo.csv").unlink()
    while not (result := run(*ASK, "--json", "--out", "todo.csv")).stdout.startswith('{\n "format"'):
        assert result.exit_code == WAITING, result.stderr
        tell(fill_in())
        Path("todo.csv").unlink()
    e = acex.Explanation.from_json(result.stdout)
    rows, labels = [step.row for step in e.steps], [step.label for step in e.steps]
    assert len(rows) > 4
    assert labels == ["good" if row["income"] > 2000 and row["debt"] < 0.5 else "bad" for row in rows]
    with acex.Ledger("lab.db") as book:
        charged = book.account("assay").n_charged
        assert charged == e.n_queries == book.tables.explanations("assay")["paid"].iloc[-1] <= 9  # the budget
        assert [ask.answer.label for ask in book.asks(before["explanation"])[1:4] if ask.answer] == [*wrong["label"]]
    remarks = load_explanation(acex.Ledger("lab.db"), before["explanation"]).remarks
    assert "corrected" in [remark.code for remark in remarks]
    assert "contradiction" not in [remark.code for remark in e.remarks]
    run("report", "lab.db", "--out", "reports")
    index = Path("reports/index.html").read_text(encoding="utf-8")
    assert index.count('<td data-name="outcome">outdated: labels were corrected</td>') == 1
    assert "For 1 of 1 rows a change was found" in index


def test_a_report_by_name_is_that_of_the_current_search() -> None:
    words = [*(word for word in ASK if word not in ("--drop", "id")), "--id-column", "id", "--out", "todo.csv"]
    name = str(pd.read_csv("loans.csv")["id"][0])
    run(*words)
    tell(fill_in())
    first = in_ledger()["explanations"][0]["id"]
    fill_in().assign(label="good").to_csv("told.csv", index=False)
    run("tell", "told.csv", "--ledger", "lab.db", "--correct")
    run(*words)
    for wanted in (name, first):
        result = run("report", "lab.db", "--id", wanted, "--out", "one.html")
        assert result.exit_code == 0, result.stderr
        assert ("corrected later" in Path("one.html").read_text(encoding="utf-8")) == (wanted == first)


@pytest.mark.parametrize("corrects", [False, True])
def test_a_larger_budget_continues_a_complete_search_and_ends_it_again(corrects: bool) -> None:
    def complete(budget: str) -> Result:
        words = [budget if word == "9" else word for word in ASK]
        while (result := run(*words, "--out", "todo.csv")).exit_code == WAITING:
            assert "labels recorded" in tell(fill_in()) or len(read()) == 1
            Path("todo.csv").unlink()
        return result

    assert complete("5").exit_code == 0
    if corrects:
        run("ledger", "export", "lab.db", "--out", "answers.csv")
        answers = read("answers.csv")
        answers[answers["label"] == "good"].head(1).assign(label="bad").to_csv("answers.csv", index=False)
        assert run("tell", "answers.csv", "--ledger", "lab.db", "--correct").exit_code == 0
        complete("5")
    result = complete("9")
    assert result.exit_code == 0
    assert "has not ended" not in result.stdout
    assert in_ledger()["explanations"][-1]["outcome"] == "found"


def test_a_label_can_be_corrected_in_what_the_ledger_exports() -> None:
    run(*ASK, "--out", "todo.csv")
    tell(fill_in())
    run(*ASK, "--out", "todo.csv")
    tell(fill_in())
    assert run("ledger", "export", "lab.db", "--out", "answers.csv").exit_code == 0
    answers = read("answers.csv")
    answers["label"] = ["bad" if label == "good" else label for label in answers["label"]]
    answers.to_csv("answers.csv", index=False)
    result = run("tell", "answers.csv", "--ledger", "lab.db", "--correct")
    assert result.exit_code == 0 and "Recorded before: " in result.stdout, result.stderr
    newest = {answer.row: answer.label for answer in acex.Ledger("lab.db").answers("assay")}
    assert set(newest.values()) == {"bad"}
    exported = run("ledger", "export", "lab.db", "--out", "answers.csv")
    assert "replaced by a correction left out" in exported.stderr
    assert read("answers.csv")["label"].tolist() == ["bad"] * 4
    assert run("tell", "answers.csv", "--ledger", "lab.db", "--correct").exit_code == 0
    assert acex.Ledger("lab.db").tables.answers("assay")["superseded"].sum() > 0  # the old ones stay on record
    run("ledger", "import", "other.db", "answers.csv", "--model-name", "assay")
    assert {answer.label for answer in acex.Ledger("other.db").answers("assay")} == {"bad"}


# -- files of spreadsheets -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-8-sig", "cp1252", "utf-16"])
def test_a_file_saved_by_a_german_spreadsheet_is_read(encoding: str) -> None:
    loans = pd.read_csv("loans.csv").replace({"job": {"cook": "Köchin"}})
    loans.to_csv("loans.csv", index=False)
    for _ in range(2):
        run(*ASK, "--out", "todo.csv")
        todo = fill_in()
        todo["income"] = [
            f"{income:,.2f}".replace(",", " ").replace(".", ",").replace(" ", ".") for income in todo["income"]
        ]
        text = todo.to_csv(index=False, sep=";", decimal=",", lineterminator="\r\n")
        assert "," in text and "Köchin" in text
        Path("todo.csv").write_bytes(text.encode(encoding))
        result = run("tell", "todo.csv", "--ledger", "lab.db", "--new-labels")
        assert result.exit_code == 0, result.stderr
    assert in_ledger()["models"][0]["answered"] == 4


def test_dates_and_truth_values_of_a_spreadsheet_are_recognised() -> None:
    assert _alike("2026-11-03", "03.11.2026") and not _alike("2026-11-03", "11.03.2026")
    assert _alike(True, "WAHR") and not _alike(True, "FALSCH")
    assert _alike("01069", "1069") and _alike("00", "0") and not _alike("01069", "10690") and not _alike("0", "")
    assert _alike(1250.75, "1.250,75") and _alike(1250, "1 250") and not _alike(1.5, "01. Mai")


def test_numbers_with_decimal_commas_are_labels_of_a_regressor() -> None:
    words = ["--target-range" if word == "--target" else "0.5.." if word == "good" else word for word in ASK]
    words = [word for word in words if word not in ("--outcomes", "outcome")]
    assert run(*words, "--drop", "outcome", "--out", "todo.csv").exit_code == WAITING
    assert "may be a fraction or thousands" in tell_label("1,250").stderr
    assert tell_label("0,25").exit_code == 0
    assert [answer.label for answer in acex.Ledger("lab.db").answers("assay")] == [0.25]


def test_ask_writes_the_decimal_commas_that_it_reads() -> None:
    pd.read_csv("loans.csv").to_csv("loans.csv", index=False, sep=";", decimal=",")
    run(*ASK, "--decimal", ",", "--out", "todo.csv")
    todo = pd.read_csv("todo.csv", sep=";", decimal=",", keep_default_na=False)
    assert todo["debt"].dtype == float
    todo.assign(label="bad").to_csv("todo.csv", index=False, sep=";", decimal=",")
    assert run("tell", "todo.csv", "--ledger", "lab.db", "--new-labels").exit_code == 0


def test_both_commands_show_the_name_of_the_row_and_how_far_it_is() -> None:
    words = [*(word for word in ASK if word not in ("--drop", "id")), "--id-column", "id"]
    result = run(*words, "--out", "todo.csv")
    name = str(pd.read_csv("loans.csv")["id"][0])
    assert f"{name}: 0 labels recorded, 1 waiting; budget 1 of 9; no counterfactual yet." in result.stderr
    assert "id" not in read().columns
    assert f"{name}: 1 label recorded; budget 1 of 9; no counterfactual yet." in tell(fill_in())
    run(*words, "--out", "todo.csv")
    assert "best cost so far" in tell(fill_in())
    [line] = in_ledger()["explanations"]
    assert line["names"] == [name]


@pytest.mark.parametrize("words", [("--noise", "0.1"), ("--freeze", "age"), ()])
def test_a_search_that_is_new_for_a_known_row_is_mentioned(words: tuple[str, ...]) -> None:
    run(*ASK, "--out", "todo.csv")
    tell(fill_in())
    loans = pd.read_csv("loans.csv")
    if not words:  # one row more
        pd.concat([loans, loans.tail(1)]).to_csv("loans.csv", index=False)
    result = run(*ASK, *words, "--out", "other.csv")
    assert "new search" in result.stderr and "1 label recorded" in result.stderr
    assert "new search" not in run(*ASK, *words, "--out", "other.csv").stderr
    assert "new search" not in run(*[word if word != "0" else "1" for word in ASK]).stderr  # another row


def test_a_feature_that_contains_the_target_is_mentioned() -> None:
    forgotten = ("ask", "loans.csv", "--drop", "id", *ASK[ASK.index("--row") :])
    assert "--outcomes outcome" in run(*forgotten).stderr
    assert "contains the target" not in run(*ASK).stderr


def test_the_first_ask_names_columns_that_look_sensitive() -> None:
    assert "--freeze age" in run(*ASK, "--out", "todo.csv").stderr
    tell(fill_in())
    assert "--freeze age" not in run(*ASK, "--out", "todo.csv").stderr


def test_the_result_counts_the_labels_of_all_runs() -> None:
    while "to label" in (result := run(*ASK, "--out", "todo.csv")).stderr:
        tell(fill_in())
        Path("todo.csv").unlink()
    assert "9 queries" in result.stdout


def test_the_budget_that_is_shown_is_the_latest() -> None:
    run(*ASK, "--out", "todo.csv")
    assert "budget 1 of 9;" in tell(fill_in())
    run(*ASK, "--budget", "12", "--out", "todo.csv")
    assert "budget 4 of 12;" in tell(fill_in())
    assert "4 rows were sent out before" in run(*ASK, "--budget", "3").stderr


# -- replicates: a laboratory whose results vary ---------------------------------------------------------------------

NOISY = (*ASK, "--noise", "0.05")


def test_a_row_that_is_asked_again_names_the_first_time() -> None:
    run(*NOISY, "--out", "todo.csv")
    [first] = read()["acex_id"]
    assert read()["repeat_of"].tolist() == [""]
    tell(fill_in())
    result = run(*NOISY, "--out", "todo.csv")
    assert "2 rows to label, 2 of them again (see repeat_of)" in result.stderr
    assert read()["repeat_of"].tolist() == [first, first] and first not in read()["acex_id"].tolist()
    assert "repeat_of" not in run(*ASK, "--seed", "5").stdout


def test_several_results_of_one_row_count_at_once_and_the_certainty_is_shown() -> None:
    n_rounds = n_told = 0
    while (result := run(*NOISY, "--out", "todo.csv")).exit_code == WAITING:
        n_rounds += 1
        assert read()["repeat_of"].eq("").all()  # three results are enough to be sure
        todo = pd.concat([fill_in()] * 3)
        told = tell(todo)
        n_told += len(todo)
        assert f"Recorded: {len(todo)} label" in told and f"{n_told} label" in told  # before the next ask
        assert "Recorded: 0 labels." in tell(todo)  # the same file again
        todo.to_csv("todo.csv", index=False)
        assert n_rounds > 1 or run(*NOISY, "--out", "todo.csv").exit_code == WAITING  # all of it is recorded
    assert result.exit_code == 0, result.stderr
    text = " ".join(result.stdout.split())
    assert "a hit with probability 0.999 after 3 of 3 votes" in text
    assert "27 answers used, 9 new queries" in text  # the budget counts questions


def test_several_results_of_one_row_need_noise() -> None:
    run(*ASK, "--out", "todo.csv")
    pd.concat([fill_in()] * 2).to_csv("told.csv", index=False)
    result = run("tell", "told.csv", "--ledger", "lab.db")
    assert result.exit_code == 2 and "--noise" in result.stderr and "Nothing was recorded" in result.stderr


def test_a_row_that_has_its_target_shows_the_votes() -> None:
    words = [{"good": "bad"}.get(word, word) for word in NOISY]
    run(*words, "--out", "todo.csv")
    tell(pd.concat([fill_in()] * 3))
    result = run(*words, "--out", "todo.csv")
    assert result.exit_code == 0 and "3 of 3 votes" in " ".join(result.stdout.split())


def tell_labels(labels: list[str], *words: str) -> Result:
    pd.concat([read().assign(label=label) for label in labels]).to_csv("told.csv", index=False)
    return run("tell", "told.csv", "--ledger", "lab.db", "--new-labels", *words)


def recorded() -> list[str]:
    return sorted(str(answer.label) for answer in acex.Ledger("lab.db").answers("assay"))


def test_the_order_of_results_does_not_matter() -> None:
    run(*NOISY, "--out", "todo.csv")
    assert tell_labels(["bad", "bad", "good"]).exit_code == 0
    for words in ((), ("--correct",)):
        assert tell_labels(["good", "bad", "bad"], *words).exit_code == 0
    with acex.Ledger("lab.db") as book:
        assert recorded() == ["bad", "bad", "good"] and not book.contradicted("assay")


def test_one_more_result_is_one_more_line() -> None:
    run(*NOISY, "--out", "todo.csv")
    tell_labels(["bad", "good"])
    assert tell_labels(["good", "good", "bad"]).exit_code == 0
    assert recorded() == ["bad", "good", "good"]
    run("ledger", "export", "lab.db", "--out", "answers.csv")
    answers = read("answers.csv")
    assert answers["acex_id"].nunique() == 1  # results of one row
    assert tell(pd.concat([answers, answers.head(1)]))
    assert len(recorded()) == 4


def test_a_correction_needs_a_line_for_each_result() -> None:
    run(*NOISY, "--out", "todo.csv")
    tell_labels(["bad", "bad", "good"])
    result = tell_labels(["good"], "--correct")
    assert result.exit_code == 2 and "3 results" in result.stderr
    assert tell_labels(["bad", "bad", "bad"], "--correct").exit_code == 0
    answers = acex.Ledger("lab.db").tables.answers("assay")
    assert answers[~answers["superseded"]]["label"].tolist() == ["bad", "bad", "bad"]
    assert answers["superseded"].sum() == 1


def test_a_misspelled_target_and_a_list_for_a_grid_get_a_hint() -> None:
    assert "Did you mean 'good'?" in run(*["Good" if word == "good" else word for word in ASK]).stderr
    assert "Repeat the option" in run(*ASK, "--grid", "age=5,debt=0.5").stderr
