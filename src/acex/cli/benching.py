"""`acex bench`: acex and its rivals on the paper's ground."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from acex.cli.program import say
from acex.cli.show import echo
from acex.values import listed

bench = typer.Typer(help="Measure acex and its rivals on the paper's ground. Example: acex bench run --rows 3")

Few = Annotated[
    int, typer.Option("--rows", min=1, help="Only the first rows, such as those that all methods have done.")
]
Results = Annotated[Path, typer.Argument(metavar="RESULTS", help="The folder that acex bench run wrote.")]


@bench.command()
def run(
    suite: Annotated[
        str, typer.Option(help="mixed: each row once; fixed: two rows, many seeds; moons; mnist; control.")
    ] = "mixed",
    data: Annotated[str, typer.Option(help="Data sets with commas between them.")] = "all",
    methods: Annotated[str, typer.Option(help="Methods with commas between them; all: those of the suite.")] = "all",
    rows: Annotated[int, typer.Option(min=1, max=100, help="Withheld rows of each data set.")] = 100,
    seeds: Annotated[int, typer.Option(min=1, help="Seeds, in the fixed test and in control.")] = 100,
    cap: Annotated[int, typer.Option(min=2, help="Queries after which a method is stopped.")] = 100_000,
    jobs: Annotated[int, typer.Option(help="Processes; -1 for all cores.")] = -1,
    out: Annotated[
        Path, typer.Option(file_okay=False, help="Where results go; what is there is not done again.")
    ] = Path("results"),
) -> None:
    """Explain the paper's rows with every method, one JSON line for each explanation.

    A run that was stopped goes on where it was. Methods whose package is missing
    are left out with a word.

    Example: acex bench run --suite mixed --data diabetes,cmc --rows 20 --out results
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from acex.bench import run as runner
    from acex.bench.methods import METHODS
    from acex.bench.records import Record

    if suite not in runner.SUITES:
        raise ValueError(f"--suite {suite!r}: expected one of {listed(runner.SUITES)}.")
    names = _chosen("--data", data, runner.SUITES[suite].data)
    wanted = list(runner.SUITES[suite].methods) if methods == "all" else _chosen("--methods", methods, METHODS)
    for name in wanted:
        word = METHODS[name].missing()
        if word is not None:
            say(f"{name} is left out: {word}")
    everything = list(runner.jobs(suite, names, wanted, rows=rows, seeds=seeds, cap=cap))
    todo = runner.unfinished(everything, out)
    if len(todo) < len(everything):
        say(f"{len(everything) - len(todo)} of {len(everything)} explanations are there already.")
    failed: dict[str, str] = {}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("explaining", total=len(todo))

        def told(record: Record) -> None:
            if "error" in record:
                failed[record["method"]] = record["error"]
            progress.update(bar, advance=1, description=f"{record['data']} {record['method']}")

        runner.run(todo, out, jobs, told)
    for name, error in failed.items():
        say(f"{name} failed on some rows, which will be tried again by the next run: {error}")
    say(f"{len(todo)} explanations written to {out}. Next: acex bench table {out}")


@bench.command()
def table(
    results: Results,
    form: Annotated[str, typer.Option("--format", help="markdown, latex, html, or csv for machines.")] = "markdown",
    rows: Few = 100,
    out: Annotated[Path | None, typer.Option(dir_okay=False, help="A file; by default stdout.")] = None,
) -> None:
    """Means with standard deviations beside the paper's figures, the best in bold.

    Example: acex bench table results --format latex
    """
    from acex.bench.score import frame, means
    from acex.bench.table import FORMATS, tables
    from acex.spreadsheets import write_csv

    if form not in (*FORMATS, "csv"):
        raise ValueError(f"--format {form!r}: expected one of {listed((*FORMATS, 'csv'))}.")
    found = frame(_read(results, rows))
    if form == "csv":
        text = write_csv(means(found), float_format="%.5g")
    else:
        text = "\n".join(FORMATS[form](one) for one in tables(found))
    if out is None:
        echo(text)
    else:
        out.write_text(text, encoding="utf-8")


@bench.command()
def plot(
    results: Results,
    out: Annotated[Path | None, typer.Option(file_okay=False, help="Where pictures go; by default RESULTS.")] = None,
    rows: Few = 100,
    row: Annotated[int, typer.Option(min=0, help="Which row the pictures of moons and mnist show.")] = 0,
) -> None:
    """Draw cost against queries, and for moons and mnist what was found.

    The numbers of the curves go beside the picture as CSV.

    Example: acex bench plot results
    """
    from acex.bench import figures
    from acex.bench.ground import ground
    from acex.bench.score import frame
    from acex.spreadsheets import write_csv

    folder = results if out is None else out
    folder.mkdir(parents=True, exist_ok=True)
    for suite, part in frame(_read(results, rows)).groupby("suite", sort=False):
        curves = figures.curves_record(part)
        write_csv(figures.curves_frame(curves), folder / f"{suite}-curves.csv", float_format="%.5g")
        drawn = {suite: figures.draw_curves(curves)}
        one = part[part["row"] == row]
        if suite == "moons":
            g = ground("moons")
            runs = {line["method"]: line for line in one.to_dict("records")}
            records = [figures.boundary_record(g, runs[m]) for m in figures.IN_THE_PLANE if m in runs]
            drawn["moons-boundaries"] = figures.draw_boundaries(records)
        if suite == "mnist" and one["valid"].any():
            drawn["mnist-digits"] = figures.draw_digits(figures.digits_record(one))
        for name, figure in drawn.items():
            path = folder / f"{name}.png"
            figure.savefig(path)
            echo(str(path))


def _read(results: Path, rows: int) -> list[dict[str, Any]]:
    """The results; in the fixed test, which has two rows anywhere, all of them."""
    from acex.bench.records import read

    records = [record for record in read(results) if record["suite"] == "fixed" or record["row"] < rows]
    if not records:
        raise ValueError(f"{results}: there are no results here; make some with acex bench run --out {results}.")
    return records


def _chosen(option: str, wanted: str, known: object) -> list[str]:
    names = [str(name) for name in known]  # type: ignore[attr-defined]
    if wanted == "all":
        return names
    chosen = [name.strip() for name in wanted.split(",")]
    unknown = [name for name in chosen if name not in names]
    if unknown:
        raise ValueError(f"{option}: {listed(unknown)} is not one of {listed(names)}.")
    return chosen
