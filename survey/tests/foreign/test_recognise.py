"""Files are recognised by what is in them, and hostile ones are refused in time."""

from __future__ import annotations

import io
import itertools
import json
import random
import string
import time
from typing import Any
from xml.etree import ElementTree

import pytest
from openpyxl import load_workbook

from survey.instrument.foreign import limesurvey_lss
from survey.instrument.foreign.converted import UnreadableQuestionnaire
from survey.instrument.foreign.limesurvey_lss import read_tables
from survey.instrument.foreign.recognise import convert, program_of
from survey.instrument.foreign.settling import read_questionnaire, settled
from survey.instrument.foreign.sheets import workbook_of
from survey.tests.console.test_surveys import book
from survey.tests.foreign.converting import Result
from survey.tests.foreign.samples import (
    choices,
    dictionary,
    lime_question,
    lss,
    qsf,
    qsf_question,
    school_json,
    school_lss,
    school_qsf,
    school_tsv,
)

SAMPLES = {
    "limesurvey_lss": school_lss(),
    "limesurvey_tsv": school_tsv(),
    "qualtrics": school_qsf(),
    "redcap": dictionary(),
    "surveyjs": json.dumps(school_json()).encode(),
}
# Of the conversion and all readings; a tenth of it is usual.
SECONDS = 20


def test_each_program_is_recognised_by_content():
    assert {program: program_of(content) for program, content in SAMPLES.items()} == {
        program: program for program in SAMPLES
    }


@pytest.mark.parametrize("program", SAMPLES)
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le"])
def test_each_program_is_read_in_other_encodings(program, encoding):
    text = SAMPLES[program].decode("utf-8-sig")
    content = text.encode(encoding)
    assert program_of(content) == program
    assert convert(content).sheets == convert(SAMPLES[program]).sheets


def test_file_in_latin_1_is_read_and_says_so():
    rows = ["a,pets,,text,¿Cuántas?,,,,,,,,"]
    result = Result(dictionary(rows=rows).decode().encode("latin-1"))
    assert result.row("a")["label::English (en)"] == "¿Cuántas?"
    (line,) = result.lines("", "file")
    assert line.outcome == "changed" and "Windows-1252" in line.reason


@pytest.mark.parametrize(
    "content",
    [
        book(),
        b"",
        b"name,age\nAna,3\n",
        b"%PDF-1.7",
        b"\xd0\xcf\x11\xe0",
        b'<?xml version="1.0"?><html></html>',
        b'{"users": [1, 2]}',
        b"[1, 2]",
        b"\x00\x01\x02",
    ],
)
def test_other_files_are_left_to_the_reader_of_workbooks(content):
    assert program_of(content) == ""


BOMB = (
    b'<?xml version="1.0"?><!DOCTYPE document [<!ENTITY a "aaaa">'
    b'<!ENTITY b "&a;&a;&a;">]><document>'
    b"<LimeSurveyDocType>Survey</LimeSurveyDocType><x>&b;</x></document>"
)
EXTERNAL = (
    b'<?xml version="1.0"?><!DOCTYPE document [<!ENTITY a SYSTEM "file:///etc/passwd">]>'
    b"<document><LimeSurveyDocType>Survey</LimeSurveyDocType><x>&a;</x></document>"
)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (BOMB, "document type or entities"),
        (EXTERNAL, "document type or entities"),
        (school_lss()[:900], "damaged or cut off in line 7"),
        (school_qsf()[:900], "damaged or cut off in line 1, character"),
        (lss()[: -len("</document>")], "damaged or cut off in line"),
        (b'{"pages": ' + b"[" * 100_000, "nested deeper"),
        (b'{"pages": ' + b'{"a":' * 5_000 + b"1" + b"}" * 5_001, "nested deeper"),
        (b'{"SurveyElements": 5}', "no list of elements"),
        (
            b"<document><LimeSurveyDocType>Group</LimeSurveyDocType></document>",
            "has no survey",
        ),
        (dictionary(rows=["a,pets,,text," + "x" * 1_100_000]), "beyond line 2"),
        (b'{"pages": []}' + b" " * (11 * 2**20), "larger than 10 MB"),
    ],
)
def test_hostile_or_damaged_file_is_refused_with_a_reason(content, message):
    with pytest.raises(UnreadableQuestionnaire, match=message):
        convert(content)
    reading, report = read_questionnaire(content, "pets")
    assert reading.draft is None and report == []
    assert message in reading.problems[0].reason


def test_entities_would_be_expanded_by_a_parser_that_allows_them(monkeypatch):
    def unsafe(source, events, forbid_dtd):
        return ElementTree.iterparse(source, events=events)  # noqa: S314

    monkeypatch.setattr(limesurvey_lss, "iterparse", unsafe)
    content = BOMB.replace(b"<x>&b;</x>", b"<t><rows><row><a>&b;</a></row></rows></t>")
    assert read_tables(content.decode())["t"] == [{"a": "aaaa" * 3}]


def in_time(content: bytes):
    started = time.monotonic()
    converted = convert(content)
    reading = settled(converted, "pets")
    assert time.monotonic() - started < SECONDS
    return converted, reading


