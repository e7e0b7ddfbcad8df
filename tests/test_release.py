"""What is released: a wheel and an sdist that hold the package and nothing else, and work where nothing else is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from acex import __version__
from documentation import ROOT, blocks, set_up_files

PYTHONS = ("3.11", "3.12", "3.13")
BESIDE = ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md")  # what an sdist needs besides the package

pytestmark = pytest.mark.slow


def told(*command: object, cwd: Path | None = None) -> str:
    """What a command prints; it must end well, and knows nothing of the source tree."""
    known = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL", "ACEX"))}
    done = subprocess.run([*map(str, command)], env=known, capture_output=True, text=True, check=False, cwd=cwd)
    assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the sdist, and the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("built")
    for name in BESIDE:
        shutil.copy(ROOT / name, folder / name)
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "notes.txt").write_text("nothing that belongs into a release")
    told(sys.executable, "-m", "venv", folder / "tools")
    told(folder / "tools/bin/pip", "install", "-q", "build")
    told(folder / "tools/bin/python", "-m", "build", "--outdir", folder / "dist", folder)
    return folder / "dist"


def package() -> set[str]:
    files = (path for path in (ROOT / "src/acex").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(ROOT / "src").as_posix() for path in files}


def test_the_wheel_holds_the_package_and_nothing_else(built: Path) -> None:
    with zipfile.ZipFile(built / f"acex-{__version__}-py3-none-any.whl") as wheel:
        inside = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert inside == package()
    assert {"acex/search/weights.npz", "acex/py.typed"} <= inside


def test_the_sdist_holds_what_a_wheel_is_built_from(built: Path) -> None:
    with tarfile.open(built / f"acex-{__version__}.tar.gz") as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    assert inside - {"PKG-INFO", ".gitignore"} == {f"src/{name}" for name in package()} | set(BESIDE)


@pytest.mark.parametrize("python", PYTHONS)
def test_the_readme_works_where_only_the_wheel_is(python: str, built: Path, tmp_path: Path) -> None:
    found = shutil.which(f"python{python}")
    if found is None or subprocess.run([found, "--version"], capture_output=True, check=False).returncode:
        pytest.skip(f"there is no Python {python} here")
    told(found, "-m", "venv", tmp_path / "env")
    [wheel] = built.glob("*.whl")
    told(tmp_path / "env/bin/pip", "install", "-q", f"{wheel}[files]")
    folder = tmp_path / "work"
    folder.mkdir()
    set_up_files(folder)
    said = []
    for language, text in blocks("README.md"):
        if language == "python":
            said.append(told(tmp_path / "env/bin/python", "-c", text, cwd=folder))
        elif language == "bash":
            said.append(told("bash", "-ec", f'PATH="{tmp_path}/env/bin:$PATH"\n{text}', cwd=folder))
    assert len(said) >= 2
    assert all("approved" in text for text in said)
    assert {"why.png", "loans.db"} <= {path.name for path in folder.iterdir()}
    where = told(tmp_path / "env/bin/python", "-c", "import acex; print(acex.__file__)", cwd=folder)
    assert str(tmp_path / "env") in where
