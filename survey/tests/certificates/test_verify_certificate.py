"""Refuse a certificate that was changed anywhere, or that somebody else signed."""

from __future__ import annotations

import json
import shutil
import subprocess
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from survey.models import DestructionCertificate
from survey.people.certificates.documents import (
    Verdict,
    canonical,
    sign_json,
    sign_pdf,
    verify,
)
from survey.people.certificates.keys import (
    fingerprint,
    own_keys,
    pem_of,
    public_bytes,
    signing_key,
)

CONTENT = {"number": "1", "district": "Río Grande", "tables": [{"rows": 3}]}
# What a reader of PDF files takes for one.
PDF = b"%PDF-1.7\n1 0 obj\n<< >>\nendobj\ntrailer\n<< >>\nstartxref\n9\n%%EOF\n"
OTHER = ["another installation " + "o" * 32]


@pytest.fixture
def signed(tmp_path):
    """A certificate in both forms, and the public key."""
    key = signing_key()
    (tmp_path / "a.json").write_bytes(sign_json(CONTENT, key))
    (tmp_path / "a.pdf").write_bytes(sign_pdf(PDF, key))
    (tmp_path / "key.pem").write_bytes(pem_of([public_bytes(key)]))
    return tmp_path


def verified_by_command(*arguments: object) -> tuple[int, str]:
    """Return the exit status of the command and what it prints."""
    printed = StringIO()
    try:
        call_command(
            "verify_certificate",
            *map(str, arguments),
            stdout=printed,
            stderr=printed,
        )
    except SystemExit as end:
        return int(end.code or 0), printed.getvalue()
    return 0, printed.getvalue()


@pytest.mark.sqlite
@pytest.mark.django_db
def test_a_certificate_is_valid_as_it_was_signed(signed):
    both = (signed / "a.json", signed / "a.pdf")
    assert verified_by_command(*both)[0] == 0
    status, printed = verified_by_command(*both, "--key", signed / "key.pem")
    assert status == 0
    assert printed.count(": valid") == 2


@pytest.mark.sqlite
def test_with_a_key_file_no_database_is_needed(signed, django_db_blocker):
    with django_db_blocker.block():
        assert (
            verified_by_command(signed / "a.json", "--key", signed / "key.pem")[0] == 0
        )


@pytest.mark.sqlite
@pytest.mark.parametrize("name", ["a.json", "a.pdf"])
def test_a_changed_byte_anywhere_is_refused(signed, name):
    content, keys = (signed / name).read_bytes(), own_keys()
    assert verify(content, keys) is Verdict.VALID
    for position in range(len(content)):
        for bit in (1, 0x20, 0x80):
            changed = bytearray(content)
            changed[position] ^= bit
            assert verify(bytes(changed), keys) is not Verdict.VALID, position
        without = content[:position] + content[position + 1 :]
        assert verify(without, keys) is not Verdict.VALID, position
        added = content[:position] + b" " + content[position:]
        assert verify(added, keys) is not Verdict.VALID, position
    assert verify(content + b"\n", keys) is not Verdict.VALID


@pytest.mark.sqlite
def test_the_same_content_in_another_form_is_a_changed_file(signed):
    content = (signed / "a.json").read_bytes()
    read = json.loads(content)
    for form in (json.dumps(read, indent=1), json.dumps(read, sort_keys=True)):
        assert verify(form.encode(), own_keys()) is Verdict.CHANGED
    upper = content.replace(
        read["signature"].encode(), read["signature"].upper().encode()
    )
    assert verify(upper, own_keys()) is Verdict.CHANGED
    surrogate = b'{"certificate":"\\ud800","key":"k","signature":"%s"}' % (b"0" * 128)
    for garbage in (b"", b"[]", b"{}", b"%PDF", b"\xff\xfe", b'{"a":1}', surrogate):
        assert verify(garbage, own_keys()) is Verdict.CHANGED


