"""Data dictionaries of REDCap."""

from __future__ import annotations

import pytest

from survey.instrument.foreign.settling import read_questionnaire
from survey.tests.foreign.converting import Result
from survey.tests.foreign.samples import (
    REDCAP_API_HEADERS,
    REDCAP_HEADERS,
    dictionary,
)


@pytest.mark.parametrize("headers", [REDCAP_HEADERS, REDCAP_API_HEADERS])
def test_data_dictionary_becomes_a_draft_and_a_report(headers):
    result = Result(dictionary(headers))
    assert [page.title["en"] for page in result.draft.pages] == ["Animals"]
    pet = result.row("pet")
    assert pet["required"] == "yes" and result.options("pet") == ["1", "0"]
    many = result.row("many")
    assert (many["type"], many["relevant"]) == ("integer", "${pet} = '1'")
    assert many["constraint"] == ". >= 0 and . <= 20"
    assert result.row("food")["type"] == "select_multiple food"
    assert result.row("hay")["relevant"] == "selected(${food}, '1') and ${many} > 1"
    assert result.outcome("record_id") == "refused"
    assert result.outcome("photo") == "refused"
    (line,) = result.lines("odd", "rule")
    assert line.outcome == "refused" and "datediff" in line.text


def test_matrix_is_a_grid_with_its_section_header_above():
    extra = ",,,Matrix Group Name"
    choices = '"1, Bad | 2, Good"'
    rows = [
        f"home,pets,How do you feel?,radio,At home,{choices},,,,,,,,,,mood",
        f"school,pets,,radio,At school,{choices},,,,,,,,,,mood",
    ]
    result = Result(dictionary(REDCAP_HEADERS + extra, rows))
    ((grid,),) = [page.blocks for page in result.draft.pages]
    assert grid.is_grid and grid.label == {"en": "How do you feel?"}
    assert [item.name for item in grid.items] == ["home", "school"]


def test_calculation_waits_for_all_answers():
    rows = [
        "a,pets,,text,A?,,,integer,,,,,",
        "b,pets,,text,B?,,,number,,,,,",
        "c,pets,,calc,C,[a] * 2 + [b],,,,,,,",
        'd,pets,,calc,D,"if([a] > 1, 5, 0)",,,,,,,',
        'f,pets,,calc,F,"round([b] / [a]^2, 1)",,,,,,,',
        'e,pets,,calc,E,"sum([a], [b])",,,,,,,',
    ]
    result = Result(dictionary(rows=rows))
    assert result.row("c")["calculation"] == (
        "if(${a} != '' and ${b} != '', ((${a} * 2) + ${b}), '')"
    )
    assert result.row("d")["calculation"] == "if(${a} > 1, 5, 0)"
    assert result.row("f")["calculation"] == (
        "if(${b} != '' and ${a} != '', round((${b} div (${a} * ${a})), 1), '')"
    )
    assert result.outcome("e") == "refused"


def test_missing_cells_of_r_are_blank():
    rows = ["a,pets,NA,text,A?,NA,NA,NA,NA,NA,NA,NA,NA"]
    result = Result(dictionary(REDCAP_API_HEADERS, rows))
    assert result.row("a")["type"] == "text"
    assert result.outcome("a") == "taken"


def test_survey_has_the_name_of_its_file():
    # Dictionaries of two projects may begin with a form of the same name.
    rows = ["a,one,,text,A?,,,,,,,,", "b,two,,text,B?,,,,,,,,"]
    draft = Result(dictionary(rows=rows)).draft
    assert (draft.name, draft.title) == ("pets", {"en": "pets"})
    reading, _report = read_questionnaire(dictionary(rows=rows), "x" * 200)
    assert reading.draft.name == "x" * 64
