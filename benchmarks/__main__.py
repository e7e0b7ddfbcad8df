"""The command of the benchmark; run it from the root of the repository.

python -m benchmarks run   --suite mixed --data diabetes,cmc --methods feasible,nice --rows 3
python -m benchmarks table --suite mixed
python -m benchmarks plot  --suite mixed
python -m benchmarks pages                         write the generated tables of docs/
python -m benchmarks train                         train the belief of strategy "feasible" (hours)
python -m benchmarks tune --set PATIENCE=0.1       compare constants of the search on simulated tasks
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pandas as pd
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from benchmarks.belief import learn, tuning
from benchmarks.pages import write_pages
from benchmarks.suite import CAP, PICTURES, RESULTS, Job, Suite
from benchmarks.suites import SUITES
from benchmarks.table import FORMATS


def main(arguments: list[str] | None = None) -> None:
    """Parse the command line and run the command."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    of_suites = argparse.ArgumentParser(add_help=False)
    of_suites.add_argument("--suite", type=suites, required=True, help=f"separated by commas: {', '.join(SUITES)}")
    of_suites.add_argument("--results", type=Path, default=RESULTS, help="folder of the raw lines")
    of_suites.add_argument("--data", type=names, help="data sets, separated by commas")
    of_suites.add_argument("--methods", type=names, help="methods, separated by commas")
    of_suites.add_argument("--rows", type=int, help="the first rows of each data set, or repetitions")

    run = commands.add_parser("run", parents=[of_suites], help="measure what is missing; resumes")
    run.add_argument("--cap", type=int, default=CAP, help="queries after which a method is stopped")
    run.add_argument("--jobs", type=int, default=-1, help="processes; -1 for all cores")
    run.add_argument("--dry-run", action="store_true", help="only count what is missing")
    run.set_defaults(do=do_run)
    table = commands.add_parser("table", parents=[of_suites], help="print the tables")
    table.add_argument("--format", choices=FORMATS, default="markdown")
    table.set_defaults(do=do_table)
    commands.add_parser("plot", parents=[of_suites], help="draw the pictures").set_defaults(do=do_plot)
    commands.add_parser("pages", help="write generated tables").set_defaults(do=lambda args: print(*write_pages()))
    for name, module in (("train", learn), ("tune", tuning)):
        command = commands.add_parser(name, help=str(module.__doc__).splitlines()[0].rstrip("."))
        module.add_arguments(command)
        command.set_defaults(do=module.main)
    args = parser.parse_args(arguments)
    args.do(args)


def names(text: str) -> list[str]:
    """Names separated by commas."""
    return [name.strip() for name in text.split(",")]


def suites(text: str) -> list[Suite]:
    """The suites with these names."""
    unknown = [name for name in names(text) if name not in SUITES]
    if unknown:
        raise argparse.ArgumentTypeError(f"unknown suite {unknown[0]!r}")
    return [SUITES[name] for name in names(text)]


def do_run(args: argparse.Namespace) -> None:
    """Run the jobs of these suites that have no results yet."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    for suite in args.suite:
        check(suite, args)
        reasons = {suite.missing(d, m) for d in args.data or suite.data for m in args.methods or suite.methods}
        for reason in sorted(filter(None, reasons)):
            print(f"left out: {reason}", file=sys.stderr)
        jobs = list(suite.jobs(args.rows, args.data, args.methods, args.cap))
        todo = suite.todo(jobs, args.results)
        print(f"{suite.name}: {len(todo)} of {len(jobs)} measurements are missing", file=sys.stderr)
        if args.dry_run or not todo:
            continue
        with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
            bar = progress.add_task(suite.name, total=len(todo))

            def advance(job: Job, progress: Progress = progress, bar: object = bar) -> None:
                progress.update(bar, advance=1, description=f"{job.data} {job.method}")  # type: ignore[arg-type]

            errors = suite.run(todo, args.results, args.jobs, advance)
        for method, error in errors.items():
            print(f"{method} failed, the next run tries again: {error}", file=sys.stderr)


def do_table(args: argparse.Namespace) -> None:
    """Print the tables of these suites."""
    for suite in args.suite:
        for table in suite.tables(chosen(suite, args)).values():
            print(FORMATS[args.format](table))


def do_plot(args: argparse.Namespace) -> None:
    """Draw the pictures of these suites; other pictures are kept."""
    folder = PICTURES if args.results == RESULTS else args.results
    for suite in args.suite:
        for name, figure in suite.pictures(chosen(suite, args)).items():
            path = folder / f"{name}.png"
            figure.savefig(path, metadata={"Software": None})
            print(path)


def chosen(suite: Suite, args: argparse.Namespace) -> pd.DataFrame:
    """The raw lines that the options select."""
    check(suite, args)
    lines = suite.read(args.results)
    for column, wanted in (("data", args.data), ("method", args.methods)):
        lines = lines if wanted is None else lines[lines[column].isin(wanted)]
    return lines if args.rows is None else lines[lines["row"] < args.rows]


def check(suite: Suite, args: argparse.Namespace) -> None:
    """Raise if the suite does not have these names."""
    for option, wanted, known in (("--data", args.data, suite.data), ("--methods", args.methods, suite.methods)):
        unknown = [name for name in wanted or () if name not in known]
        if unknown:
            sys.exit(f"{option}: {unknown[0]!r} is not in suite {suite.name}; choose from {', '.join(known)}")


if __name__ == "__main__":
    main()
