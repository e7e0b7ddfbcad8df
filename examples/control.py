"""A controller that violates its limits: what is the nearest one that passes? Each trial costs an hour of plant time.

Run it as a script, or cell by cell in an editor that knows `# %%`. Replace `passes` by your own plant: a function
from rows of settings to labels. It may be a simulator, a test bench or the plant itself; acex sees pass or fail only.
"""

# %% The black box. Here: a simulated heat exchanger with a lead-lag compensator, judged by five limits.
import sys
from pathlib import Path

import pandas as pd

import acex

sys.path.insert(0, str(Path(__file__).parents[1]))  # the simulated plant belongs to the benchmarks
from benchmarks.heat_exchanger import SPACE, START, history, response

NAMES = [feature.name for feature in SPACE.features]


def passes(trials: pd.DataFrame) -> list[str]:
    """Your simulator in place of `response`: one label for each row of settings."""
    return ["pass" if response(trial).passes else "fail" for trial in trials.to_numpy()]


# %% What is known: the controller in use, and thirty that were tried before, of which one passed.
start = pd.Series(START, index=NAMES)
points, labels = history(1, seed=0)
tried = pd.DataFrame(points, columns=NAMES)
verdicts = ["pass" if label else "fail" for label in labels]
print("in use:", passes(start.to_frame().T)[0], response(START))

# %% Their verdicts are answers of the plant itself, so these trials are not repeated. Any setting in range is allowed.
explainer = acex.Explainer(passes, tried, outcomes=verdicts, plausibility=None, space=SPACE)
explainer.import_answers(tried, verdicts)
e = explainer.explain(start, target="pass", budget=40)
print(e)

# %% The cheapest one is close to the limits. With a margin, its neighbours should pass too; here, under other noise.
robust = explainer.explain(start, target="pass", budget=40, strategy=acex.Feasible(margin=0.7))
for name, found in (("cheapest", e), ("with a margin", robust)):
    passed = [response(found.counterfactual.to_numpy(), noise=k).passes for k in range(10)]
    print(f"{name}: cost {found.cost:.1f}, passes under {sum(passed)} of 10 noises")

# %% What changed, and the result of each trial.
e.plot().savefig("acex-example-control.png")
print("acex-example-control.png")
