"""Options are declared once: signatures, the table in the docs and the fingerprint of a plan agree with that."""

from __future__ import annotations

import inspect
import runpy
from collections.abc import Callable
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import pytest

import acex
from acex.options import BY_NAME, DECLARED, GROUPS, NESTED, Declaration, Options, RowOptions
from toys import bank, people, rejected

ROOT = Path(__file__).parents[1]
ROW = [declared for declared in DECLARED if declared.owner == "row"]
PEOPLE = people()
EXPLAINER = acex.Explainer(bank, PEOPLE)
BY_OWNER: dict[str, list[Callable[..., Any]]] = {
    "cost": [acex.Cost],
    "strategy": [acex.Feasible],
    "model": [acex.Model],
    "data": [acex.Space.infer, acex.Explainer],
}


def declared_parameters(function: Callable[..., Any]) -> dict[str, Any]:
    """The parameters of a function that are declared options, with their defaults, in order."""
    parameters = inspect.signature(function).parameters
    return {name: parameter.default for name, parameter in parameters.items() if name in BY_NAME}


@pytest.mark.parametrize(
    ("function", "other"),
    [(acex.explain, {}), (acex.Explainer.explain, {"seed": None})],  # None: that of the explainer
    ids=lambda value: getattr(value, "__qualname__", ""),
)
def test_signatures_have_the_options_of_a_row(function: Callable[..., Any], other: dict[str, Any]) -> None:
    names = [declared.name for declared in ROW]
    found = {name: default for name, default in declared_parameters(function).items() if name in names}
    assert found == {name: BY_NAME[name].default for name in names} | other
    assert list(found) == names


def test_other_methods_take_the_same_options() -> None:
    assert list(RowOptions.__annotations__) == [declared.name for declared in ROW]
    written = {name: hint.__forward_arg__ for name, hint in RowOptions.__annotations__.items()}
    assert acex.Explainer.explain.__annotations__.items() >= written.items()
    for name in ("search", "feature_subsets", "explain_many"):
        with pytest.raises(TypeError, match="budget_per_row"):
            getattr(EXPLAINER, name)(PEOPLE.iloc[0], budget_per_row=3)


@pytest.mark.parametrize("owner", BY_OWNER)
def test_nested_options_are_those_of_their_classes(owner: str) -> None:
    nested = {declared.name: declared.default for declared in DECLARED if declared.owner == owner}
    found: dict[str, Any] = {}
    for function in BY_OWNER[owner]:
        found |= {name: default for name, default in declared_parameters(function).items() if name in nested}
    if owner == "data":
        found["plausibility"] = found["plausibility"].or_else("joint").kind
    assert found == nested


@pytest.mark.parametrize("settings", [acex.Cost, acex.Feasible])
def test_every_setting_of_a_cost_and_a_strategy_is_declared(settings: type) -> None:
    assert {field.name for field in fields(settings)} <= set(BY_NAME)


def test_options_of_a_model_are_declared() -> None:
    assert set(inspect.signature(acex.Model).parameters) - {"predict"} <= set(BY_NAME)


def test_declarations_are_complete() -> None:
    assert len(BY_NAME) == len(DECLARED)
    assert {field.name for field in fields(Options)} == {declared.name for declared in ROW}
    assert all(field.default_factory is not MISSING for field in fields(Options))
    for declared in DECLARED:
        assert declared.group in GROUPS, declared.name
        assert declared.help.endswith("."), declared.name
    flags = [declared.flag.split()[0] for declared in DECLARED if declared.flag]
    assert len(flags) == len(set(flags))


# -- the fingerprint of a plan -----------------------------------------------------------------------------------

OTHER: dict[str, Any] = {
    "target": "good",
    "freeze": ["job"],
    "ranges": {"income": (0, 4000)},
    "values": {"job": ["cook", "judge"]},
    "directions": {"income": "increase"},
    "rules": ["debt <= income"],
    "max_changes": 2,
    "prefer": "short",
    "cost": acex.Cost(beta=1.0),
    "strategy": acex.Feasible(margin=0.7),
    "queries_per_round": 2,
    "seed": 1,
}


def plan(explainer: acex.Explainer = EXPLAINER, **options: Any) -> acex.Plan:
    return explainer.search(rejected(PEOPLE), **options).plan


@pytest.mark.parametrize("name", [declared.name for declared in ROW])
def test_an_option_at_its_default_leaves_the_identity_as_it_is(name: str) -> None:
    assert plan(**{name: BY_NAME[name].default}).identity == plan().identity


def test_no_option_at_its_default_is_in_the_fingerprint() -> None:
    decides = plan().decides
    assert not set(decides) & set(BY_NAME) - {"cost", "strategy", "prefer"}  # by default, `prefer` follows the space
    assert decides["cost"] == {}
    assert set(decides["strategy"]) == {"name", "revision"}


def test_defaults_of_a_cost_a_strategy_and_a_model_leave_the_identity_as_it_is() -> None:
    written_out = acex.Explainer(
        acex.Model(bank, scores=False, noise=0, confirm=3),
        PEOPLE,
        plausibility=acex.Plausibility(kind="joint"),
        space=acex.Space.infer(PEOPLE, missing="drop"),
        share_answers=True,
    )
    given = plan(written_out, cost=acex.Cost(per_change=0.0), strategy=acex.Feasible(effort="settle"))
    assert given.identity == plan().identity


@pytest.mark.parametrize("name", OTHER)
def test_an_option_that_decides_what_is_asked_changes_the_identity(name: str) -> None:
    assert plan(**{name: OTHER[name]}).identity != plan().identity


@pytest.mark.parametrize("option", [{"budget": 10}, {"time_limit": 5.0}])
def test_more_queries_or_time_continue_the_same_explanation(option: dict[str, Any]) -> None:
    assert plan(**option).identity == plan().identity


# -- unknown names -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("option", [o for o in NESTED if o.owner != "data"] + [BY_NAME["grid"], BY_NAME["other"]])
def test_the_error_about_an_option_of_another_object_names_the_object(option: Declaration) -> None:
    owner = {"cost": "Cost", "strategy": "Feasible", "model": "Model", "data": "Space.infer"}[option.owner]
    arguments: dict[str, Any] = {option.name: None}
    with pytest.raises(TypeError, match=f"unknown argument '{option.name}'.*acex.{owner}\\(.*{option.name}="):
        acex.explain(bank, rejected(PEOPLE), PEOPLE, **arguments)


def test_a_misspelled_argument_gets_a_suggestion() -> None:
    with pytest.raises(TypeError, match=r"'budgte'.*'budget'"):
        EXPLAINER.explain(rejected(PEOPLE), budgte=10)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"Explainer.*'outcome'.*'outcomes'"):
        acex.Explainer(bank, PEOPLE, outcome=bank(PEOPLE))  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"'outcomes'.*acex\.Explainer\(\.\.\., outcomes="):
        EXPLAINER.explain(rejected(PEOPLE), outcomes=bank(PEOPLE))  # type: ignore[call-arg]


# -- the table in the docs ---------------------------------------------------------------------------------------


def test_the_table_of_options_is_up_to_date() -> None:
    page = (ROOT / "docs/settings.md").read_text(encoding="utf-8")
    written = runpy.run_path(str(ROOT / "docs/generate.py"))["with_options"](page)
    assert written == page, "run python docs/generate.py"
    assert all(f"| `{declared.name}` |" in page for declared in DECLARED)
