"""The methods of the benchmark, by the names that the command line knows."""

from __future__ import annotations

from functools import partial

from acex.bench.methods import baselines, baycon, gradient, growing_spheres, moc, ours, peers, whitebox
from acex.bench.methods.method import Method
from acex.search.feasible import Feasible
from acex.search.penalty import Penalty

OUTCOMES = "rows, their true outcomes"


def _peer(name: str, package: str, **settings: object) -> Method:
    """A method of another package, in `peers` by the same name with underscores."""
    function = name.replace("-", "_")
    return Method(name, getattr(peers, function), partial(peers.missing, function), package=package, **settings)  # type: ignore[arg-type]


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method("feasible", ours.feasible, revision=Feasible.revision),
        Method("feasible-labels", ours.feasible_with_labels, told=OUTCOMES, revision=Feasible.revision),
        Method("feasible-margin", ours.feasible_with_margin, told=OUTCOMES, revision=Feasible.revision),
        Method("penalty", ours.penalty, revision=Penalty.revision),
        Method("growing-spheres", growing_spheres.growing_spheres, told="ranges"),
        Method("moc", moc.moc, partial(peers.missing, "moc"), package="pymoo"),
        Method("moc-stop", moc.moc_until_it_stagnates, partial(peers.missing, "moc"), package="pymoo"),
        Method("baycon", baycon.baycon, revision=2),
        Method("gradient", gradient.gradient),
        Method("nearest", baselines.nearest),
        Method("random", baselines.random),
        _peer("dice-random", "dice-ml", told="ranges"),
        _peer("dice-genetic", "dice-ml", told=OUTCOMES, labels_reference=True),
        _peer("dice-kdtree", "dice-ml", told=OUTCOMES, labels_reference=True),
        _peer("nice", "NICEx", told=OUTCOMES, labels_reference=True),
        _peer("cfnow", "cfnow", told="scores"),
        _peer("hopskipjump", "adversarial-robustness-toolbox", told="ranges", without_categories=True),
        Method("treecf", whitebox.treecf, partial(peers.missing, "treecf"), package="treecf", told="the model itself"),
    )
}
