"""What the documentation says is true: its Python and its commands run, its links lead somewhere, the site is built."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

import acex
from benchmarks.methods import METHODS
from documentation import ROOT, blocks, run_page, set_up_files

PAGES = ["README.md", "CONTRIBUTING.md", "SECURITY.md", *sorted(f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md"))]
PINNED = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").split())
HAS_PINNED_VERSIONS = all(version(name) == PINNED[name] for name in ("numpy", "pandas", "scikit-learn", "scipy"))


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each page runs in a folder of its own; changes of the environment, the path and the methods are undone."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("LOANS_TOKEN", "Bearer 0123456789")
    methods = dict(METHODS)
    yield
    METHODS.clear()
    METHODS.update(methods)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    set_up_files(folder)
    return folder


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)])
def test_every_code_block_runs_and_prints_what_the_page_shows(page: str, files: Path) -> None:
    if "\nopenssl " in (ROOT / page).read_text(encoding="utf-8") and shutil.which("openssl") is None:
        pytest.skip("needs the program openssl")
    shutil.copytree(files, ".", dirs_exist_ok=True)
    for ran in run_page(page):
        if HAS_PINNED_VERSIONS:  # others may train another model
            assert ran.is_as_shown, f"run: python docs/generate.py {page}\n{ran.printed}\ninstead of\n{ran.shown}"


def test_the_readme_has_an_example() -> None:
    assert "acex.explain(" in next(text for language, text in blocks("README.md") if language == "python")


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    folder = (ROOT / page).parent
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", (ROOT / page).read_text(encoding="utf-8")):
        assert "://" in target or (folder / target).exists(), target


@pytest.mark.slow
def test_the_site_can_be_built_and_read_offline(tmp_path: Path) -> None:
    options = ["-q", "-W", "--keep-going", "-b", "html"]
    command = [sys.executable, "-m", "sphinx", *options, str(ROOT / "docs"), str(tmp_path)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    pages = list(tmp_path.glob("*.html"))
    assert {"index.html", "quickstart.html", "method.html", "reference.html"} <= {page.name for page in pages}
    for page in pages:
        loaded = re.findall(r'<(?:script|link|img|iframe)[^>]*(?:src|href)="([^"]+)"', page.read_text(encoding="utf-8"))
        assert not [address for address in loaded if "://" in address or address.startswith("//")], page
    for sheet in tmp_path.glob("_static/**/*.css"):
        assert not re.findall(r"url\(\"?https?:|@import", sheet.read_text(encoding="utf-8")), sheet
    assert "<math" in (tmp_path / "method.html").read_text(encoding="utf-8")


def test_every_test_that_the_promises_name_exists() -> None:
    named = re.findall(r"`(test_\w+\.py)::(test_\w+)`", (ROOT / "docs/promises.md").read_text(encoding="utf-8"))
    assert len(named) > 20
    texts = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")}
    for file, name in named:
        assert f"def {name}(" in texts.get(file, ""), f"{file}::{name}"


def test_the_reference_lists_every_public_name() -> None:
    page = (ROOT / "docs/reference.md").read_text(encoding="utf-8")
    for name in set(acex.__all__) - {"__version__"}:
        assert re.search(rf"\b{name}\b", page), name
