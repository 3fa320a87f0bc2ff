"""The command that writes responses to a file."""

from __future__ import annotations

import csv
import io
import stat
from zipfile import ZipFile

import pyreadstat
import pytest
from django.core.management import CommandError, call_command

from accounts.models import AuditEntry, Membership
from reports.models import Export
from reports.tests.exports.conftest import released

pytestmark = pytest.mark.django_db


@pytest.fixture
def spss(staff, fall, maya, other_people, tmp_path):
    released(fall)
    return tmp_path / "fall.sav"


def export(*args, **options):
    out = io.StringIO()
    call_command("export_responses", *args, stdout=out, **options)
    return out.getvalue()


def test_a_file_and_its_documents_are_written(spss, staff, tmp_path):
    documents = tmp_path / "documents.zip"
    output = export("fall", format="sav", labels="es", output=spss, documents=documents)

    frame, meta = pyreadstat.read_sav(spss)
    assert len(frame) == 3
    assert meta.column_names_to_labels["safe"] == "Estoy a salvo."
    with ZipFile(documents) as archive:
        names = archive.namelist()
    assert {"read.R", "read.py", "read.sps", "read.do"} <= set(names)
    assert stat.S_IMODE(spss.stat().st_mode) == 0o600
    made = Export.objects.get()
    assert made.by == staff.state and made.sha256 in output and "3 rows" in output
    assert not made.identities
    # The record stays, and the file is only where it was asked for.
    assert made.deleted_at and not (made.file_name or made.documents_name)
    entries = AuditEntry.objects.filter(kind="reports.export").order_by("pk")
    assert [(entry.action, entry.by) for entry in entries] == [
        ("ask for export", "export_responses"),
        ("make export", staff.state.email),
        ("download export", "export_responses"),
        ("download codebook", "export_responses"),
        ("delete export", "export_responses"),
    ]


def test_csv_has_labels_instead_of_codes(spss, tmp_path):
    path = tmp_path / "fall.csv"
    export("fall", labels="en", output=path)
    rows = list(csv.DictReader(io.StringIO(path.read_text())))
    assert "Agree" in {row["safe"] for row in rows}


def test_a_file_is_not_replaced_by_accident(spss, staff):
    spss.write_text("kept")
    with pytest.raises(CommandError, match="--force replaces it"):
        export("fall", format="sav", output=spss)
    assert spss.read_text() == "kept"
    export("fall", format="sav", output=spss, force=True)
    assert spss.read_bytes()[:4] == b"$FL2"


def test_what_cannot_be_is_said(staff, fall, maya, tmp_path):
    path = tmp_path / "fall.sav"
    with pytest.raises(CommandError, match="summer"):
        export("summer", output=path)
    with pytest.raises(CommandError, match="no labels in fr. Choose one of en, es"):
        export("fall", labels="fr", output=path)
    with pytest.raises(CommandError, match="administrator dana@example.org"):
        export("fall", by="dana@example.org", output=path)
    # Without a release there is no file without names.
    with pytest.raises(CommandError, match="results"):
        export("fall", output=path)
    Membership.objects.all().delete()
    with pytest.raises(CommandError, match="no active state administrator"):
        export("fall", output=path)
    assert not path.exists()