def test_five_hundred_pages_are_converted():
    pages = [
        {
            "name": f"p{n}",
            "elements": [{"type": "text", "name": f"q{n}", "title": f"Q {n}?"}],
        }
        for n in range(500)
    ]
    _converted, reading = in_time(json.dumps({"pages": pages}).encode())
    assert reading.draft and len(reading.draft.pages) == 500


def test_list_of_10_000_options_is_refused_and_the_rest_is_taken_over():
    labels = choices(*map(str, range(10_000)))
    questions = [
        qsf_question("QID1", "long", "MC", "DL", "Which?", Choices=labels),
        qsf_question("QID2", "why", "TE", "SL", "Why?"),
    ]
    converted, reading = in_time(qsf(questions))
    assert [item.name for item in reading.draft.items()] == ["why"]
    reasons = [line.reason for line in converted.report if line.outcome == "refused"]
    assert "it has 10,000 options; a list has at most 1,000" in reasons


def test_more_questions_than_a_survey_may_have_are_in_the_report():
    rows = [f"q{n},pets,,text,Question {n},,,,,,,," for n in range(1_500)]
    converted, reading = in_time(dictionary(rows=rows))
    assert len(list(reading.draft.items())) == 1_000
    refused = [line for line in converted.report if line.outcome == "refused"]
    assert len(refused) == 500


def test_unlucky_texts_become_no_formulas_references_or_controls():
    text = "=1+1 ${gone} _x0041_ \x07 <script>x</script> \u202eab"
    element = {"type": "text", "name": "a", "title": text}
    result = Result(json.dumps({"elements": [element]}).encode())
    (item,) = result.draft.items()
    assert item.label == {"en": "=1+1 {gone} _x0041_ ab"}


def test_rule_that_the_reader_refuses_does_not_sink_the_rest():
    questions = [
        # Each waits for the other: only the reader of workbooks sees circles.
        lime_question("1", "S", "a", "A?", relevance='b.NAOK == "1"'),
        lime_question("2", "S", "b", "B?", relevance='a.NAOK == "1"'),
        lime_question("3", "S", "c", "C?", relevance='a.NAOK == "1"'),
    ]
    result = Result(
        lss(
            surveys=[{"sid": "1", "language": "en"}],
            groups=[{"gid": "7", "group_name": "G", "language": "en"}],
            questions=questions,
        )
    )
    assert [item.name for item in result.draft.items()] == ["a", "b", "c"]
    outcomes = [result.outcome(name, "rule") for name in "abc"]
    assert sorted(outcomes) == ["refused", "taken", "taken"]


def test_workbook_has_all_cells_as_text():
    content = workbook_of({"survey": [{"type": "text", "name": "=1"}], "choices": []})
    sheet = load_workbook(io.BytesIO(content))["survey"]
    assert [[cell.value for cell in row] for row in sheet] == [
        ["type", "name"],
        ["text", "=1"],
    ]
    assert {cell.data_type for row in sheet for cell in row} == {"s"}


@pytest.mark.parametrize(
    "elements",
    [
        # Unfinished tags, one name for all, and far too many languages.
        [{"type": "text", "name": "a", "title": "<p" * 500_000}],
        [{"type": "text", "name": "a", "title": "b"}] * 5_000,
        [
            {
                "type": "text",
                "name": f"a{n}",
                "title": {"default": "b", f"{first}{second}": "c"},
            }
            for n, (first, second) in enumerate(
                itertools.product(string.ascii_lowercase, repeat=2)
            )
        ],
    ],
    ids=["tags", "names", "languages"],
)
def test_file_that_was_made_to_be_slow_is_converted_in_time(elements):
    _converted, reading = in_time(json.dumps({"elements": elements}).encode())
    assert reading.draft


def damaged(content: bytes, chance: random.Random) -> bytes:
    """Cut, drop, repeat or overwrite some bytes, or a part of a JSON file."""
    data, at = bytearray(content), chance.randrange(len(content))
    match chance.randrange(4):
        case 0:
            return bytes(data[:at])
        case 1:
            del data[at : at + chance.randrange(1, 200)]
        case 2:
            start = chance.randrange(len(content))
            data[at:at] = data[start : start + 100]
        case _:
            data[at] = chance.randrange(256)
    return bytes(data) or b" "


def with_other_values(data: Any, chance: random.Random) -> Any:
    """Replace some values of a JSON file by others that are not expected there."""
    if chance.random() < 0.03:
        return chance.choice([None, 5, "x", [], {}, [1, None], {"0": {"0": 5}}, True])
    if isinstance(data, dict):
        return {key: with_other_values(value, chance) for key, value in data.items()}
    if isinstance(data, list):
        return [with_other_values(value, chance) for value in data]
    return data


@pytest.mark.parametrize("program", SAMPLES)
def test_random_damage_is_refused_with_a_reason_or_converted(program):
    chance = random.Random(program)
    for _ in range(150):
        content = damaged(SAMPLES[program], chance)
        if program in ("qualtrics", "surveyjs") and chance.random() < 0.7:
            data = with_other_values(json.loads(SAMPLES[program]), chance)
            content = json.dumps(data).encode()
        try:
            convert(content)
        except UnreadableQuestionnaire as refusal:
            # That sentence stands for an error that nobody thought of.
            assert "damaged (" not in str(refusal)
