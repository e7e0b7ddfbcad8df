"""Turns options and a row into a plan and a session, for one model and one reference."""

from __future__ import annotations

import platform
import shlex
import uuid
from collections.abc import Mapping
from dataclasses import fields, replace
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np

from acex._version import __version__
from acex.arrays import Rows
from acex.engine.blackbox import BlackBox
from acex.engine.explanation import Explanation
from acex.engine.pool import Pool, PoolEvidence
from acex.engine.reference import Reference
from acex.engine.sensitive import free_sensitive_columns
from acex.engine.session import Session
from acex.ledger import BaseLedger
from acex.models.labels import refuse_other_kind
from acex.models.model import Model
from acex.options import BY_NAME, Options, Preference
from acex.plan.fingerprint import fingerprint_of
from acex.plan.plan import Plan
from acex.plan.step import Ending
from acex.plan.target import Labels, Measured, Target
from acex.search.problem import Hint, Problem
from acex.space.plausibility import Joint, Plausibility
from acex.space.region import Region
from acex.space.rules import as_rules
from acex.space.space import Space, as_frame
from acex.values import Label, Remark, fingerprint, is_missing, joined_words

MOST_POOLS = 4  # spaces whose pool is kept
LIMITING = ("freeze", "ranges", "values", "directions", "rules", "max_changes")  # options that exclude candidates
MOST_NAMED, OFF = 3, 2.0  # largest number of features in a remark, and their least number of deviations off
CANNOT_RESUME = Remark(
    "cannot_resume",
    "A rule uses something whose content cannot be recorded, so a later run cannot tell whether it is still the same "
    "rule. This explanation cannot be resumed. Answers already paid for are reused.",
)


