"""Train the belief of strategy "feasible" on simulated searches: P(hit) of a point, and P(something cheaper exists).

    python -m benchmarks train                              # about an hour on two cores
    python -m benchmarks train --tasks 20,20 --epochs 1 --out /tmp/try   # a try

The first round of searches uses a Gaussian process as belief; each later round uses the network trained on the earlier
rounds, so that the last network was trained on searches like those that it leads to. During each search, candidates of
all kinds are recorded, including those preferred by the search, with their inputs and with the label that the model
would return, which costs nothing here.
Half of the searches have help: outcomes (true, shuffled, partly wrong), earlier answers, scores.

Writes `weights.npz`, and `weights.json` with tasks, settings, versions, losses and checksum. The same command gives the
same weights on the same machine with the same libraries; otherwise, sums may be rounded differently.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import time
import traceback
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn
from scipy.special import expit, log_expit
from threadpoolctl import threadpool_limits

from acex.arrays import FloatArray
from acex.search import belief, belief_inputs, feasible, stopping
from acex.search.belief import MAX_INPUT, BeliefNetwork
from acex.search.candidates import enumerate_region, from_hits, from_reference, random_points, simplified
from acex.search.evidence import Points
from acex.search.feasible import Feasible
from acex.search.problem import History, Known, Problem, Query, Stop
from benchmarks.belief.simulated import VALIDATION, Case, earlier_answers, least_cost, task

N_QUERIES = 45
NOTED_UNTIL, NOTED_EVERY = 5, 3  # the first 5 states are recorded, then every third
OF_EACH, FAVOURITES = 10, 14  # number of candidates recorded per family, and of those preferred by the search
IMPLAUSIBLE = 0.15  # share of the implausible candidates that is recorded too
HELP = (  # kinds of help, and their probabilities
    *(("none", 0.38), ("outcomes", 0.24), ("shuffled", 0.06), ("stale", 0.08)),
    *(("known", 0.06), ("learnt", 0.1), ("scores", 0.08)),
)
HIDDEN, HIDDEN_OUTLOOK = (96, 64), (24,)
BATCH, RATE, DECAY, WARM = 2048, 2e-3, 1e-4, 0.15
Odds = Callable[[FloatArray], float] | None


@dataclass(frozen=True, eq=False)
class Notes:
    """The training data from one search."""

    inputs: FloatArray  # of candidates, (n, f)
    hits: FloatArray  # whether they are hits, (n,)
    states: FloatArray  # of the search after its first hit, (s, g)
    truths: FloatArray  # what `Outlook` should predict, (s, 4)


def helped(case: Case, help_: str, rng: np.random.Generator) -> tuple[Problem, Known | None, Odds]:
    """The problem of a case, known answers and scores with this kind of help."""
    match help_:
        case "outcomes":
            return case.with_outcomes(case.outcomes), None, None
        case "shuffled":
            return case.with_outcomes(rng.permutation(case.outcomes)), None, None
        case "stale":
            wrong = rng.random(len(case.outcomes)) < rng.uniform(0.05, 0.4)
            return case.with_outcomes(np.where(wrong, rng.permutation(case.outcomes), case.outcomes)), None, None
        case "known" | "learnt" if len(case.withheld):
            n_rows = int(rng.integers(1, 5) if help_ == "known" else rng.integers(9, 40))
            known, hint = earlier_answers(case, rng, n_rows)
            return replace(case.problem, hint=hint, hint_from_model=hint is not None), known, None
        case "scores" if case.gives_scores:
            return case.problem, None, lambda x: float(np.clip(case.odds(x[None])[0], -14, 14))
        case _:
            return case.problem, None, None


def begun(problem: Problem, known: Known | None, odds: Odds) -> History:
    """The history of a search after its first query, the factual."""
    empty = History((), (), (), known)
    return empty.with_answer(Query(problem.factual, "factual"), False, odds(problem.factual) if odds else None)


def noted(seed: int) -> Notes | str:
    """The training data from one search in the task with this seed, or the traceback if it failed."""
    rng = np.random.default_rng([5, seed])
    help_ = str(rng.choice([name for name, _ in HELP], p=[share for _, share in HELP]))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            case = task(seed, 1)[0]
            return _noted(case, *helped(case, help_, rng), seed, rng)
    except Exception:
        return f"seed {seed}, {help_}: {traceback.format_exc()}"


def _noted(case: Case, problem: Problem, known: Known | None, odds: Odds, seed: int, rng: np.random.Generator) -> Notes:
    history, strategy = begun(problem, known, odds), Feasible(effort="spend")
    rows: list[FloatArray] = []
    hits: list[FloatArray] = []
    states: list[tuple[int, FloatArray]] = []
    best = [np.inf]
    while len(history.queries) < N_QUERIES:
        round_ = feasible._Round(problem, strategy, history, 0, seed)
        n = len(history.queries)
        if n < NOTED_UNTIL or (n + seed) % NOTED_EVERY == 0:
            X = noted_candidates(problem, round_, rng)
            if len(X):
                rows.append(
                    belief_inputs.belief_inputs(round_.belief.evidence, Points(round_.context, X)).astype(np.float32)
                )
                hits.append(case.is_hit(X).astype(float))
            if round_.success.any():
                judged = round_.scored
                states.append((n, stopping.stopping_inputs(round_.belief.evidence, judged.probability, judged.saving)))
        query = round_.next()
        if isinstance(query, Stop):
            break
        history = history.with_answer(
            query, bool(case.is_hit(query.point[None])[0]), odds(query.point) if odds is not None else None
        )
        best.append(feasible._Round(problem, strategy, history, 0, seed).best)
    least = min(least_cost(case), best[-1])
    curve = np.array([*best, *[best[-1]] * 10])  # after 1, 2, ... queries
    truths = [
        [float(curve[n + 9] <= 0.95 * curve[n - 1]) if n + 9 < len(best) else np.nan]
        + [float(least <= (1 - share) * curve[n - 1]) for share in stopping.SAVINGS[1:]]
        for n, _ in states
    ]
    return Notes(
        np.vstack([*rows, np.zeros((0, len(belief_inputs.NAMES)))]).astype(np.float32),
        np.concatenate([*hits, np.zeros(0)]).astype(np.float32),
        np.array([state for _, state in states]).reshape(-1, len(stopping.NAMES)),
        np.array(truths).reshape(-1, len(stopping.SAVINGS)),
    )


def noted_candidates(problem: Problem, round_: Any, rng: np.random.Generator) -> FloatArray:
    """A few candidates of each family, and those preferred by the search, (n, d)."""
    judged = round_.scored
    if round_.best < np.inf:
        liked = judged.probability * judged.saving
    else:
        liked = judged.probability * (1 - round_.context.rank(judged.points.costs))
    order = np.argsort(-liked, kind="stable")[:FAVOURITES]
    families = [judged.points.X, random_points(problem, rng, OF_EACH // 2)]
    X = enumerate_region(problem)
    if X is None:
        families += [problem.projected, from_reference(problem, rng, OF_EACH)]
        hits = problem_hits(problem, round_)
        if len(hits):
            families += [from_hits(problem, rng, hits[:5], OF_EACH), simplified(problem, hits[0])]
    else:
        families.append(X)
    few = [X[rng.permutation(len(X))[:OF_EACH]] for X in families]
    X = np.unique(np.vstack([judged.points.X[order], *few]), axis=0)
    costs = problem.cost(X)
    X = X[(costs > 0) & (costs < 0.997 * round_.best) & problem.region.contains(X)]
    noted: FloatArray = X[problem.plausible(X) | (rng.random(len(X)) < IMPLAUSIBLE)] if len(X) else X
    return noted


def problem_hits(problem: Problem, round_: Any) -> FloatArray:
    """The counterfactuals so far, cheapest first, (n, d)."""
    hits: FloatArray = round_.history.X[round_.success]
    return hits[np.argsort(problem.cost(hits), kind="stable")]


# -- training --------------------------------------------------------------------------------------------


def trained(
    x: FloatArray, t: FloatArray, names: tuple[str, ...], hidden: tuple[int, ...], epochs: float
) -> BeliefNetwork:
    """A network from inputs, (n, f), to the log odds of targets, (n, outputs); NaN means that a target is unknown.

    Minimises the cross entropy by Adam (Kingma & Ba 2015) with decoupled weight decay; the learning rate rises, then
    falls like a cosine.
    """
    rng = np.random.default_rng(0)
    centre, spread = x.mean(axis=0), x.std(axis=0) + 1e-3
    A, t = np.clip((x - centre) / spread, -MAX_INPUT, MAX_INPUT).astype(np.float32), t.astype(np.float32)
    sizes = (A.shape[1], *hidden, t.shape[1])
    weights = []
    for inputs, outputs in pairwise(sizes):
        weights += [rng.normal(size=(inputs, outputs)) * np.sqrt(1.5 / inputs), np.zeros(outputs)]
    weights = [W.astype(np.float32) for W in weights]
    first, second = [np.zeros_like(W) for W in weights], [np.zeros_like(W) for W in weights]
    steps = max(int(epochs * len(A) / BATCH), 1)
    batches = _batches(rng, len(A), steps)
    for k, batch in enumerate(batches, start=1):
        gradients = _gradients(weights, A[batch], t[batch])
        done = k / steps
        rate = RATE * (done / WARM if done < WARM else 0.5 * (1 + np.cos(np.pi * (done - WARM) / (1 - WARM))))
        for i, gradient in enumerate(gradients):
            first[i] = 0.9 * first[i] + 0.1 * gradient
            second[i] = 0.999 * second[i] + 0.001 * gradient**2
            step = first[i] / (1 - 0.9**k) / (np.sqrt(second[i] / (1 - 0.999**k)) + 1e-8)
            weights[i] = (weights[i] - rate * (step + DECAY * weights[i] * (weights[i].ndim == 2))).astype(np.float32)
    layers = tuple(zip(weights[::2], weights[1::2], strict=True))
    return BeliefNetwork(centre.astype(np.float32), spread.astype(np.float32), layers, names, belief_inputs.REVISION)


def _batches(rng: np.random.Generator, n: int, steps: int) -> Any:
    left = np.zeros(0, dtype=int)
    for _ in range(steps):
        if len(left) < BATCH:
            left = np.concatenate([left, rng.permutation(n)])
        yield left[:BATCH]
        left = left[BATCH:]


def _gradients(weights: list[FloatArray], x: FloatArray, t: FloatArray) -> list[FloatArray]:
    """Gradients of the mean cross entropy, by backpropagation."""
    inputs, before, gates = [x], [], []
    for W, b in zip(weights[:-2:2], weights[1:-2:2], strict=True):
        z = inputs[-1] @ W + b
        gate = expit(z)
        before.append(z)
        gates.append(gate)
        inputs.append(z * gate)
    delta = np.nan_to_num(expit(inputs[-1] @ weights[-2] + weights[-1]) - t) / len(x)
    out: list[FloatArray] = []
    for layer in range(len(inputs) - 1, -1, -1):
        out = [inputs[layer].T @ delta, delta.sum(axis=0), *out]
        if layer:
            gate, z = gates[layer - 1], before[layer - 1]
            delta = (delta @ weights[2 * layer].T) * gate * (1 + z * (1 - gate))
    return out


def loss(network: BeliefNetwork, x: FloatArray, t: FloatArray) -> list[float]:
    """Mean cross entropy of each output."""
    f = np.vstack([network.log_odds(part) for part in np.array_split(x, 1 + len(x) // 100_000)])
    return [round(float(v), 4) for v in np.nanmean(-(t * log_expit(f) + (1 - t) * log_expit(-f)), axis=0)]


# -- all of it -------------------------------------------------------------------------------------------


def _begin(weights: str | None) -> None:
    """Initialise a process with the networks of the previous round, if any."""
    threadpool_limits(1)
    path = None if weights is None else Path(weights)
    networks = {} if path is None else {name: BeliefNetwork.load(path, name) for name in ("hit_", "outlook_")}
    belief.load_network = networks.get  # type: ignore[assignment]


def searched(seeds: range, weights: Path | None, n_jobs: int) -> list[Notes]:
    """The training data from searches in these tasks, in the order of the seeds."""
    begin = (None if weights is None else str(weights),)
    with ProcessPoolExecutor(n_jobs, initializer=_begin, initargs=begin) as pool:
        results = list(pool.map(noted, seeds, chunksize=4))
    for failure in (notes for notes in results if isinstance(notes, str)):
        print(failure, flush=True)
    return [notes for notes in results if isinstance(notes, Notes)]


def stacked(notes: list[Notes]) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Inputs, hits, states and truths of all searches."""
    hits = np.concatenate([n.hits for n in notes])[:, None]
    return (
        np.vstack([n.inputs for n in notes]),
        hits,
        np.vstack([n.states for n in notes]),
        np.vstack([n.truths for n in notes]),
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `python -m benchmarks train`."""
    parser.add_argument("--tasks", default="500,1100,2100", help="how many in each round")
    parser.add_argument("--epochs", type=float, default=5.0)
    parser.add_argument("--out", type=Path, default=belief.WEIGHTS.parent)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())


def main(args: argparse.Namespace) -> None:
    """Train the networks, and write the weights and their record."""
    args.out.mkdir(parents=True, exist_ok=True)
    path, seed = args.out / "weights.npz", 0
    notes: list[Notes] = []
    rounds: list[dict[str, Any]] = []
    networks: dict[str, BeliefNetwork] = {}
    start = time.perf_counter()
    for k, n_tasks in enumerate(int(n) for n in args.tasks.split(",")):
        more = searched(range(seed, seed + n_tasks), path if k else None, args.jobs)
        seed += n_tasks
        x, t, states, truths = stacked(more)
        line: dict[str, Any] = {"tasks": n_tasks, "searches": len(more), "candidates": len(x), "states": len(states)}
        if k:  # evaluate the network of the previous rounds on data it was not trained on
            line["loss before"] = loss(networks["hit_"], x, t) + loss(networks["outlook_"], states, truths)
        notes += more
        x, t, states, truths = stacked(notes)
        networks = {"hit_": trained(x, t, belief_inputs.NAMES, HIDDEN, args.epochs)}
        networks["outlook_"] = trained(states, truths, stopping.NAMES, HIDDEN_OUTLOOK, 4 * args.epochs)
        line["loss after"] = loss(networks["hit_"], x, t) + loss(networks["outlook_"], states, truths)
        arrays = {key: array for name, network in networks.items() for key, array in network.arrays(name).items()}
        np.savez(path, **arrays)  # type: ignore[arg-type]
        rounds.append(line)
        print(line, f"{time.perf_counter() - start:.0f} s", flush=True)
    record = {
        "command": f"python -m benchmarks train --tasks {args.tasks} --epochs {args.epochs:g}",
        "revision of traits": belief_inputs.REVISION,
        "seeds": f"0 to {seed - 1}; validation begins at {VALIDATION}",
        "queries a search": N_QUERIES,
        "help": dict(HELP),
        "hidden units": {"hit": HIDDEN, "outlook": HIDDEN_OUTLOOK},
        "training": {"batch": BATCH, "rate": RATE, "decay": DECAY, "epochs": args.epochs},
        "rounds": rounds,
        "versions": {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "scikit-learn": sklearn.__version__,
        },
        "sha256 of weights.npz": hashlib.sha256(path.read_bytes()).hexdigest(),
    }
    (args.out / "weights.json").write_text(json.dumps(record, indent=2) + "\n")