@pytest.mark.sqlite
@pytest.mark.django_db
@pytest.mark.parametrize("name", ["a.json", "a.pdf"])
def test_another_installations_certificate_is_refused(signed, name, settings):
    assert verified_by_command(signed / name)[0] == 0
    settings.CERTIFICATE_KEYS = OTHER
    status, printed = verified_by_command(signed / name)
    assert status == 1
    assert "unknown key" in printed
    # Nor is it enough to write the known key's number into the file.
    content = (signed / name).read_bytes()
    new_id = fingerprint(own_keys()[0])[:16].encode()
    settings.CERTIFICATE_KEYS = ["only-for-tests-" + "c" * 32]
    known = fingerprint(own_keys()[0])[:16].encode()
    forged = content.replace(known, new_id)
    settings.CERTIFICATE_KEYS = OTHER
    assert verify(forged, own_keys()) is Verdict.CHANGED


@pytest.mark.sqlite
@pytest.mark.django_db
def test_earlier_keys_stay_valid(signed, settings):
    settings.CERTIFICATE_KEYS = OTHER + settings.CERTIFICATE_KEYS
    assert verified_by_command(signed / "a.json", signed / "a.pdf")[0] == 0
    newer = sign_json(CONTENT, signing_key())
    assert json.loads(newer)["key"] == fingerprint(own_keys()[0])[:16]
    assert newer != (signed / "a.json").read_bytes()


@pytest.mark.sqlite
@pytest.mark.django_db
def test_it_says_whether_the_key_is_one_of_the_settings(signed, settings):
    """A row of the database may have been written by somebody else."""
    printed = verified_by_command(signed / "a.json")[1]
    name = fingerprint(own_keys()[0])[:16]
    assert f"valid, key {name} of this installation's settings" in printed
    DestructionCertificate.objects.create(
        kind="people",
        issued_at=timezone.now(),
        document=b"",
        pdf=b"",
        public_key=own_keys()[0],
    )
    settings.CERTIFICATE_KEYS = OTHER
    status, printed = verified_by_command(signed / "a.json")
    assert status == 0
    assert f"key {name} of an earlier certificate, which is not one of the" in printed
    printed = verified_by_command(signed / "a.pdf", "--key", signed / "key.pem")[1]
    assert "key.pem, which is not one of the settings'" in printed


@pytest.mark.sqlite
def test_a_file_of_several_keys_is_read_and_nothing_else(signed, tmp_path, settings):
    settings.CERTIFICATE_KEYS = OTHER + settings.CERTIFICATE_KEYS
    several = tmp_path / "several.pem"
    several.write_bytes(pem_of(own_keys()))
    assert verified_by_command(signed / "a.json", "--key", several)[0] == 0
    nonsense = tmp_path / "nonsense.pem"
    nonsense.write_text("no key")
    for path in (nonsense, tmp_path / "none.pem"):
        with pytest.raises(CommandError, match=path.name):
            verified_by_command(signed / "a.json", "--key", path)
    with pytest.raises(CommandError, match="cannot be read"):
        verified_by_command(tmp_path / "none.json", "--key", several)


@pytest.mark.sqlite
@pytest.mark.skipif(not shutil.which("openssl"), reason="there is no openssl here")
def test_openssl_verifies_a_certificate_as_well(signed):
    """Nobody needs this program to trust a certificate."""
    read = json.loads((signed / "a.json").read_bytes())
    (signed / "message").write_bytes(canonical(read["certificate"]))
    (signed / "signature").write_bytes(bytes.fromhex(read["signature"]))
    command = ["openssl", "pkeyutl", "-verify", "-pubin", "-rawin"]
    command += ["-inkey", "key.pem", "-in", "message", "-sigfile", "signature"]

    def verified() -> bool:
        done = subprocess.run(command, cwd=signed, check=False, capture_output=True)
        return done.returncode == 0

    assert verified()
    (signed / "message").write_bytes(canonical({**read["certificate"], "rows": 1}))
    assert not verified()
