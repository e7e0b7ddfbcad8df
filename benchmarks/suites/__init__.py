"""The registry of suites. To add one, write a `Suite` in a file of this folder and list it here."""

from benchmarks.suite import Suite
from benchmarks.suites import (
    ablation,
    advice,
    anytime,
    belief,
    comparison,
    few,
    groups,
    import_answers,
    needless,
    noise,
    optimum,
    paper,
    plausible,
    pooling,
    ranges,
    scale,
    speed,
    strangers,
)

MODULES = (
    comparison,
    paper,
    ablation,
    optimum,
    anytime,
    belief,
    pooling,
    scale,
    speed,
    noise,
    ranges,
    few,
    needless,
    groups,
    plausible,
    import_answers,
    strangers,
    advice,
)
SUITES: dict[str, Suite] = {suite.name: suite for module in MODULES for suite in module.SUITES}
