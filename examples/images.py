"""Pictures: which pixels turn an 8 into a 9, for a classifier of scikit-learn's small digits?

Run it as a script, or cell by cell in an editor that knows `# %%`.
"""

# %% A classifier of pictures of 8 by 8 pixels. A row has 64 features, pixels from 0 to 16.
import matplotlib

matplotlib.use("Agg")  # write to a file, open no window

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.svm import SVC

import acex

pixels, digits = load_digits(return_X_y=True, as_frame=True)
known = digits.isin([8, 9])
pixels, digits = pixels[known].astype(int), digits[known]
space = acex.Space([acex.Integer(name, 0, 16) for name in pixels])  # also pixels that are 0 in all pictures may change
model = SVC().fit(pixels, digits)
eights = pixels[model.predict(pixels) == 8]

# %% beta=0: only the distance counts, not how many pixels change. The answers for the first picture help the others.
explainer = acex.Explainer(model, pixels, outcomes=digits, space=space)
explanations = [
    explainer.explain(row, target=9, budget=40, cost=acex.Cost(beta=0.0))
    for _, row in eights.iloc[[0, 4, 8]].iterrows()
]
for e in explanations:
    print(e.summary())

# %% Before, after, and what changed.
figure, axes = plt.subplots(len(explanations), 3, figsize=(7, 7), layout="constrained")
for (left, middle, right), e in zip(axes, explanations, strict=True):
    before, after = (np.asarray(row, dtype=float).reshape(8, 8) for row in (e.factual, e.counterfactual))
    left.imshow(before, cmap="gray_r", vmin=0, vmax=16)
    left.set_title(f"read as {e.label_before}")
    middle.imshow(after, cmap="gray_r", vmin=0, vmax=16)
    middle.set_title(f"read as {e.label_after}, {e.n_queries} queries")
    right.imshow(after - before, cmap="RdBu_r", vmin=-16, vmax=16)
    right.set_title(f"{len(e.changes)} pixels changed")
for axis in axes.flat:
    axis.set_axis_off()
figure.savefig("acex-example-images.png", dpi=100)
print("Saved acex-example-images.png.")
