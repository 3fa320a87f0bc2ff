"""`provisioning/run check_pdf`, with a program in place of veraPDF."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pypdfium2
import pytest

from provisioning.commands import Refusal
from provisioning.prove.pdf_check import check
from reports.tests.school_report.test_pdf import objects

# Keeps copies of the files, and fails those that are named "broken".
VALIDATOR = """#!{python}
import shutil, sys
class_path, source, *names = sys.argv[2:]
if not source.endswith("CheckPdf.java"):
    sys.exit(9)
failed = False
for name in names:
    shutil.copy(name, {reports!r})
    verdict = "FAILS" if "broken" in name else "passes"
    failed |= verdict == "FAILS"
    print(f"{{name}} {{verdict}}, 12 checks")
sys.exit(failed)
"""


@pytest.fixture
def reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder to which the validator copies what it was given."""
    folder = tmp_path / "kept"
    folder.mkdir()
    program = tmp_path / "java"
    program.write_text(VALIDATOR.format(python=sys.executable, reports=str(folder)))
    program.chmod(0o755)
    monkeypatch.setattr(check, "prepare_java", lambda: str(program))
    monkeypatch.setattr(check, "prepare_validator", lambda: [])
    return folder


@pytest.fixture
def command(monkeypatch, capfd):
    """Run the command; return its exit status and the lines that it printed."""

    def run(*files: Path) -> tuple[int, list[str]]:
        monkeypatch.setattr(sys, "argv", ["check_pdf", *map(str, files)])
        status = check.main()
        return status, capfd.readouterr().out.splitlines()

    return run


@pytest.fixture
def tagged(tmp_path: Path) -> Path:
    path = tmp_path / "tagged.pdf"
    path.write_bytes(b"%PDF-1.7")
    return path


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    path = tmp_path / "broken.pdf"
    path.write_bytes(b"%PDF-1.7")
    return path


@pytest.mark.slow
def test_without_files_reports_in_three_languages_are_made_and_checked(
    command, reports
):
    status, lines = command()
    assert json.loads(lines[-1]) == {"files": 3, "checks": 36, "failed": 0}
    assert status == 0
    for language in ("en", "es", "ar"):
        path = reports / f"report-{language}.pdf"
        assert f"/Lang ({language})" in objects(path.read_bytes())
    document = pypdfium2.PdfDocument(reports / "report-en.pdf")
    text = "".join(page.get_textpage().get_text_bounded() for page in document)
    for words in ("Lincoln High School", "points of 99", "Last time: "):
        assert words in text


def test_a_report_that_fails_ends_with_1(command, reports, monkeypatch, tagged, broken):
    def make_reports(folder: Path) -> None:
        for path in (tagged, broken):
            (folder / path.name).write_bytes(path.read_bytes())

    monkeypatch.setattr(check, "make_reports", make_reports)
    status, lines = command()
    assert json.loads(lines[-1]) == {"files": 2, "checks": 24, "failed": 1}
    assert status == 1


def test_a_validator_that_breaks_down_is_no_success(command, reports, monkeypatch):
    monkeypatch.setattr(check, "make_reports", lambda folder: None)
    monkeypatch.setattr(check, "validator", lambda: ["false"])
    status, lines = command()
    assert (status, lines) == (1, ['{"files": 0, "checks": 0, "failed": 0}'])


def test_given_files_are_checked_alone(command, reports, tagged, broken):
    assert command(tagged) == (0, [f"{tagged} passes, 12 checks"])
    status, lines = command(tagged, broken)
    assert status == 1
    assert lines == [f"{tagged} passes, 12 checks", f"{broken} FAILS, 12 checks"]
    assert sorted(path.name for path in reports.iterdir()) == [
        "broken.pdf",
        "tagged.pdf",
    ]
    with pytest.raises(Refusal, match="nothing.pdf is no file"):
        command(Path("nothing.pdf"))
