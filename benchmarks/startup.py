"""What it takes to begin, as a ratio to `import pandas`: `import acex`, help of the command line, a first explanation.

    python benchmarks/startup.py [rounds]

CPU time of new processes, which take turns; the median of each. The first two must stay below the limits of the table:
whoever only asks for help, or imports acex to look around, does not wait for databases, estimators and pictures. The
other lines say where the time goes when they are needed after all, and what is imported then.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys

LIMITS = {"import acex": 1.3, "acex --help": 1.5}
EXPLAIN = """
import acex, pandas
data = pandas.DataFrame({"a": [float(i % 7) for i in range(40)], "b": [i % 5 for i in range(40)]})
acex.explain(lambda rows: rows["a"] + rows["b"] > 5, data.iloc[0], data=data, budget=6)
"""
CODE = {
    "import pandas": ("-c", "import pandas"),
    "import acex": ("-c", "import acex"),
    "acex --help": ("-m", "acex", "--help"),
    "acex explain --help": ("-m", "acex", "explain", "--help"),
    "import acex; acex.Space": ("-c", "import acex; acex.Space"),
    "import acex; acex.Explainer": ("-c", "import acex; acex.Explainer"),
    "a first acex.explain": ("-c", EXPLAIN),
}
HEAVY = ("numpy", "pandas", "scipy", "scipy.stats", "sqlalchemy", "sklearn", "matplotlib", "joblib", "rich", "typer")


def cpu_seconds(*words: str) -> float:
    """User and system time of one new process of this Python."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def imported(*words: str) -> list[str]:
    """Which of the heavy packages such a process imports."""
    command = [sys.executable, "-X", "importtime", *words]
    told = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True).stderr
    names = {line.rpartition("|")[2].strip() for line in told.splitlines()}
    return [name for name in HEAVY if name in names]


def main(rounds: int = 7) -> None:
    times: dict[str, list[float]] = {name: [] for name in CODE}
    for _ in range(rounds + 1):
        for name, words in CODE.items():
            times[name].append(cpu_seconds(*words))
    medians = {name: statistics.median(each[1:]) for name, each in times.items()}  # the first round fills the caches
    print("| what | CPU seconds | over `import pandas` | limit | imports |\n|---|---|---|---|---|")
    for name, seconds in medians.items():
        ratio = seconds / medians["import pandas"]
        limit = LIMITS.get(name, "")
        print(f"| `{name}` | {seconds:.2f} | {ratio:.2f} | {limit} | {', '.join(imported(*CODE[name]))} |")


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
