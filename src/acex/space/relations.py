"""Relations between numeric columns, as text of rules: total == a + b, amount == price * n, square == a * a.

A relation holds in every known row, and shuffling a column would break it. All columns that are linear in columns
before them are found by one QR decomposition; a product is a sum of logarithms of absolute values. Linear relations
that hold up to the rounding of columns are found in the same way: abs(gross - 1.19 * net) <= 0.005, abs(sum(sand, clay,
lime) - 100) <= 0.1. Their limit is the largest deviation in the known rows, which must not exceed what rounding
explains. Rounded products and quotients of two columns are found by trial: abs(bmi - w / h / h) <= 0.05.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import product
from math import lgamma

import numpy as np

from acex.arrays import BoolArray, FloatArray, IntArray

EQUAL, LARGEST = 1e-9, 1e300  # relative tolerance of equality; larger numbers count as infinite
KEYWORDS = ("if", "then", "and", "or", "not", "in")  # of rules
FEWEST = 20  # fewest rows that a rule must hold for
MOSTLY = 0.5  # least share of nonzero values of a factor
SURPRISE = 0.05  # least share of rows that would break a relation if the columns were independent
CHANCE = 1e-6  # largest probability that a shuffled column satisfies a relation in all rows
MOST_ROWS = 2000  # number of rows in which relations are searched for; they are checked in all
RESIDUAL = 1e-8  # share of a column's deviation; a residual below it is a rounding error: the column is dependent
ROUGHLY = 1e-6  # tolerance for numerical noise in a solution
ROWS_PER_TERM = 5
MOST_TERMS = 30  # most columns in a relation that is not a plain sum
SIMPLE, MOST_ROUGH = 4, 3  # most digits of a simple weight; most columns in a relation with weights that are not simple
LONG_SUM = 3  # a sum of more columns is written with sum()
MOST_DECIMALS, COARSE = 4, 0.15  # of rounded columns: most decimals; largest unit, in standard deviations
SIGNIFICANT = 6.0  # standard errors by which a weight must differ from zero
POWERS, MOST_FACTORS = (-1, 1, -2), 60  # of rounded products: exponents of the second factor; most columns tried


def is_close(a: FloatArray, b: FloatArray) -> BoolArray:
    """Which numbers are equal up to rounding, (n,); infinity equals nothing."""
    with np.errstate(invalid="ignore"):  # inf - inf
        apart = np.abs(a - b)
    return np.asarray(apart <= EQUAL * np.clip(np.maximum(np.abs(a), np.abs(b)), 1.0, LARGEST))


def column_text(name: str) -> str:
    """The name of a column as written in rules."""
    is_plain = re.fullmatch(r"[^\W\d][\w.]*", name) and name not in KEYWORDS and name.lower() not in ("true", "false")
    return name if is_plain else f"`{name}`"


def number_text(value: float, tolerance: float = EQUAL) -> str:
    """A number with the fewest digits that the relative tolerance allows."""
    texts = (f"{value:.{digits}g}" for digits in range(1, 18))  # 17 digits distinguish any two floats
    return f"{float(next(text for text in texts if abs(float(text) - value) <= tolerance * abs(value))) + 0.0:.15g}"


def find_relations(names: Sequence[str], X: FloatArray) -> list[str]:
    """The relations between the columns of known rows, (n, k); together they imply all others."""
    use = [j for j, name in enumerate(names) if "`" not in name and len(X) >= FEWEST and np.ptp(X[:, j]) > 0]
    if len(use) < 2:
        return []
    words, X = [column_text(names[j]) for j in use], X[:, use]
    found = {tuple(relation[0]): _written(words, X, *relation) for relation in _linear(X)}
    sums = {max(columns) for columns, text in found.items() if text}
    often = (X != 0).mean(axis=0) > MOSTLY
    logs = list(_linear_in_logs(X, often))
    for j in np.flatnonzero(~often):  # such as a discount and its amount, if most orders have none
        rows = X[:, j] != 0
        logs += (p for p in _linear_in_logs(X[rows], (X[rows] != 0).mean(axis=0) > MOSTLY) if j in p[0])
    for columns, weights, constant in logs:
        least = np.abs(weights).min()
        powers = np.rint(weights / least)
        is_simple = 2 < np.abs(powers).sum() <= len(columns) + 1
        is_simple = is_simple and bool((np.abs(weights / least - powers) < ROUGHLY).all())
        # A column that is already determined by a sum needs no relation such as square == a * a.
        if is_simple and not found.get(tuple(columns)) and (len(columns) > 2 or max(columns) not in sums):
            found[tuple(columns)] = _written(words, X, columns, powers, constant / least, is_product=True)
    follow = {max(columns) for columns, text in found.items() if text}
    rounded: dict[int, str] = {}
    for left_out in (follow, sums) if follow > sums else (follow,):  # others may depend on products
        rest = np.delete(np.arange(len(words)), list(left_out))
        rounded = {int(rest[j]): text for j, text in _rounded([words[j] for j in rest], X[:, rest])} | rounded
    rest = np.delete(np.arange(len(words)), [*follow, *rounded])
    products = _rounded_products([words[j] for j in rest], X[:, rest])
    return [*(text for text in found.values() if text), *rounded.values(), *products]


def _linear_in_logs(X: FloatArray, factors: BoolArray) -> Iterator[tuple[IntArray, FloatArray, float]]:
    """The relations of `_linear` between logarithms of some columns, in the rows in which none of these is zero."""
    use = np.flatnonzero(factors)
    some = X[(X[:, use] != 0).all(axis=1)][:, use]
    if len(some) >= FEWEST:
        yield from ((use[at], weights, constant) for at, weights, constant in _linear(np.log(np.abs(some))))


def _linear(X: FloatArray) -> Iterator[tuple[IntArray, FloatArray, float]]:
    """Columns, weights and a constant such that X[:, columns] @ weights equals the constant in a sample of rows."""
    some = X[:: 1 + len(X) // max(MOST_ROWS, 3 * X.shape[1])]
    middle, spread = some.mean(axis=0), some.std(axis=0)
    Z = (some - middle) / np.where(spread > 0, spread, 1.0) / np.sqrt(len(some))
    left = np.abs(np.diag(np.linalg.qr(Z, mode="r")))
    left = np.concatenate([left, np.zeros(X.shape[1] - len(left))])  # more columns than rows
    basis, dependent = np.flatnonzero(left > RESIDUAL), np.flatnonzero((left <= RESIDUAL) & (spread > 0))
    if not len(dependent):
        return
    combined = np.linalg.lstsq(Z[:, basis], Z[:, dependent], rcond=None)[0]  # (basis, dependent)
    for j, weights in zip(dependent, combined.T, strict=True):
        used = np.abs(weights) > ROUGHLY
        columns = np.array([*basis[used], j])
        if used.any() and len(columns) * ROWS_PER_TERM <= len(some):
            raw = np.array([*-weights[used] * spread[j] / spread[basis[used]], 1.0])
            order = np.argsort(columns)
            constant = float(raw @ middle[columns])
            is_noise = abs(constant) <= EQUAL * np.abs(raw * middle[columns]).sum()
            yield columns[order], raw[order], 0.0 if is_noise else constant


def _written(
    words: list[str], X: FloatArray, columns: IntArray, weights: FloatArray, constant: float, is_product: bool = False
) -> str | None:
    """The relation as text of a rule; None if it fails in a row, may be due to chance, or is too complicated."""
    is_sum = len(columns) > 2 and not is_product and bool((np.abs(weights - weights[0]) < ROUGHLY).all())
    kept, broken = np.array([_chance_of(X[:, j]) for j in columns]).T
    if (kept.min() if is_sum else kept.max()) > np.log(CHANCE) or broken.max() < SURPRISE:
        return None
    for tolerance in (ROUGHLY, EQUAL / 10):  # the first rounds away the noise of the solution
        i, factors, last = _arranged(weights, constant, tolerance, is_product)
        rest, others, left = np.array([float(text) for text in factors]), np.delete(columns, i), columns[i]
        with np.errstate(over="ignore"):
            right = (
                np.prod(X[:, others] ** rest, axis=1) * float(last) if is_product else X[:, others] @ rest + float(last)
            )
        if is_close(X[:, left], right).all():
            if is_sum:
                return f"sum({', '.join(words[j] for j in columns)}) == {last}"
            is_rough = len(columns) > MOST_ROUGH and max(map(_n_digits, factors)) > SIMPLE
            write = _product if is_product else _sum
            names = [words[j] for j in others]
            return None if is_rough or len(columns) > MOST_TERMS else f"{words[left]} == {write(names, factors, last)}"
    return None


def _rounded(words: list[str], X: FloatArray) -> Iterator[tuple[int, str]]:
    """Linear relations that hold up to rounding: the dependent column, and the text of the rule."""
    (use, units), spread = _finely_rounded(X), X.std(axis=0)
    words, X, spread = [words[j] for j in use], X[:, use], spread[use]
    if X.shape[1] < 2 or len(X) < ROWS_PER_TERM * X.shape[1]:
        return
    Z = (X - X.mean(axis=0)) / spread / np.sqrt(len(X))
    R = np.asarray(np.linalg.qr(Z, mode="r"))  # R'R is the correlation matrix
    left, coarse = np.maximum(np.abs(np.diag(R)), EQUAL), units / spread
    np.fill_diagonal(R, np.where(left > EQUAL, np.diag(R), EQUAL))  # keeps R invertible
    weights = np.triu(np.linalg.inv(R) * np.diag(R), 1)  # of the columns before each column, up to the sign
    noise = np.sqrt((weights**2).T @ coarse**2 + coarse**2) / np.sqrt(12)
    is_near = left <= 2 * noise
    basis = np.flatnonzero(~is_near)
    scatter = np.sqrt(np.diag(np.linalg.pinv(R[:, basis].T @ R[:, basis])) / len(X))  # of weights, per unit of `left`
    for j in np.flatnonzero(is_near):
        fitted = np.linalg.lstsq(R[:, basis], R[:, j], rcond=None)[0]
        error = SIGNIFICANT * scatter * left[j] / np.maximum(np.abs(fitted), EQUAL)  # relative error of each weight
        used = error < 1
        if 0 < used.sum() < MOST_TERMS:
            at = np.append(basis[used], j)
            own = np.append(-fitted[used] * spread[j] / spread[basis[used]], 1.0).astype(float)
            text = _written_rounded([words[k] for k in at], X[:, at], units[at], own, error[used].max())
            if text is not None:
                yield int(use[j]), text


def _written_rounded(
    words: list[str], X: FloatArray, units: FloatArray, weights: FloatArray, error: float
) -> str | None:
    """The relation X @ weights == constant, up to rounding, as text of a rule; None as in `_written`.

    Args:
        error: relative error of the weights, which are replaced by the simplest numbers that agree with all rows.
    """
    for tolerance in (error, error / 10, error / 100):
        i, factors, _ = _arranged(weights, 0.0, tolerance, False)
        own = np.insert(-np.array([float(text) for text in factors]), i, 1.0)
        values, most = X @ own, np.abs(own) @ units / 2
        low, high = values.max() - most, values.min() + most
        if low > high or max(map(_n_digits, factors)) > SIMPLE:
            continue
        middle = (low + high) / 2
        last = "0" if low <= 0 <= high else number_text(middle, (high - low) / 2 / abs(middle))
        limit, half = float(np.abs(values - float(last)).max()), float(np.ptp(values)) / 2
        if limit > 1.5 * half:  # the values are nearly all on one side of it
            last, limit = number_text(float(values.min()) + half), half
        limit = max(limit, EQUAL)
        kept, broken = np.array(
            [_chance_of(np.floor(x * abs(w) / (2 * limit))) for x, w in zip(X.T, own, strict=True)]
        ).T
        is_loose = limit > COARSE * (np.abs(own) * X.std(axis=0)).min()
        if is_loose or kept.max() > np.log(CHANCE) or broken.max() < SURPRISE:
            return None
        end = f"<= {number_text(limit, EQUAL * max(1.0, 1 / limit))}"
        if len(words) > 2 and set(factors) == {"-1"}:
            return f"abs(sum({', '.join(words)}) - {last}) {end}"
        right = _sum([*words[:i], *words[i + 1 :]], factors, last)
        return f"abs({words[i]} - {right if ' + ' not in right and ' - ' not in right else f'({right})'}) {end}"
    return None


def _rounded_products(words: list[str], X: FloatArray) -> Iterator[str]:
    """Columns that are products or quotients of two others up to rounding, as rules, most precise first."""
    (targets, units), d = _finely_rounded(X), X.shape[1]
    if not len(targets) or d > MOST_FACTORS:
        return
    factors, some = np.column_stack([X, np.ones(len(X))]), slice(None, None, max(len(X) // FEWEST, 1))
    likely = []
    for power, i in product(POWERS, range(d + 1)):
        with np.errstate(all="ignore"):  # a division by zero gives no limits
            values = (factors[some, i, None] * X[some] ** power)[:, :, None]
            low, high = _factor_limits(X[some][:, None, targets], values, units)
        for k, at in np.argwhere(low <= high):
            j, is_linear = int(targets[at]), power == 1 and i == d  # `_rounded` finds linear ones
            if j not in (i, k) and not is_linear and (power != 1 or k >= i):
                columns, powers = ([i, int(k)], [1, power]) if i < d else ([int(k)], [power])
                likely.append((units[at] / _usual(X[:, j]), j, units[at], columns, powers))
    found: set[frozenset[int]] = set()
    follow: set[int] = set()
    for _, j, unit, columns, powers in sorted(likely):
        if j not in follow and frozenset([j, *columns]) not in found:
            factor = _rounded_factor(X[:, j], X[:, columns], np.array(powers, dtype=float), unit)
            if factor is not None:
                found.add(frozenset([j, *columns]))
                follow.add(j)
                right = _product([words[column] for column in columns], list(map(str, powers)), factor)
                yield f"abs({words[j]} - {right}) <= {number_text(unit / 2)}"


def _rounded_factor(x: FloatArray, factors: FloatArray, powers: FloatArray, unit: float) -> str | None:
    """The factor c such that x, (n,), is c * prod(factors ** powers) rounded to the unit; factors is (n, k).

    None if there is no such factor, or if the relation may be due to chance.
    """
    if (factors == 0)[:, powers < 0].any():
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        low, high = _factor_limits(x, np.prod(factors**powers, axis=1), unit)
    if not (np.isfinite([low, high]).all() and low <= high and low * high > 0):
        return None
    logs = np.log(np.maximum(np.abs(factors), 1 / LARGEST)) * np.abs(powers) * _usual(x) / unit
    kept, broken = np.array([_chance_of(np.floor(column)) for column in logs.T]).T
    if kept.max() > np.log(CHANCE) or broken.max() < SURPRISE:
        return None
    middle = float(low + high) / 2
    return number_text(middle, float(high - low) / 2 / abs(middle))


def _usual(x: FloatArray) -> float:
    """The median absolute value of the nonzero numbers, (n,)."""
    return float(np.median(np.abs(x[x != 0])))


def _factor_limits(x: FloatArray, values: FloatArray, units: FloatArray | float) -> tuple[FloatArray, FloatArray]:
    """Bounds on the factors c such that all x, (n, ...), are c * values, (n, ...), rounded to units."""
    x, values, rounding = np.where(values < 0, -x, x), np.abs(values), units * (0.5 + ROUGHLY)
    return ((x - rounding) / values).max(axis=0), ((x + rounding) / values).min(axis=0)


def _finely_rounded(X: FloatArray) -> tuple[IntArray, FloatArray]:
    """The columns rounded to units much smaller than their standard deviations, and these units."""
    units = np.array([_unit(x) for x in X.T])
    use = np.flatnonzero((units > 0) & (units < COARSE * X.std(axis=0)))
    return use, units[use]


def _unit(x: FloatArray) -> float:
    """The largest of 1, 0.1, ... that all numbers, (n,), are multiples of; 0 if they have more decimals."""
    powers = 10.0 ** np.arange(MOST_DECIMALS + 1)
    return next((1 / power for power in powers if np.abs(x * power - np.rint(x * power)).max() < ROUGHLY), 0.0)


def _arranged(weights: FloatArray, constant: float, tolerance: float, is_product: bool) -> tuple[int, list[str], str]:
    """The column on the left side, and the factors (or powers) of the others and the constant on the right.

    Chosen for few digits and few minus signs: total == a + b, not b == total - a.
    """
    options = []
    for i, own in enumerate(weights):
        rest, end = np.delete(-weights / own, i), constant / own
        factors = [number_text(weight, tolerance) for weight in rest]
        last = number_text(float(np.exp(end)) if is_product else end, tolerance)
        n_digits, is_root = sum(map(_n_digits, (*factors, last))), is_product and any("." in text for text in factors)
        options.append(((is_root, n_digits, int((rest < 0).sum()), -i), (i, factors, last)))
    return min(options)[1]


def _n_digits(text: str) -> int:
    return len(re.sub(r"e.*|\D", "", text).strip("0"))


def _chance_of(x: FloatArray) -> tuple[float, float]:
    """Log probability that shuffling leaves a column, (n,), unchanged, and the expected share of rows it changes."""
    counts = np.unique(x, return_counts=True)[1]
    kept = sum(lgamma(count + 1) for count in counts.tolist()) - lgamma(len(x) + 1)
    return kept, 1 - float(((counts / len(x)) ** 2).sum())


def _sum(names: list[str], factors: list[str], last: str) -> str:
    """A sum, such as a + 2 * b - c + 100."""
    if len(names) > LONG_SUM and set(factors) == {"1"}:
        return f"sum({', '.join(names)})" + ("" if last == "0" else f" + {last}")
    terms = [(text, f"{text.lstrip('-')} * {name}") for name, text in zip(names, factors, strict=True)]
    terms = sorted([*terms, *([(last, last.lstrip("-"))] if last != "0" else [])], key=lambda term: term[0][0] == "-")
    signed = [f"{'-' if text[0] == '-' else '+'} {term.removeprefix('1 * ')}" for text, term in terms]
    return " ".join([signed[0].removeprefix("+ ").replace("- ", "-", 1), *signed[1:]])


def _product(names: list[str], powers: list[str], factor: str) -> str:
    """A product, such as 100 * a * b / c."""
    above = [name for name, power in zip(names, powers, strict=True) for _ in range(int(power))]
    below = [name for name, power in zip(names, powers, strict=True) for _ in range(-int(power))]
    first = [factor] if factor != "1" or not above else []
    return " / ".join([" * ".join([*first, *above]), *below])
