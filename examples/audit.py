"""A whole data set: what must rejected applicants change, and do some groups need larger changes than others?

Run it as a script, or cell by cell in an editor that knows `# %%`.
"""

# %% A model that decides about loans, and all applicants it rejects.
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import acex
from acex.show.plots import draw_explanations

loans = acex.datasets.loan()
encoder = make_column_transformer((OneHotEncoder(), ["education", "purpose", "housing"]), remainder="passthrough")
model = make_pipeline(encoder, RandomForestClassifier(50, random_state=0)).fit(loans.rows, loans.outcomes)
rejected = loans.rows[model.predict(loans.rows) == "rejected"].head(30)

# %% Explain all of them, with at most 12 queries each. The answers for one row help with the next.
explainer = acex.Explainer(model, loans.rows, outcomes=loans.outcomes)
explanations = explainer.explain_many(rejected, target="approved", freeze=["age", "education"], budget=12, n_jobs=1)
print(explanations.summary(), "\n")

# %% Do some groups need larger changes? A finding to look into, not a verdict: the groups differ in other ways, too.
table = rejected.join(explanations.frame()[["outcome", "cost", "n_changes", "queries"]])
table["age group"] = ["under 30" if age < 30 else "30 and older" for age in table["age"]]
for group in ("age group", "housing"):
    found = table.groupby(group)["outcome"].agg(rows="size", found=lambda outcomes: (outcomes == "found").mean())
    print(found.join(table.groupby(group)[["cost", "n_changes"]].median()).round(2).to_string(), "\n")

# %% A picture of all explanations, and a table for further work.
draw_explanations(explanations).savefig("acex-example-audit.png")
table.to_csv("acex-example-audit.csv", index_label="row")
print("Saved acex-example-audit.png and acex-example-audit.csv.")
