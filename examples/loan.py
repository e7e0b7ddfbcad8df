"""A loan with features of every kind: what could this applicant change, and what are the alternatives?

Run it as a script, or cell by cell in an editor that knows `# %%`.
"""

# %% A model that decides about loans. acex sees only its labels.
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import acex

loans = acex.datasets.loan()
texts = ["education", "purpose", "housing"]
encoder = make_column_transformer((OneHotEncoder(), texts), remainder="passthrough")
model = make_pipeline(encoder, RandomForestClassifier(100, random_state=0)).fit(loans.rows, loans.outcomes)

applicant = loans.rows[model.predict(loans.rows) == "rejected"].iloc[12]
print(applicant.to_string(), "\n")

# %% The kinds that acex infers for the columns: continuous, integer, ordinal, nominal.
for feature in acex.Space.infer(loans.rows).features:
    print(f"{type(feature).__name__:12}{feature.name}")

# %% Without constraints: the cheapest change, whether or not anybody can make it.
explainer = acex.Explainer(model, loans.rows, outcomes=loans.outcomes)
print("\nAnything goes:")
print(explainer.explain(applicant, target="approved", budget=25))

# %% With common-sense constraints, and two alternatives to the first answer.
limits = {
    "freeze": ["age", "education", "purpose", "employment_years"],
    "directions": {"debt_ratio": "decrease", "loan_amount": "decrease", "credit_score": "increase"},
    "ranges": {"income": (applicant["income"], 1.15 * applicant["income"])},
    "cost": acex.Cost(weights={"housing": 2.0}),  # moving is expensive
}
e = explainer.explain(applicant, target="approved", budget=50, count=3, **limits)
print("\nWhat this applicant can do:")
print(e)

# %% The same, a little further from the decision boundary: it should survive a small error in the numbers.
robust = explainer.explain(applicant, target="approved", budget=30, **limits, strategy=acex.Feasible(margin=0.7))
print("\nOn the safe side:")
print(robust)

# %% A picture of the first answer, and the explanation in a file.
e.plot().savefig("acex-example-loan.png")
e.to_json("acex-example-loan.json")
print("\nSaved acex-example-loan.png and acex-example-loan.json.")
