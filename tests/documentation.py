"""What tests of the documentation share: the code in its pages, and the files and the endpoint that it names."""

from __future__ import annotations

import contextlib
import doctest
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import skops.io
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import acex
from chats import chat
from commands import run
from servers import Handler, serving

ROOT = Path(__file__).parents[1]
HOST = re.compile("https://host(?=/score|/v1/chat)")  # in the pages; here a server on this machine answers
PICTURES = {"README.md": "explanation.png", "docs/index.md": "first.png"}  # what why.png of a page is kept as
VOLATILE = re.compile(
    r"\d{4}-\d\d-\d\dT[\d:.]+|\b\d+\+00:00|\b[0-9a-f]{8,64}\b"
)  # times, hashes and names made of them
MOST_LINES = 30  # of an output that is shown whole
# A block, and the block of its output where there is one.
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", flags=re.DOTALL | re.MULTILINE)


class Ran(NamedTuple):
    """A block that was run: where it ends, what the page says that it prints, and what it prints."""

    end: int
    shown: str | None
    printed: str

    @property
    def is_as_shown(self) -> bool:
        """Is what it prints what the page shows, where "..." stands for anything?"""
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        shown, printed = (VOLATILE.sub("ID", text) for text in (self.shown or "", self.printed))
        return doctest.OutputChecker().check_output(shown, printed, flags)


def blocks(page: str) -> list[tuple[str, str]]:
    """The language and the text of each fenced block, in order, without outputs."""
    return [(m[1], m[2]) for m in BLOCK.finditer((ROOT / page).read_text(encoding="utf-8"))]


def run_page(page: str) -> Iterator[Ran]:
    """Runs the blocks of a page one after another, in the current folder."""
    names: dict[str, object] = {}
    with serving(decide) as server:
        address = server.url.removesuffix("/score")
        for m in BLOCK.finditer((ROOT / page).read_text(encoding="utf-8")):
            language, text, shown = m[1], HOST.sub(address, m[2]), m[3]
            if language == "python":
                printed = io.StringIO()
                with contextlib.redirect_stdout(printed):
                    exec(compile(text, page, "exec"), names)
                yield Ran(m.end(), shown, printed.getvalue().replace(address, "https://host"))
            elif language == "bash":
                yield Ran(m.end(), shown, run_commands(text).replace(address, "https://host"))
            elif language == "toml" and (named := re.match(r"# (\S+\.toml)", text)):
                Path(named[1]).write_text(text, encoding="utf-8")


def run_commands(text: str) -> str:
    """What these commands print."""
    printed = []
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["openssl"]:
            subprocess.run(words, check=True, capture_output=True)
        elif words:
            assert words[0] == "acex", f"only acex and openssl are run: {line}"
            result = run(*words[1:])
            assert result.exit_code in ((0, 4) if words[1] == "ask" else (0,)), (
                f"{line}\n{result.stdout}\n{result.stderr}"
            )
            printed.append(result.stdout)
    return "".join(printed)


def written_outputs(page: str) -> None:
    """Writes what the code of a page prints into the page."""
    text, before = (ROOT / page).read_text(encoding="utf-8"), Path.cwd()
    ends: list[Ran] = []
    path, environment = [*sys.path], dict(os.environ)
    os.environ["LOANS_TOKEN"] = "Bearer 0123456789"
    with tempfile.TemporaryDirectory() as folder:
        set_up_files(Path(folder))
        os.chdir(folder)
        try:
            ends = list(run_page(page))
            if page in PICTURES:
                shutil.copy("why.png", ROOT / "docs/pictures" / PICTURES[page])
        finally:
            os.chdir(before)
            sys.path[:] = path
            os.environ.clear()
            os.environ.update(environment)
    for ran in reversed(ends):
        if ran.shown is not None and ran.is_as_shown:
            continue
        code = text[: ran.end]
        if ran.shown is not None:
            code = code[: code.rindex("\n```text\n")]
        output = f"\n```text\n{_shortened(ran.printed)}```\n" if ran.printed.strip() else ""
        text = code + output + text[ran.end :]
    (ROOT / page).write_text(text, encoding="utf-8")


def _shortened(printed: str) -> str:
    """The output without trailing spaces; of a long one the beginning and the end."""
    lines = [line.rstrip() for line in printed.strip("\n").splitlines()]
    if len(lines) > MOST_LINES:
        lines = [*lines[: MOST_LINES - 8], "...", *lines[-4:]]
    return "\n".join(lines) + "\n"


def set_up_files(folder: Path) -> None:
    """The files that commands in the pages name: loans.csv with its model, and samples.csv."""
    loans = acex.datasets.loan()
    texts = ["education", "purpose", "housing"]
    encoder = make_column_transformer((OneHotEncoder(), texts), remainder="passthrough")
    table = loans.rows.astype({"education": "str"})
    model = make_pipeline(encoder, RandomForestClassifier(30, random_state=0)).fit(table, loans.outcomes)
    table.assign(id=range(len(table)), decision=loans.outcomes).to_csv(folder / "loans.csv", index=False)
    skops.io.dump(model, folder / "loans.skops")
    rng = np.random.default_rng(0)
    pd.DataFrame({"temperature": rng.uniform(250, 400, 60), "pressure": rng.uniform(1, 9, 60)}).assign(
        temperature=lambda rows: rows["temperature"].where(rows.index != 17, 350.0)
    ).to_csv(folder / "samples.csv", index=False)


def decide(handler: Handler) -> None:
    """The endpoint of the pages: approves who scores enough or has a guarantor."""
    assert handler.headers["Authorization"] == "Bearer 0123456789"
    if handler.path.endswith("/chat/completions"):
        clerk(handler)
        return
    records = handler.body["instances"]
    labels = ["approved" if is_approved(record) else "rejected" for record in records]
    handler.reply(200, json.dumps({"predictions": [{"label": label} for label in labels]}))


def is_approved(record: dict[str, Any]) -> bool:
    return bool(record["credit_score"] > 640 or record["has_guarantor"])


clerk = chat(lambda record: {"approved": float(is_approved(record)), "rejected": float(not is_approved(record))})
