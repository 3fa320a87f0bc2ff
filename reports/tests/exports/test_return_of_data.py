"""A district gets its data back: complete, explained, and readable by it alone."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from pathlib import Path
from zipfile import ZipFile

import openpyxl
import pyrage
import pyreadstat
import pytest
import pyzipper
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from django.conf import settings
from django.utils import timezone
from pyarrow import parquet

from accounts.models import AuditEntry
from accounts.staff import dismiss
from reports.exports import job
from reports.exports.return_of_data import district_archive, encryption
from reports.exports.return_of_data.encryption import (
    BadPublicKey,
    PasswordLost,
    check_public_key,
    new_password,
    seal_password,
    unseal_password,
)
from reports.models import Export
from reports.models.exports import RETURN
from reports.tasks import delete_old_exports
from reports.tests.exports.conftest import identify, made_as_it_is, requested
from reports.tests.exports.test_formats import content
from reports.tests.exports.test_job import files, folder
from survey.models import Job
from survey.people.erasing import files as erased_files
from survey.work import jobs
from survey.work.files import path_of

pytestmark = pytest.mark.django_db

PURPOSE = "Returned at the end of the agreement."
README_LINE = re.compile(r"^([0-9a-f]{64})  (\S+)$", re.MULTILINE)
NAME = "Zaragoza"
FURTHER = ["xlsx", "sav", "dta", "parquet"]


@pytest.fixture
def key() -> pyrage.x25519.Identity:
    return pyrage.x25519.Identity.generate()


@pytest.fixture
def riverside(staff, maya, other_people):
    """Maya and somebody of Washington; a third person is in the other district."""
    identify(maya, external_id="S1", given_name="Maya", family_name=NAME)
    identify(other_people[1], external_id="S9", family_name="Elsewhere")
    return staff.riverside


def choices_for(district, **choices) -> dict[str, object]:
    return {
        "format": RETURN,
        "district": district,
        "places": {"districts": [district.pk]},
        "identities": True,
        "reason": PURPOSE,
        **choices,
    }


def returned(by, administration, district, **choices) -> Export:
    return made_as_it_is(by, administration, **choices_for(district, **choices))


def decrypted(export: Export, identity: pyrage.x25519.Identity) -> dict[str, bytes]:
    with ZipFile(io.BytesIO(pyrage.decrypt(content(export), [identity]))) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def unzipped(export: Export, password: str) -> dict[str, bytes]:
    with pyzipper.AESZipFile(io.BytesIO(content(export))) as archive:
        archive.setpassword(password.encode())
        return {name: archive.read(name) for name in archive.namelist()}


def data_in(members: dict[str, bytes], ending: str) -> bytes:
    [name] = [
        name for name in members if name.endswith(ending) and name != "codebook.csv"
    ]
    return members[name]


def rows_in(members: dict[str, bytes]) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(data_in(members, ".csv").decode())))


def check_digests(members: dict[str, bytes]) -> None:
    """Compare each file with its line in the README, which names all of them."""
    listed = {
        name: digest
        for digest, name in README_LINE.findall(members["README.txt"].decode())
    }
    assert listed.keys() == members.keys() - {"README.txt"}
    for name, digest in listed.items():
        assert hashlib.sha256(members[name]).hexdigest() == digest, name


def test_a_district_decrypts_its_archive_with_its_key(staff, fall, riverside, key):
    recipient = str(key.to_public())
    export = returned(
        staff.dana, fall, riverside, recipient=recipient, further_formats=FURTHER
    )

    members = decrypted(export, key)
    check_digests(members)
    rows = rows_in(members)
    assert {row["school_code"] for row in rows} == {"lincoln", "washington"}
    [row] = [row for row in rows if row["external_id"] == "S1"]
    assert (row["family_name"], row["safe"]) == (NAME, "2")
    assert (export.rows, export.respondents) == (len(rows), 2)
    readme = members["README.txt"].decode()
    assert PURPOSE in readme and "Rows in each file of data: 2\n" in readme
    assert f"Groundswell {settings.VERSION}" in readme
    assert "DATA OF RIVERSIDE" in readme
    assert "declined on the first page" in readme
    # Everything is there that explains the data, in words and for programs.
    assert b"family_name" in members["codebook.html"]
    assert b"family_name" in members["codebook.csv"]
    assert b"ddi:codebook:2_5" in members["csv/ddi-codebook.xml"]
    assert "Estoy a salvo." in members["questionnaire-1-es.html"].decode()
    assert "I am safe." in members["questionnaire-1-en.html"].decode()
    assert b"Elsewhere" not in b"".join(members.values())


def test_every_format_has_the_same_people(staff, fall, riverside, key, tmp_path: Path):
    recipient = str(key.to_public())
    export = returned(
        staff.dana, fall, riverside, recipient=recipient, further_formats=FURTHER
    )
    members = decrypted(export, key)
    wanted = sorted(
        (row["research_id"], row["external_id"]) for row in rows_in(members)
    )
    assert len(wanted) == 2

    def people(rows) -> list[tuple[str, str]]:
        # Some formats have no blank text.
        return sorted((row["research_id"], row["external_id"] or "") for row in rows)

    sheet = openpyxl.load_workbook(io.BytesIO(data_in(members, ".xlsx")))["Responses"]
    header, *lines = sheet.iter_rows(values_only=True)
    in_sheet = [
        {name: cell or "" for name, cell in zip(header, line, strict=True)}
        for line in lines
    ]
    assert people(in_sheet) == wanted
    for ending, read in ((".sav", pyreadstat.read_sav), (".dta", pyreadstat.read_dta)):
        path = tmp_path / f"data{ending}"
        path.write_bytes(data_in(members, ending))
        assert people(read(path)[0].to_dict("records")) == wanted
    table = parquet.read_table(io.BytesIO(data_in(members, ".parquet")))
    assert people(table.to_pylist()) == wanted


def test_the_dictionary_describes_the_file_beside_it(staff, fall, riverside, key):
    export = returned(
        staff.dana,
        fall,
        riverside,
        recipient=str(key.to_public()),
        further_formats=["sav"],
    )
    members = decrypted(export, key)
    for place in ("csv", "spss"):
        package = json.loads(members[f"{place}/datapackage.json"])
        [resource] = package["resources"]
        data = members[f"{place}/{resource['path']}"]
        assert resource["hash"] == f"sha256:{hashlib.sha256(data).hexdigest()}"
    header = list(rows_in(members)[0])
    package = json.loads(members["csv/datapackage.json"])
    fields = package["resources"][0]["schema"]["fields"]
    assert [field["name"] for field in fields] == header


def test_another_key_opens_nothing(staff, fall, riverside, key):
    export = returned(staff.dana, fall, riverside, recipient=str(key.to_public()))
    with pytest.raises(pyrage.DecryptError):
        decrypted(export, pyrage.x25519.Identity.generate())
    assert NAME.encode() not in content(export)
    assert export.suffix == ".zip.age" and export.file_name.endswith(".zip.age")


def test_an_ssh_key_opens_it_too(staff, fall, riverside):
    private = Ed25519PrivateKey.generate()
    public = private.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    recipient = check_public_key(f"{public.decode()} office@riverside.example\n")
    export = returned(staff.dana, fall, riverside, recipient=recipient)
    stored = private.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    members = decrypted(export, pyrage.ssh.Identity.from_buffer(stored))
    check_digests(members)


def test_a_password_opens_a_zip_file(staff, fall, riverside):
    password = new_password()
    export = returned(
        staff.dana, fall, riverside, sealed_password=seal_password(password)
    )
    members = unzipped(export, password)
    check_digests(members)
    assert NAME in {row["family_name"] for row in rows_in(members)}
    with pytest.raises(RuntimeError, match="Bad password"):
        unzipped(export, new_password())
    with (
        ZipFile(io.BytesIO(content(export))) as archive,
        pytest.raises((RuntimeError, NotImplementedError)),
    ):
        archive.read("README.txt")
    # It was needed to make the archive, and is nowhere now.
    assert export.sealed_password == ""


def test_a_stored_password_cannot_be_read_without_the_servers_key(
    staff, fall, riverside, settings
):
    password = new_password()
    assert re.fullmatch(r"([a-z2-9]{5}-){3}[a-z2-9]{5}", password)
    sealed = seal_password(password)
    assert password not in sealed and unseal_password(sealed) == password
    settings.SECRET_KEY = "another" * 10
    with pytest.raises(PasswordLost):
        unseal_password(sealed)
    export = returned(staff.dana, fall, riverside, sealed_password=sealed)
    assert not export.file_name
    assert "Request the archive again" in export.job.message


class TestPlainData:
    """What is not encrypted is on the disk only while the archive is made."""

    def leaks(self) -> set[str]:
        paths = [path for path in folder().rglob("*") if path.is_file()]
        return {path.name for path in paths if NAME.encode() in path.read_bytes()}

    def test_nothing_is_left_after_the_job(self, staff, fall, riverside, key):
        before = files()
        export = returned(staff.dana, fall, riverside, recipient=str(key.to_public()))
        assert files() - before == {Path(export.file_name).name}
        assert self.leaks() == set()

    @pytest.mark.parametrize("way", ["write_for_key", "write_for_password"])
    def test_nothing_is_left_after_a_failure(
        self, staff, fall, riverside, key, monkeypatch, way
    ):
        before, seen = files(), set()

        def fail(*args):
            seen.update(self.leaks())
            raise RuntimeError

        monkeypatch.setattr(district_archive, way, fail)
        secret = (
            {"recipient": str(key.to_public())}
            if way == "write_for_key"
            else {"sealed_password": seal_password("x")}
        )
        export = returned(staff.dana, fall, riverside, **secret)
        assert export.job.state == Job.State.FAILED and not export.file_name
        # There was something to leave behind.
        assert any(name.endswith(".csv") for name in seen)
        assert (files(), self.leaks()) == (before, set())

    def test_the_plain_archive_goes_even_if_it_cannot_be_encrypted(
        self, tmp_path, monkeypatch
    ):
        plain = tmp_path / "data.csv"
        plain.write_text(NAME)
        seen = []

        def fail(source, target, recipients):
            seen.extend(path.name for path in tmp_path.iterdir())
            raise pyrage.EncryptError

        monkeypatch.setattr(pyrage, "encrypt_io", fail)
        key = str(pyrage.x25519.Identity.generate().to_public())
        with pytest.raises(pyrage.EncryptError):
            encryption.write_for_key(tmp_path / "archive", {"data.csv": plain}, key)
        assert "archive.plain" in seen
        assert not (tmp_path / "archive.plain").exists()


def test_it_is_for_people_who_may_see_names_and_answers(staff, fall, riverside, key):
    recipient = str(key.to_public())
    export = returned(staff.state, fall, riverside, recipient=recipient)
    assert export.file_name
    for user in (staff.analyst, staff.chen, staff.sam):
        export = returned(user, fall, riverside, recipient=recipient)
        assert not export.file_name
        assert export.job.message == job.PERMISSIONS_CHANGED
    export = requested(staff.dana, fall, **choices_for(riverside, recipient=recipient))
    dismiss(membership=staff.dana.memberships.get(), by=staff.state)
    jobs.run(export.job_id)
    export.refresh_from_db()
    assert not export.file_name


def test_the_log_has_the_purpose_and_the_key(staff, fall, riverside, key):
    recipient = str(key.to_public())
    returned(staff.dana, fall, riverside, recipient=recipient)
    entry = AuditEntry.objects.get(action="make export")
    assert (entry.after["purpose"], entry.after["encrypted for"]) == (
        PURPOSE,
        recipient,
    )
    assert entry.district_id == riverside.pk


@pytest.mark.parametrize(
    "text", ["", "age1xyz", "ssh-rsa AAAA", "ssh-ed25519", "hello", "age1" + "q" * 58]
)
def test_what_is_no_public_key_is_refused(text):
    with pytest.raises(BadPublicKey, match="no public key"):
        check_public_key(text)


AGE = str(pyrage.x25519.Identity.generate().to_public())
SSH = (
    Ed25519PrivateKey.generate()
    .public_key()
    .public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    .decode()
)


def with_keys(text):
    return text.replace("<age>", AGE).replace("<ssh>", SSH)


@pytest.mark.parametrize(
    "text",
    [
        "AGE-SECRET-KEY-1QQQ",
        "-----BEGIN OPENSSH PRIVATE KEY-----\nabc",
        "# public key: <age>\nAGE-SECRET-KEY-1QQQ",
        "<age>\nage-secret-key-1qqq",
        "<ssh> AGE-SECRET-KEY-1QQQ",
        "<ssh> office\n-----BEGIN RSA PRIVATE KEY-----",
        "<ssh> -----begin private\nkey-----",
    ],
)
def test_a_private_key_is_refused_with_advice(text):
    text = with_keys(text)
    with pytest.raises(BadPublicKey, match="private key") as refused:
        check_public_key(text)
    assert text not in str(refused.value)
    assert "ask the district for a new pair of keys" in str(refused.value)


@pytest.mark.parametrize(
    "text", ["<age>\n<age>", "<ssh>\n<ssh>", "<age> <ssh>", "<ssh> AAAAC3Nza"]
)
def test_more_than_one_key_is_refused(text):
    text = with_keys(text)
    with pytest.raises(BadPublicKey, match=r"Enter one key\."):
        check_public_key(text)


def test_the_comment_of_a_key_is_not_kept():
    """Anything could be in it, and the key is shown and logged."""
    assert check_public_key(f"  {SSH}  Office of\nRiverside, secret\n") == SSH
    assert check_public_key(f"{AGE} Riverside") == AGE


@pytest.mark.parametrize("has_ended", [False, True])
def test_the_password_goes_with_a_job_that_ended_without_a_file(
    staff, fall, riverside, has_ended
):
    sealed = seal_password(new_password())
    export = requested(
        staff.dana, fall, **choices_for(riverside, sealed_password=sealed)
    )
    if has_ended:
        dismiss(membership=staff.dana.memberships.get(), by=staff.state)
        jobs.run(export.job_id)
    delete_old_exports()
    export.refresh_from_db()
    assert not export.file_name
    # Of a job that waits, it is still needed.
    assert export.sealed_password == ("" if has_ended else sealed)


def test_erasing_a_person_deletes_archives_of_the_district(staff, fall, riverside, key):
    recipient = str(key.to_public())
    export = returned(staff.dana, fall, riverside, recipient=recipient)
    path = path_of(export.file_name)
    now = timezone.now()
    # Of a person of another district, it stays.
    deleted = erased_files.delete_requested_files({fall.pk}, staff.lakeside.pk, now)
    assert deleted == (0, 0)
    assert path.exists()
    deleted = erased_files.delete_requested_files({fall.pk}, riverside.pk, now)
    assert deleted == (0, 1)
    export.refresh_from_db()
    assert (export.file_name, path.exists()) == ("", False)