class Planner:
    """Plans and runs explanations of one model with one reference; a batch sends it to each worker once.

    Args:
        share_answers: whether to use answers from other explanations of the same model.
        remarks: remarks that apply to all rows.
    """

    def __init__(
        self,
        model: Model,
        reference: Reference,
        ledger: BaseLedger,
        model_id: str,
        *,
        share_answers: bool = True,
        remarks: tuple[Remark, ...] = (),
    ) -> None:
        self.model, self.reference, self.ledger, self.model_id = model, reference, ledger, model_id
        self.share_answers, self.remarks = share_answers, remarks
        self.imported: list[Label] = []  # labels of imported answers
        self.answered: list[Label] = []  # the model's label of the latest factual, if any
        self._pools: dict[Space, Pool] = {}

    @property
    def space(self) -> Space:
        """The features and the values they can hold."""
        return self.reference.space

    def check(self, options: Options) -> tuple[Options, Space, tuple[Any, ...]]:
        """The options with the target in the model's own labels, the space of a row with these options, and its rules.

        Raises:
            ValueError, TypeError: an option is wrong for every row.
        """
        options = replace(options, target=options.target.named(self.model.labels_by_name))
        target, model = options.target, self.model
        if model.voting is not None:
            if isinstance(target, Measured):
                raise ValueError("noise needs labels: numbers are not voted on.")
            if options.strategy.name != "feasible":
                raise ValueError(f"noise needs strategy 'feasible', got strategy {options.strategy.name!r}.")
        self._check_target(target)
        space = self.space.widened(options.ranges, options.values).adjust(
            freeze=options.freeze, directions=options.directions, weights=options.cost_or_default.weights
        )
        rules, functions = as_rules(options.rules, space) if options.rules else ((), ())
        return options, space, (*rules, *functions)

    def _check_target(self, target: Target) -> None:
        """Raise if the model can never meet the target, or the outcomes are not labels of the model."""
        model, reference = self.model, self.reference
        if not isinstance(target, Measured):
            if model.no_labels is not None:
                raise ValueError(f"target: {model.no_labels}")
        elif target.label is not None and not model.scores:
            raise ValueError(
                f"target: the probability of {target.label!r} needs a model with scores: acex.Model(..., scores=True)."
            )
        elif target.label is None:
            if model.scores:
                raise ValueError(
                    f"target: with scores=True the answers are probabilities: name the label, as in "
                    f"acex.{type(target).__name__}(..., label='good'), or leave scores out for a regressor."
                )
            reference.refuse_outcomes_that_are_no_numbers()
        if model.labels is not None:
            target.refuse_foreign(model.labels)
        if isinstance(target, Labels) and target.labels:
            reference.refuse_foreign_outcomes(target.labels, all_words=False)
        elif isinstance(target, Measured) and target.label is not None:
            reference.refuse_foreign_outcomes([target.label], all_words=False)

    def plan(self, x: Rows, options: Options) -> tuple[Plan, Problem]:
        """The plan for a row, and the problem that a search solves for it.

        Raises:
            ValueError: the row or one of the options is wrong.
        """
        options, known, rules = self.check(options)
        space, encoded = known.reaching(x)
        if len(encoded) != 1:
            raise ValueError(f"x must be one row, got {len(encoded)}.")
        reference = self.reference.without_identifiers_of(space)
        problem = reference.problem(space, encoded[0], options, rules)
        functions, remarks = self._fingerprint_of_functions(options, problem)
        row = space.frame(problem.factual[None]).iloc[0]
        ignored = {
            f.name for f, s in zip(space.features, reference.scale.deviations, strict=True) if f.frozen and s == 0
        }
        settings = self._settings(options, space)
        plan = Plan(
            factual={str(name): None if is_missing(value) else value for name, value in row.items()},
            space=space,
            scale=reference.scale,
            target=options.target,
            settings=settings | ({} if functions is None else {"functions": functions}),
            allowed=problem.region.allowed,
            listed=problem.region.listed,
            decides=self._deciding(options, settings) | {"reference": reference.identity, "functions": functions},
            remarks=(
                *self.remarks,
                *(remark for remark in known.remarks_on(x, encoded[0]) if not ignored.issuperset(remark.columns)),
                *_assumptions(space, problem.region, options.values),
                *unusual_row(problem),
                *free_sensitive_columns(space, [*settings["ranges"], *settings["values"]]),
                *remarks,
            ),
        )
        return plan, problem

    def _relaxed(self, x: Rows, options: Options, problem: Problem) -> dict[str, Problem]:
        """The problem without each option that excludes candidates, by the name of the option."""
        out = {} if problem.density is None else {"plausibility": replace(problem, density=None)}
        for name in LIMITING:
            if getattr(options, name) != getattr(Options(), name):
                without = replace(options, **{name: getattr(Options(), name)})
                _, space, rules = self.check(without)
                # Keep the space, and so its codes: ranges and values have widened it.
                space = problem.region.space if name in ("ranges", "values") else space.reaching(x)[0]
                out[name] = self.reference.without_identifiers_of(space).problem(space, problem.factual, without, rules)
        return out

    def _preference(self, options: Options, space: Space) -> Preference | None:
        """Which of a realistic and a short answer comes first; None if only one is searched for.

        By default there is no short answer if every feature is declared (as in comparisons with published results), or
        if the whole budget is for one search.
        """
        is_possible = self.reference.plausibility is not None and self.model.voting is None
        if options.prefer is not None:
            if not is_possible:
                raise ValueError("prefer: a short answer beside a realistic one needs plausibility, and no noise.")
            return options.prefer
        is_one_search = options.count == 1 and options.max_changes is None
        settles = getattr(options.strategy, "effort", None) == "settle"
        return "realistic" if is_possible and is_one_search and settles and space.inferred else None

    def _settings(self, options: Options, space: Space) -> dict[str, Any]:
        """All options as JSON-compatible values, including those at their default."""
        plausibility, model = self.reference.plausibility, self.model
        return {
            "model_id": self.model_id,
            **options.settings(space),
            "prefer": self._preference(options, space),
            "plausibility": None
            if plausibility is None
            else plausibility.or_else(options.strategy.default_plausibility).described,
            "outcomes": self.reference.outcomes is not None,
            "n_reference": len(self.reference),
            "scores": model.scores,
            "class_names": [[label, name] for label, name in model.class_names.items()] or None,
            "noise": model.noise,
            "confirm": model.confirm if model.noise else 3,  # without noise it has no effect
            "share_answers": self.share_answers,
        }

    def _deciding(self, options: Options, settings: Mapping[str, Any]) -> dict[str, Any]:
        """The settings that decide which rows are sent, without those at their defaults.

        So a new option, or a new setting of a cost or a strategy, keeps the identity of earlier explanations.
        """
        defaults = {name: declared.default for name, declared in BY_NAME.items()} | Options().settings(self.space)
        defaults["plausibility"] = Plausibility(kind="joint").described
        changed = {
            name: value
            for name, value in settings.items()
            if name not in defaults or (BY_NAME[name].decides and value != defaults[name])
        }
        for name in ("budget", "outcomes", "n_reference", "class_names"):  # the reference has its own fingerprint
            changed.pop(name, None)
        cost, strategy = options.cost_or_default, options.strategy
        return changed | {"cost": _changed(cost, cost.described), "strategy": _changed(strategy, strategy.described)}

    def _fingerprint_of_functions(self, options: Options, problem: Problem) -> tuple[str | None, tuple[Remark, ...]]:
        """A fingerprint of the functions among the rules, and a remark if it cannot be reproduced.

        It covers their code and, since that does not determine their results, the known rows that they accept. If the
        content of a function cannot be recorded, the fingerprint is unique: even the same function gets a new one.
        """
        functions = [rule for rule in options.rules if callable(rule)]
        if not functions:
            return None, ()
        contents = [fingerprint_of(function) for function in functions]
        is_complete = all(complete for _, complete in contents)
        passes = problem.region.contains(problem.region.snap(self.reference.points))
        mark = None if is_complete else uuid.uuid4().hex
        identity = fingerprint([*(content for content, _ in contents), np.packbits(passes).tobytes().hex(), mark])
        return identity, () if is_complete else (CANNOT_RESUME,)

    def session(self, x: Rows, options: Options) -> Session:
        """The session that explains one row."""
        plan, problem = self.plan(x, options)
        if self.answered and isinstance(plan.target, Labels):
            refuse_other_kind("target", plan.target.labels, self.answered[0])
        home = problem.quantiles.coordinates(problem.factual[None])
        return Session(
            plan,
            problem,
            options.strategy,
            self.box(plan.budget, plan.target),
            learn=lambda before: self._learn(plan, before),
            relaxed=lambda: self._relaxed(x, options, problem),
            pool_evidence=PoolEvidence(self._pool_of(plan.space), home, plan.target) if self.share_answers else None,
            time_limit=options.time_limit,
            metadata={"acex": __version__, "versions": versions()},
        )

    def _learn(self, plan: Plan, before: Label) -> Hint | None:
        """The hint from known outcomes, given the factual's label; raises if it is inconsistent with other labels."""
        target = plan.target
        refuse_other_kind("the imported label", self.imported, before)
        if isinstance(target, Labels):
            self.answered = [before]
            refuse_other_kind("target", target.labels, before)
            if target.labels:
                self.reference.refuse_foreign_outcomes([*target.labels, before])
        target.refuse_start(before)
        return self.reference.without_identifiers_of(plan.space).hint(target, before)

    def _pool_of(self, space: Space) -> Pool:
        """The model's earlier answers as points of this space; kept for the next explanation with an equal space."""
        pool = self._pools.pop(space, None)
        if pool is None or pool.ledger is not self.ledger:
            pool = Pool(self.ledger, self.model_id, space, self.reference.without_identifiers_of(space).quantiles)
        self._pools = dict([*self._pools.items(), (space, pool)][-MOST_POOLS:])
        return pool

    def box(self, budget: int, target: Target) -> BlackBox:
        """The model with a budget, queried for labels or for numbers, as the target needs."""
        numbers = isinstance(target, Measured) and target.label is None
        return BlackBox(self.model, self.ledger, budget, model_id=self.model_id, numbers=numbers)

    def failed(
        self, x: Rows, options: Options, error: str, so_far: Explanation | None = None, sent: int = 0
    ) -> Explanation:
        """The explanation of a row that could not be explained, with its steps so far and the number of rows sent."""
        options, space, _ = self.check(options)
        plan = Plan(
            factual={str(name): value for name, value in as_frame(x).iloc[0].items()},
            space=space,
            scale=self.reference.scale,
            target=options.target,
            settings=self._settings(options, space),
        )
        steps = () if so_far is None else so_far.steps
        return replace(Explanation.of(plan, steps, Ending("failed", error=error)), n_queries=sent)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_pools": {}}  # a worker reads them again if needed


