from __future__ import annotations

import pytest

from provisioning.commands import Refusal
from provisioning.measure.jmeter.options import read_codes

GOOD = "code,take\nAAAA-BBBB-CCCC,1\nDDDD-EEEE-FFFF,2\n"


@pytest.fixture
def codes(tmp_path):
    return tmp_path / "codes.csv"


@pytest.mark.parametrize("text", [GOOD, f"\ufeff{GOOD}", GOOD.replace("\n", "\r\n")])
def test_codes_are_read_as_jmeter_data_writes_them(codes, text):
    codes.write_bytes(text.encode())
    assert read_codes(codes, {1, 2}) == ["AAAA-BBBB-CCCC,1", "DDDD-EEEE-FFFF,2"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (GOOD.replace(",", ";"), "row 1: the header has to be code,take"),
        (GOOD.replace(",", "\t"), "row 1: the header"),
        (GOOD.partition("\n")[2], "row 1: the header"),
        ("", "row 1: the header"),
        ('"code","take"\n', "row 1: the header"),
        ("take,code\n1,AAAA\n", "row 1: the header"),
        ("code,take,name\n", "row 1: the header"),
        ("code,take\nAAAA;1\n", "row 2: it has to be a code, a comma"),
        (f"{GOOD}\nAAAA,1\n", "row 4: it has to be a code"),
        ('code,take\n"AAAA",1\n', "row 2: it has to be a code"),
        ("code,take\nAAAA, 1\n", "row 2: it has to be a code"),
        ("code,take\nAAAA,1,\n", "row 2: it has to be a code"),
        ("code,take\n,1\n", "row 2: it has to be a code"),
        ("code,take\nAAAA,\n", "row 2: it has to be a code"),
        ("code,take\nAAAA,0\n", "row 2: it has to be a code"),
        (f"{GOOD}AAAA,3\n", "row 4: the file of --pages has no take 3"),
    ],
)
def test_what_jmeter_would_send_as_something_else_is_refused(codes, text, reason):
    codes.write_text(text)
    with pytest.raises(Refusal, match=reason) as refusal:
        read_codes(codes, {1, 2})
    # A code lets anyone answer.
    assert "AAAA" not in str(refusal.value)


@pytest.mark.parametrize("content", [b"PK\x03\x04\xff\xfe", GOOD.encode("utf-16")])
def test_a_workbook_is_no_file_of_codes(codes, content):
    codes.write_bytes(content)
    with pytest.raises(Refusal, match="is no text in UTF-8"):
        read_codes(codes)
