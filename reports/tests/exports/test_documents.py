"""The documents of an export: DDI, the data package, and syntax that reads the file."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest
from defusedxml import ElementTree

from reports.models import Export
from reports.tests.exports.conftest import FIRST, draft, made
from reports.tests.exports.haven import needs_haven
from survey.instrument.definitions.corrections import publish_correction, use_correction
from survey.models import Administration
from survey.work.files import path_of

pytestmark = pytest.mark.django_db
DDI = {"d": "ddi:codebook:2_5"}
FORMATS = ("wide", "long", "xlsx", "sav", "zsav", "dta", "parquet")
# What the documents use of DDI-Codebook 2.5: the attributes of each element, and its
# elements in the order of the schema. The schema itself has another licence (LGPL).
STRUCTURE = {
    "codeBook": ("version {xml}lang", "docDscr stdyDscr fileDscr dataDscr"),
    "docDscr": ("", "citation"),
    "citation": ("", "titlStmt prodStmt"),
    "titlStmt": ("", "titl IDNo"),
    "prodStmt": ("", "prodDate software"),
    "prodDate": ("date", ""),
    "software": ("version", ""),
    "stdyDscr": ("", "citation stdyInfo method notes"),
    "stdyInfo": ("", "sumDscr"),
    "sumDscr": ("", "collDate anlyUnit universe"),
    "collDate": ("event date", ""),
    "method": ("", "dataColl"),
    "dataColl": ("", "collMode weight"),
    "notes": ("type subject", ""),
    "fileDscr": ("ID", "fileTxt notes"),
    "fileTxt": ("", "fileName dimensns fileType"),
    "dimensns": ("", "caseQnty varQnty"),
    "dataDscr": ("", "var"),
    "var": (
        "ID name files intrvl nature",
        "labl qstn invalrng universe catgry concept varFormat",
    ),
    "qstn": ("", "preQTxt qstnLit ivuInstr"),
    "invalrng": ("", "item"),
    "item": ("VALUE", ""),
    "catgry": ("missing", "catValu labl catStat"),
    "catStat": ("type", ""),
    "varFormat": ("type", ""),
}
XML = "{http://www.w3.org/XML/1998/namespace}"
# codebook.xsd of https://ddialliance.org/, with the schemas that it includes.
SCHEMA = os.environ.get("GROUNDSWELL_DDI_SCHEMA", "")


def assert_structure(element) -> None:
    """Fail for an element or attribute that the schema does not have there."""
    name = element.tag.removeprefix("{ddi:codebook:2_5}")
    attributes, children = (part.split() for part in STRUCTURE.get(name, ("", "")))
    assert {key.replace(XML, "{xml}") for key in element.attrib} <= {*attributes}, name
    names = [child.tag.removeprefix("{ddi:codebook:2_5}") for child in element]
    assert names == sorted(names, key=children.index), name
    for child in element:
        assert_structure(child)


def unpacked(export: Export, folder: Path) -> Path:
    """Put an export and its documents into one folder, as somebody downloads them."""
    assert export.documents_name, export.job.message
    shutil.copy(path_of(export.file_name), folder / (export.stem + export.suffix))
    with ZipFile(path_of(export.documents_name)) as archive:
        archive.extractall(folder)
    return folder


@pytest.mark.parametrize("kind", FORMATS)
def test_the_documents_describe_the_file(staff, fall, maya, tmp_path, kind):
    export = made(staff.state, fall, format=kind)
    folder = unpacked(export, tmp_path)
    data = (folder / (export.stem + export.suffix)).read_bytes()
    digest = hashlib.sha256(data).hexdigest()

    root = ElementTree.parse(folder / "ddi-codebook.xml").getroot()
    file = root.find("d:fileDscr", DDI)
    assert file.findtext("d:fileTxt/d:fileName", "", DDI) == export.stem + export.suffix
    assert file.findtext("d:notes", "", DDI) == digest
    assert file.findtext(".//d:caseQnty", "", DDI) == str(export.rows)
    variables = root.findall("d:dataDscr/d:var", DDI)
    assert file.findtext(".//d:varQnty", "", DDI) == str(len(variables))
    assert_structure(root)
    assert "no weights" in root.findtext(".//d:weight", "", DDI)

    package = json.loads((folder / "datapackage.json").read_text())
    (resource,) = package["resources"]
    assert resource["hash"] == f"sha256:{digest}"
    assert (resource["path"], resource["bytes"]) == (
        export.stem + export.suffix,
        len(data),
    )
    fields = [field["name"] for field in resource["schema"]["fields"]]
    assert fields == [variable.get("name") for variable in variables]


def test_ddi_has_questions_routing_and_counts(
    staff, fall, maya, other_people, tmp_path
):
    export = made(staff.state, fall, format="sav")
    folder = unpacked(export, tmp_path)
    root = ElementTree.parse(folder / "ddi-codebook.xml").getroot()
    variables = {var.get("name"): var for var in root.findall(".//d:var", DDI)}

    safe = variables["safe"]
    assert safe.findtext("d:qstn/d:qstnLit", "", DDI) == "I am safe."
    labels = {
        category.findtext("d:catValu", "", DDI): category.findtext("d:labl", "", DDI)
        for category in safe.findall("d:catgry", DDI)
    }
    assert labels == {
        "1": "Disagree",
        "2": "Agree",
        "-1": "Rather not say",
        "-97": "Not applicable",
        "-98": "Skipped",
        "-99": "Not reached",
        "-96": "Left out, because few people answered",
    }
    counts = [each.text for each in safe.findall(".//d:catStat", DDI)]
    assert counts == ["0", "1", "1"]
    assert variables["teen"].findtext("d:universe", "", DDI) == (
        "Shown only if age is at least 13."
    )
    assert variables["wake"].findtext("d:universe", "", DDI) == (
        "Shown only if pets includes “Cat”."
    )
    chosen = variables["pets_cat"].findall(".//d:catStat", DDI)
    assert [count.text for count in chosen] == ["0", "1"]


@pytest.mark.parametrize(
    "content",
    [
        "<var><qstn/><labl/></var>",
        '<var wgt="wgt"/>',
        "<stdyDscr><var/></stdyDscr>",
    ],
)
def test_another_structure_would_be_noticed(content):
    root = ElementTree.fromstring(content.replace("><", ">\n<"))
    with pytest.raises((AssertionError, ValueError)):
        assert_structure(root)


@pytest.mark.skipif(
    not SCHEMA or not shutil.which("xmllint"),
    reason="GROUNDSWELL_DDI_SCHEMA names no codebook.xsd, or there is no xmllint",
)
@pytest.mark.parametrize("kind", FORMATS)
def test_the_schema_of_ddi_accepts_the_document(staff, fall, maya, tmp_path, kind):
    folder = unpacked(made(staff.state, fall, format=kind), tmp_path)
    command = ["xmllint", "--nonet", "--noout", "--schema", SCHEMA]
    done = subprocess.run(
        [*command, str(folder / "ddi-codebook.xml")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("kind", ("wide", "long"))
def test_texts_of_consent_are_in_all_documents(staff, fall, maya, tmp_path, kind):
    """Those of each version, with its number and in each language."""
    before = fall.published
    wording = ["acknowledge", "promise", "I agree.", "Acepto."]
    rows = [wording if "promise" in row else row for row in FIRST]
    correction = publish_correction(
        survey=draft(rows, "1.1"), corrects=before, by=staff.state
    )
    use_correction(administration=fall, published=correction, by=staff.state)
    fall.refresh_from_db()
    export = made(staff.state, fall, format=kind)
    folder = unpacked(export, tmp_path)
    texts = {
        (before.digest, "English", "I promise."),
        (before.digest, "Español", "Prometo."),
        (fall.published_id, "English", "I agree."),
        (fall.published_id, "Español", "Acepto."),
    }
    package = json.loads((folder / "datapackage.json").read_text())
    assert {
        (entry["digest"], entry["language"], entry["text"])
        for entry in package["consent"]
    } == texts
    assert {entry["field"] for entry in package["consent"]} == {"promise"}
    root = ElementTree.parse(folder / "ddi-codebook.xml").getroot()
    notes = root.findall("d:stdyDscr/d:notes[@type='consent']", DDI)
    assert len(notes) == len(texts)
    for digest, language, text in texts:
        [note] = [note for note in notes if note.text == text]
        assert note.get("subject").startswith("promise, ")
        assert digest in note.get("subject") and language in note.get("subject")
    codebook = path_of(export.codebook_name).read_text()
    part = codebook.partition("Texts of consent")[2].partition("<h2>")[0]
    for digest, _language, text in texts:
        assert text in part and digest[:12] in part


def test_a_text_of_consent_that_was_never_offered_is_in_no_document(
    staff, fall, maya, tmp_path
):
    """The round was opened with a correction, and another one was never used."""
    latest = fall.published
    for version in ("1.1", "1.2"):
        wording = ["acknowledge", "promise", f"I agree {version}.", "Acepto."]
        rows = [wording if "promise" in row else row for row in FIRST]
        latest = publish_correction(
            survey=draft(rows, version), corrects=latest, by=staff.state
        )
        if version == "1.1":
            Administration.objects.filter(pk=fall.pk).update(published=latest)
    export = made(staff.state, fall)
    folder = unpacked(export, tmp_path)
    package = json.loads((folder / "datapackage.json").read_text())
    texts = {entry["text"] for entry in package["consent"]}
    assert texts == {"I agree 1.1.", "Acepto."}
    codebook = path_of(export.codebook_name).read_text()
    assert "I agree 1.1." in codebook
    assert "I promise." not in codebook and "I agree 1.2." not in codebook
    assert "Corrected during the survey" not in codebook


@pytest.mark.parametrize("kind", ("wide", "long", "xlsx", "sav", "dta", "parquet"))
def test_the_program_in_python_reads_the_file(
    staff, fall, maya, other_people, tmp_path, kind
):
    export = made(staff.state, fall, format=kind)
    folder = unpacked(export, tmp_path)
    show = "print(len(responses), labels.get('safe'), values.get('safe', {}).get('2'))"
    if kind != "long":
        show += "\nprint(sorted(float(x) for x in responses['safe']))"
    program = (folder / "read.py").read_text() + show
    done = subprocess.run(
        [sys.executable, "-W", "error::SyntaxWarning", "-c", program],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    first, *rest = done.stdout.splitlines()
    if kind == "long":
        assert first.startswith(str(export.rows))
        return
    assert first == "3 I am safe. Agree"
    # Stata's own program shows the reasons for missing answers.
    expected = "[-1.0, 2.0, nan]" if kind == "dta" else "[-98.0, -1.0, 2.0]"
    assert rest == [expected] or kind == "dta"


@needs_haven
@pytest.mark.parametrize("kind", ("wide", "sav", "zsav", "dta"))
def test_the_program_in_r_reads_the_file(
    staff, fall, maya, other_people, tmp_path, kind
):
    export = made(staff.state, fall, format=kind)
    folder = unpacked(export, tmp_path)
    program = (folder / "read.R").read_text()
    program += """
    cat(nrow(responses), attr(responses$safe, "label"), "\\n")
    cat(names(which(attr(responses$safe, "labels") == 2)), "\\n")
    cat(sort(as.numeric(responses$safe)), "\\n")
    cat(max(nchar(responses$comment, type = "bytes")), "\\n")
    cat(class(responses$born)[1], format(min(responses$born, na.rm = TRUE)), "\\n")
    """
    (folder / "check.R").write_text(program)
    done = subprocess.run(
        ["Rscript", "--vanilla", "check.R"],
        cwd=folder,
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
    )
    assert done.returncode == 0, done.stderr
    lines = [line.strip() for line in done.stdout.splitlines()]
    assert lines[0] == "3 I am safe."
    assert lines[1] == "Agree"
    assert lines[2] == ("-1 2" if kind == "dta" else "-98 -1 2")
    assert lines[3] == str(len('fine, "really"\nso 🙂'.encode()))
    assert kind == "wide" or lines[4] == "Date 2014-02-28"


def test_a_text_does_not_end_its_quotes(staff, fall, maya, tmp_path):
    from reports.exports.documents.syntax import _json, _spss_text, _stata_text

    text = "it's \"`quoted'\" $HOME \n\\"
    assert json.loads(_json(text)) == text
    assert _spss_text(text) == "'it''s \"`quoted''\" $HOME \\'"
    assert "$" not in _stata_text(text)
    assert "\"'" not in _stata_text(text)[2:-2]