def unusual_row(problem: Problem) -> tuple[Remark, ...]:
    """A remark if the factual itself is less plausible than the filter requires, with its most unusual features."""
    density = problem.density
    if not isinstance(density, Joint) or problem.least_score == density.settings.threshold:
        return ()
    off, features = density.model.off(problem.factual[None])[0], density.model.basis.features
    farthest_off = [features[i] for i in np.argsort(-off, kind="stable")[:MOST_NAMED] if off[i] >= OFF]
    names = [problem.region.space.names[j] for j in farthest_off]
    where = f", most of all in {joined_words(names)}" if names else ""
    text = f"The row itself is unusual among the data{where}; a counterfactual may be as unusual."
    return (Remark("unusual_row", text, tuple(names)),)


@cache
def versions() -> dict[str, str]:
    """The versions of Python and of the packages that results depend on, other than acex."""
    packages = ("numpy", "scipy", "scikit-learn", "pandas")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}


def _assumptions(space: Space, region: Region, lists: Mapping[Any, Any]) -> tuple[Remark, ...]:
    """Remarks on limits: the row's values not allowed, rules it breaks, columns with few values, relations."""
    out = []
    is_inside = (region.low <= region.factual) & (region.factual <= region.high)
    is_inside &= [j not in region.listed or x in region.allowed[j] for j, x in enumerate(region.factual)]
    if forced := [name for name, stays in zip(space.names, is_inside, strict=True) if not stays]:
        text = (
            f"{joined_words(forced)}: ranges or values exclude the row's own value, so every counterfactual changes it."
        )
        out.append(Remark("forced", text, tuple(forced)))
    held = [bool(rule.holds(region.factual[None], region.factual).all()) for rule in region.rules]
    if broken := [rule.text for rule, holds in zip(region.rules, held, strict=True) if not holds]:
        text = f"The row itself breaks {joined_words(broken)}; no counterfactual does, whatever the model answers."
        named = tuple(name for name in space.names if any(name in rule for rule in broken))
        out.append(Remark("rules_broken", text, named))
    listed = region.listed - space.by_index("values", lists).keys()
    few = [f.name for j, f in enumerate(space.features) if j in listed and region.movable[j] and f.values]
    few = [name for name in few if name in space.inferred]
    if few:
        what = f"{joined_words(few)}: only values that occur in data are used."
        flag = shlex.quote(f"{few[0]}=off")
        advice = f"Space.infer(data, grid={{{few[0]!r}: None}}) frees a column (in the shell --grid {flag})."
        out.append(Remark("few_values", what, tuple(few), advice=advice))
    kept = {rule.text for rule in region.rules}
    found = as_rules(space.relations, space)[0] if space.relations else ()
    known = (rule for rule in found if rule.applies(region.factual[None]).all())
    rules = [rule for rule in known if region.movable[rule.equalities[0].columns].any()]
    off = "Space.infer(data, relations=False) turns this off (in the shell --no-relations)."
    for code, is_kept, words, advice in (
        ("relations_kept", True, "Kept, as in all rows of data", off),
        ("relations_broken", False, "Not kept, because this row breaks it, although all rows of data keep it", ""),
    ):
        those = [rule for rule in rules if (rule.text in kept) is is_kept]
        columns = dict.fromkeys(space.names[j] for rule in those for j in rule.equalities[0].columns)
        if those:
            text = f"{words}: {joined_words([rule.text for rule in those])}."
            movable = [[j for j in rule.equalities[0].columns if region.movable[j]] for rule in those]
            alone = [space.names[left[0]] for left in movable if len(left) == 1]
            text += f" The columns that stay as they are determine {joined_words(alone)}." if is_kept and alone else ""
            out.append(Remark(code, text, tuple(columns), advice=advice))
    return tuple(out)


def _changed(settings: Any, described: Mapping[str, Any]) -> dict[str, Any]:
    """A dataclass's description of itself, without the fields at their defaults."""
    defaults = {field.name: field.default for field in fields(settings)}
    return {name: value for name, value in described.items() if name not in defaults or value != defaults[name]}
