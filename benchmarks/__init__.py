"""Measurements of acex and of other methods. Not part of the wheel; run from the repository: `python -m benchmarks`.

scenario   data sets with their black boxes, one entry of `SCENARIOS` each
task       the input of a method: a row, and a model that counts every query
methods/   the methods, one file with one function each
suite      the class `Suite`; running, resuming and reading results
suites/    the suites, one `Suite` each: data, methods, columns, measure, tables, pictures
pages      generated tables of docs/
belief/    training and tuning of the belief of strategy "feasible"
results/   raw lines of results
"""
