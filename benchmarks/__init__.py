"""Measurements of acex and of other methods. Not part of the wheel; run from the repository: `python -m benchmarks`.

scenario   data sets with their black boxes; a table is one entry of `SCENARIOS`
task       what a method is given: a row, and a model that counts every query
methods/   a method is one file with one function
suite      what a suite is; run, resume, read
suites/    a suite is one entry: data, methods, columns, measure, tables, pictures
pages      generated tables of docs/
belief/    training and tuning of the belief of strategy "feasible"
results/   raw lines
"""
