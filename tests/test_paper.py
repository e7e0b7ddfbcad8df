"""`make paper` announces, resumes, keeps and shows."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from acex.bench.methods import METHODS

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
paper = pytest.importorskip("paper")


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("KEPT", "WORK", "PICTURES"):
        monkeypatch.setattr(paper, name, tmp_path / name.lower())
    monkeypatch.setattr(paper, "ROOT", tmp_path)
    (tmp_path / "pictures").mkdir()
    return tmp_path


def said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    line = ["paper.py", "--suites", "moons,control", "--methods", "nearest,penalty", "--seeds", "1", "--jobs", "1"]
    monkeypatch.setattr(sys, "argv", [*line, *options])
    paper.main()
    return capsys.readouterr().out


def test_what_is_kept_is_not_done_again_unless_the_method_has_changed(
    folders: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(paper.run.SUITES, "control", paper.run.Suite(("control-1",), ("nearest", "penalty"), True))
    assert "4 of 4 explanations are missing: about 0.0 hours on 1 cores" in said(monkeypatch, capsys, "--dry-run")
    assert "4 explanations in" in said(monkeypatch, capsys)
    assert {p.name for p in (folders / "kept").iterdir()} == {"control.csv", "moons.jsonl", "tables.md"}
    assert (folders / "pictures" / "moons.png").stat().st_size > 5000
    tables = (folders / "kept" / "tables.md").read_text(encoding="utf-8")
    assert "1 of 30 pass | nearest" in tables and "### moons: moons" in tables

    for path in (folders / "work").iterdir():
        path.unlink()  # another checkout: there is only what was kept
    assert "0 of 4 explanations are missing" in said(monkeypatch, capsys, "--dry-run")
    changed = {name: METHODS["nearest"].__dict__[name] for name in METHODS["nearest"].__dataclass_fields__}
    monkeypatch.setitem(METHODS, "nearest", type(METHODS["nearest"])(**changed | {"revision": 7}))
    assert "2 of 4 explanations are missing" in said(monkeypatch, capsys, "--dry-run")


def test_time_is_estimated_by_what_the_like_have_taken() -> None:
    done = [
        {"method": "moc", "data": "blood", "seconds": 3600.0},
        {"method": "moc", "data": "kc2", "seconds": 7200.0},
    ]
    jobs = [paper.run.Job("mixed", data, 0, 0, "moc", 9) for data in ("blood", "kc2", "cmc")]
    assert paper.hours(jobs, done, cores=2) == pytest.approx((1 + 2 + 1.5) / 2)
