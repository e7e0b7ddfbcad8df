"""The methods of the benchmark, by the names that the command line knows."""

from __future__ import annotations

from functools import partial

from acex.bench.methods import baselines, baycon, gradient, growing_spheres, moc, ours, peers
from acex.bench.methods.method import Method

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method("feasible", ours.feasible),
        Method("feasible-labels", ours.feasible_with_labels),
        Method("penalty", ours.penalty),
        Method("growing-spheres", growing_spheres.growing_spheres),
        Method("moc", moc.moc, partial(peers.missing, "moc")),
        Method("baycon", baycon.baycon),
        Method("gradient", gradient.gradient),
        Method("nearest", baselines.nearest),
        Method("random", baselines.random),
        Method("dice-random", peers.dice_random, partial(peers.missing, "dice_random")),
        Method("dice-genetic", peers.dice_genetic, partial(peers.missing, "dice_genetic")),
        Method("nice", peers.nice, partial(peers.missing, "nice")),
        Method("hopskipjump", peers.hopskipjump, partial(peers.missing, "hopskipjump"), without_categories=True),
    )
}
