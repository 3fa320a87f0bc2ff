"""What a survey on the web cannot be is told by sheet, row, column and reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from survey.definitions.rule_costs import MAX_PAGE_COST, RuleCosts
from survey.simulation import demo
from survey.tests.workbooks import (
    AGREE,
    as_excel_writes_it,
    draft_items,
    form,
    read,
    told,
    workbook,
)
from survey.xlsform import read_xlsform
from survey.xlsform.problems import MOST_TOLD

pytestmark = pytest.mark.once

DEMO = Path(demo.__file__).parent
HEAD = ["type", "name", "label"]


def with_column(header: str, *rows: list[Any]) -> list[list[Any]]:
    """Rows of type, name, label and one further column."""
    return [[*HEAD, header], *rows]


def test_all_problems_are_told_at_once():
    rows = with_column(
        "relevant",
        ["geopoint", "place", "Where?"],
        ["text", "1st", "First?"],
        ["select_one nowhere", "n", "N?"],
        ["rank pets", "r", "R?"],
        ["text", "a", "A?", "${b} ="],
        ["text", "a", "Again?"],
        ["text", "c", "C, ${d}?", "${zzz} = 1"],
        ["text", "p", "P?", "${q} = 1"],
        ["text", "q", "Q?", "${p} = 1"],
        ["begin repeat", "many", "Many"],
        ["image", "i", "I?"],
        ["end repeat"],
        ["end group"],
        ["text", "nolabel"],
        ["begin group", "open", "Open"],
    )
    choices = [*AGREE, ["pets", "cat", "Cat again"], [None, "stray", "Stray"]]
    choices += [["pets", None, "Nameless"]]
    settings = [["form_id", "default_language"], ["x" * 65, "Klingon"]]
    reading = read(rows, choices, settings)
    assert reading.draft is None
    assert told(reading.problems) == [
        ("settings", 2, "default_language"),
        ("settings", 2, "form_id"),
        ("survey", 2, "type"),
        ("survey", 3, "name"),
        ("survey", 4, "type"),
        ("survey", 5, "type"),
        ("survey", 6, "relevant"),
        ("survey", 7, "name"),
        ("survey", 8, "relevant"),
        ("survey", 8, "label"),
        ("survey", 9, "relevant"),
        ("survey", 11, "type"),
        ("survey", 12, "type"),
        ("survey", 14, "type"),
        ("survey", 15, "label"),
        ("survey", 16, "type"),
        ("choices", 6, "name"),
        ("choices", 7, "list_name"),
        ("choices", 8, "name"),
    ]


REFUSED_ROWS = {
    "geopoint": "where people are",
    "geoshape": "where people are",
    "start-geopoint": "where people are",
    "barcode": "scan codes",
    "image": "send files",
    "photo": "send files",
    "audio": "send files",
    "background-audio": "send files",
    "video": "send files",
    "file": "send files",
    "rank pets": "ranking",
    "begin repeat": "repeats",
    "begin loop over pets": "repeats",
    "select_one_from_file pets.csv": "another file",
    "select_multiple_from_file pets.csv": "another file",
    "select_one_external pets": "another file",
    "csv-external": "another file",
    "select_one ${q}": "other answers",
    "select_one": "names no list",
    "select_one pets or_else": "unknown type",
    "select_one birds": "no list 'birds'",
    "telepathy": "unknown type",
    "begin": "unknown type",
}


@pytest.mark.parametrize(("type_", "reason"), REFUSED_ROWS.items())
def test_types_that_the_web_does_not_have_are_refused(type_: str, reason: str):
    rows = [HEAD, ["text", "q", "Q?"], [type_, "x", "X?"]]
    rows += [["end repeat"]] if type_.startswith("begin ") else []
    reading = read(rows)
    assert ("survey", 3, "type") in told(reading.problems)
    problem = next(p for p in reading.problems if p.row == 3)
    assert reason in problem.reason
    assert problem.text == type_


REFUSED_CELLS = [
    ("media::image", "text", "a.png", "cannot be shown"),
    ("audio", "note", "a.mp3", "cannot be shown"),
    ("video::English (en)", "text", "a.mp4", "cannot be shown"),
    ("trigger", "text", "${q}", "wait for another answer"),
    ("calculation", "integer", "1 + 1", "not for integer rows"),
    ("calculation", "text", "1 + 1", "not for text rows"),
    ("choice_filter", "text", "name = 'cat'", "has no options"),
    ("choice_filter", "select_one pets or_other", "name='cat'", "cannot be filtered"),
    ("choice_filter", "select_one pets", "colour = 'red'", "no column colour"),
    ("relevant", "text", "${q} +", "ends too early"),
    ("relevant", "text", "evil('x')", "unknown function"),
    ("relevant", "text", "/data/q = 1", "paths are not supported"),
    ("relevant", "text", r"regex(${q}, '(a)\1')", "regex"),
    ("relevant", "text", "${nobody} = 1", "no item ${nobody}"),
    ("relevant", "text", "${Q} = 1", "did you mean ${q}?"),
    ("relevant", "text", "${note} = 1", "holds no answer"),
    ("relevant", "text", "${began} = 1", "metadata"),
    ("relevant", "text", "${x} = 1", "in a circle"),
    ("relevant", "text", "jr:choice-name(${q}, '${q}') = 'a'", "has no options"),
    ("relevant", "text", "(" * 200 + "1" + ")" * 200, "nested too deeply"),
    ("relevant", "text", "1 + " * 1500 + "1", "at most 4,000 characters"),
    ("constraint", "integer", ". > ", "ends too early"),
    ("required", "text", "maybe", "unknown name"),
    ("read_only", "text", "${q} = 1", "is yes or no"),
    ("default", "integer", "many", "no answer to a integer"),
    ("default", "integer", "1234567890123456", "no answer"),
    ("default", "decimal", "1,5", "no answer"),
    ("default", "date", "31.12.2027", "no answer"),
    ("default", "date", "2027-02-30", "no answer"),
    ("default", "time", "25:00", "no answer"),
    ("default", "dateTime", "2027-01-01", ""),
    ("default", "select_one pets", "bird", "no answer"),
    ("default", "select_multiple pets", "cat bird", "no answer"),
    ("default", "range", "11", "no answer"),
    ("default", "text", "if(${q}", "never closed"),
    ("appearance", "select_one pets", "search('pets')", "another file"),
    ("appearance", "select_one pets", "image-map", "another file"),
    ("appearance", "select_one pets", "label", "no rows"),
    ("parameters", "select_one pets", "randomize=yes", "true or false"),
    ("parameters", "select_one pets", "seed=3", "randomize=true"),
    ("parameters", "select_one pets", "randomize=true seed=x", "whole number"),
    ("parameters", "range", "start=five", "numbers"),
    ("parameters", "range", "start=1e5", "numbers"),
    ("parameters", "range", "start=5 end=5", "less than end"),
    ("parameters", "range", "step=0", "more than zero"),
    ("parameters", "range", "step=-1", "more than zero"),
    ("parameters", "range", "step=100", "wider"),
    ("parameters", "range", "end=999999 step=0.5", "steps"),
    ("parameters", "range", "start", "name=value"),
    ("hint", "text", "As in ${nobody}", "no item"),
    ("guidance_hint", "text", "As in ${q", "never closed"),
]


@pytest.mark.parametrize(("header", "type_", "cell", "reason"), REFUSED_CELLS)
def test_cells_that_cannot_work_are_refused(header, type_, cell, reason):
    rows = with_column(
        header,
        ["start", "began"],
        ["text", "q", "Q?"],
        ["note", "note", "Note"],
        [type_, "x", "X?", cell],
    )
    reading = read(rows)
    if not reason:
        assert draft_items(reading)["x"]
        return
    assert told(reading.problems) == [("survey", 5, header)]
    assert reason in reading.problems[0].reason


@pytest.mark.parametrize(
    "name",
    ["1st", "a b", "a:b", "a$", "-a", "é à", "constructor", "__proto__", "a" * 201],
)
def test_names_that_are_none_are_refused(name: str):
    reading = read([HEAD, ["text", name, "Q?"]])
    assert told(reading.problems) == [("survey", 2, "name")]


def test_an_empty_name_is_refused_but_a_note_needs_none():
    assert told(read([HEAD, ["text", None, "Q?"]]).problems) == [("survey", 2, "name")]
    assert draft_items(read([HEAD, ["note", None, "Hi"], ["text", "a", "A?"]]))


def test_a_name_that_differs_in_case_only_is_warned_of():
    reading = read([HEAD, ["text", "Age", "A?"], ["text", "age", "B?"]])
    assert reading.draft
    assert "exports" in reading.warnings[-1].reason
    assert told(reading.warnings)[-1] == ("survey", 3, "name")


def test_a_name_that_or_other_takes_is_refused():
    rows = [HEAD, ["text", "pet_other", "?"], ["select_one pets or_other", "pet", "P?"]]
    assert told(read(rows).problems) == [("survey", 3, "name")]


def test_each_of_several_circles_is_told():
    rows = with_column(
        "relevant",
        ["text", "a", "A?", "${b} = 1"],
        ["text", "b", "B?", "${a} = 1"],
        ["text", "c", "C?", "${d} = 1"],
        ["text", "d", "D?", "${c} = 1"],
        ["text", "e", "E?"],
    )
    reading = read(rows)
    assert told(reading.problems) == [
        ("survey", 2, "relevant"),
        ("survey", 4, "relevant"),
    ]
    assert "${a} → ${b} → ${a}" in reading.problems[0].reason


def test_a_circle_through_a_group_is_found():
    rows = with_column(
        "relevant",
        ["begin group", "g", "G", "${a} = 1"],
        ["text", "a", "A?"],
        ["end group"],
    )
    assert "in a circle" in read(rows).problems[0].reason


def test_the_relevance_of_a_group_is_judged_in_its_own_row():
    rows = with_column(
        "relevant",
        ["begin group", "g", "G", "${nobody} = 1"],
        ["text", "a", "A?"],
        ["text", "b", "B?"],
        ["end group"],
    )
    assert told(read(rows).problems) == [("survey", 2, "relevant")]


def test_a_grid_has_one_list():
    rows = with_column(
        "appearance",
        ["select_one agree", "head", "Agree?", "label"],
        ["select_one agree", "a", "A.", "list-nolabel"],
        ["select_one pets", "b", "B.", "list-nolabel"],
    )
    assert told(read(rows).problems) == [("survey", 4, "type")]
    rows = with_column(
        "appearance",
        ["begin group", "g", "G", "table-list"],
        ["select_one agree", "a", "A."],
        ["select_one pets", "b", "B."],
        ["end group"],
    )
    assert told(read(rows).problems) == [("survey", 4, "type")]


def test_a_grid_has_one_order_and_no_other():
    head = [*HEAD, "appearance", "parameters", "choice_filter"]
    rows = [
        head,
        ["select_one agree", "head", "Agree?", "label"],
        ["select_one agree", "a", "A.", "list-nolabel", "randomize=true"],
        ["select_one agree", "b", "B.", "list-nolabel", None, "name = '1'"],
        ["select_one agree or_other", "c", "C.", "list-nolabel"],
    ]
    assert {row for _, row, _ in told(read(rows).problems)} == {3, 4, 5}


def test_a_rule_that_reads_a_later_page_is_warned_of():
    rows = [[*HEAD, "relevant"], ["text", "first", "F?", "${q9} = 1"]]
    rows += [["text", f"q{n}", "Q?"] for n in range(12)]
    reading = read(rows)
    assert reading.draft
    assert "later page" in reading.warnings[-1].reason


def test_an_option_that_is_not_there_is_warned_of():
    rows = with_column(
        "relevant",
        ["select_one pets", "pet", "Pet?"],
        ["text", "a", "A?", "${pet} = 'bird' or selected(${pet}, 'fish')"],
        ["text", "b", "B?", "'cat' = ${pet} and ${pet} != ''"],
    )
    reasons = [w.reason for w in read(rows).warnings if w.row == 3]
    assert len(reasons) == 2
    assert not [w for w in read(rows).warnings if w.row == 4]


def test_values_with_spaces_are_for_single_choices_only():
    choices = [*AGREE, ["pets", "guinea pig", "Guinea pig"]]
    assert read([HEAD, ["select_one pets", "a", "A?"]], choices).draft
    several = read([HEAD, ["select_multiple pets", "a", "A?"]], choices)
    assert told(several.problems) == [("survey", 2, "type")]
    assert several.problems[0].text == "guinea pig"


def test_pictures_and_quotes_in_options_are_refused():
    choices = [["list_name", "name", "label", "image"], ["l", "a", "A", "a.png"]]
    choices += [["l", "b", "As ${q} said", None]]
    rows = [HEAD, ["text", "q", "Q?"], ["select_one l", "a", "A?"]]
    assert told(read(rows, choices).problems) == [
        ("choices", 2, "image"),
        ("choices", 3, "label"),
    ]


def test_a_header_that_is_there_twice_is_refused():
    choices = [["list_name", "name", "label", "kind", "kind"], *AGREE[1:]]
    rows = [["type", "name", "label", "hint", "hint"], ["text", "a", "A?"]]
    reading = read_xlsform(as_excel_writes_it(form(rows, choices)))
    assert told(reading.problems) == [("survey", 1, "hint"), ("choices", 1, "kind")]


def test_names_of_javascript_objects_are_no_columns():
    choices = [["list_name", "name", "label", "constructor"], ["l", "a", "A", "x"]]
    rows = [[*HEAD, "choice_filter"], ["select_one l", "a", "A?", "constructor = 'x'"]]
    assert told(read(rows, choices).problems) == [("survey", 2, "choice_filter")]


def test_headers_that_mean_the_same_are_refused():
    rows = [["type", "name", "label", "Label"], ["text", "a", "A?", "B?"]]
    assert told(read(rows).problems) == [("survey", 1, "Label")]
    rows = [["type", "name", "label", "relevant", "Relevance"], ["text", "a", "A?"]]
    assert told(read(rows).problems) == [("survey", 1, "Relevance")]
    rows = [["type", "name", "label::es", "label::Español (es)"], ["text", "a", "A?"]]
    assert ("survey", 1, "label::Español (es)") in told(read(rows).problems)


def test_a_language_without_a_code_is_refused():
    rows = [["type", "name", "label::Elvish"], ["text", "a", "A?"]]
    assert told(read(rows).problems)[0] == ("survey", 1, "label::Elvish")
    assert read(rows).problems[0].text == "Elvish"


def test_missing_columns_and_sheets_are_named():
    reading = read([["kind", "name"], ["text", "a"]])
    assert ("survey", 1, "type") in told(reading.problems)
    reading = read([HEAD, ["text", "a", "A?"]], [["list", "name"], ["x", "y"]])
    assert ("choices", 1, "list_name") in told(reading.problems)
    reading = read_xlsform(workbook({"questions": [HEAD, ["text", "a", "A?"]]}))
    assert "no sheet named survey" in reading.problems[0].reason
    reading = read_xlsform(workbook({"survey": [HEAD, ["text", "a", "A?"]]}))
    assert told(reading.problems) == [("settings", 2, "name")]


def test_a_file_without_form_id_is_named_by_its_file():
    content = workbook({"survey": [HEAD, ["text", "a", "A?"]]})
    assert read_xlsform(content, name="climate").draft.name == "climate"


@pytest.mark.parametrize(
    "rows",
    [
        [HEAD],
        [HEAD, ["note", "n", "Hello"]],
        [[*HEAD, "calculation"], ["calculate", "n", None, "1"]],
        [HEAD, ["begin group", "g", "G"], ["end group"]],
    ],
)
def test_a_survey_that_asks_nothing_is_refused(rows):
    assert read(rows).problems


def test_a_row_of_a_type_that_holds_no_answer_loses_what_is_for_answers():
    rows = with_column("required", ["note", "n", "Hi", "yes"], ["text", "a", "A?"])
    reading = read(rows)
    assert draft_items(reading)["n"].rules == {}
    assert ("survey", 2, "required") in told(reading.warnings)


def test_what_pyxform_alone_refuses_is_a_problem_too(monkeypatch):
    from pyxform.errors import PyXFormError

    from survey.xlsform import pyxform_check

    def refuse(*args: object, **kwargs: object) -> None:
        raise PyXFormError("[row : 2] It looks odd.")

    monkeypatch.setattr(pyxform_check, "workbook_to_json", refuse)
    reading = read([HEAD, ["text", "a", "A?"]])
    assert [str(p) for p in reading.problems] == ["survey, row 2: It looks odd."]

    def crash(*args: object, **kwargs: object) -> None:
        raise KeyError("surprise")

    monkeypatch.setattr(pyxform_check, "workbook_to_json", crash)
    reading = read([HEAD, ["text", "a", "A?"]])
    assert "KeyError" in reading.problems[0].reason


def test_endless_problems_are_counted_not_listed():
    rows = [HEAD, *([f"telepathy{n}", "a", "A?"] for n in range(900))]
    problems = read(rows).problems
    assert len(problems) == MOST_TOLD + 1
    assert problems[-1].reason == f"and {900 + 1 - MOST_TOLD} more"


# --- What a page's rules cost -------------------------------------------------

COUNTED = " + ".join(["count-selected(${t})"] * 170)


def filtered(choice_filter: str, count: int) -> Any:
    rows = with_column(
        "choice_filter",
        ["text", "t", "T?"],
        ["text", "region", "Region?"],
        ["select_multiple many", "q", "Q?", choice_filter],
    )
    head = ["list_name", "name", "label", "region"]
    many = [["many", f"o{n}", f"O{n}", f"r{n % 9}"] for n in range(count)]
    return read(rows, [head, *many])


def test_a_page_whose_rules_take_too_long_is_refused_where_it_is_heaviest():
    reading = filtered(f"{COUNTED} > 0", 1_000)
    assert reading.draft is None
    assert told(reading.problems) == [("survey", 4, "choice_filter")]
    reason = reading.problems[0].reason
    assert "take too long" in reason
    assert f"{MAX_PAGE_COST:,}" in reason
    assert "${q}" in reason


def test_the_same_rule_for_few_options_and_a_usual_one_for_many_are_taken():
    """The twin: it is the options times the nodes that is counted."""
    assert filtered(f"{COUNTED} > 0", 2).draft
    assert filtered("region = ${region}", 1_000).draft


def test_many_large_patterns_on_one_page_are_refused():
    def patterned(count: int) -> Any:
        rule = " and ".join(["regex(., '[ab]*a[ab]{478}')"] * count)
        return read(with_column("constraint", ["text", "a", "A?", rule]))

    assert told(patterned(121).problems) == [("survey", 2, "constraint")]
    assert patterned(1).draft


def test_rules_are_added_up_by_page():
    rule = " or ".join(["count-selected(.) > 3"] * 120)
    rows = [["text", f"q{n}", "Q?", rule] for n in range(4)]
    first = [["begin group", "one", "One"], *rows[:2], ["end group"]]
    second = [["begin group", "two", "Two"], *rows[2:], ["end group"]]
    assert read(with_column("constraint", *first, *second)).draft
    together = [["begin group", "one", "One"], *rows, ["end group"]]
    assert told(read(with_column("constraint", *together)).problems) == [
        ("survey", 3, "constraint")
    ]


@pytest.mark.parametrize("name", ["students", "teachers"])
def test_the_surveys_of_the_demonstration_are_far_from_the_limit(name):
    draft = read_xlsform(DEMO / f"{name}.xlsx").draft
    items = {
        item.name: {"kind": item.kind, "option_set": item.option_set, **item.rules}
        for item in draft.items()
    }
    sets = {
        key: [vars(option) for option in options]
        for key, options in draft.option_sets.items()
    }
    units = [
        sum(RuleCosts(items, sets).of_item(item).values()) for item in items.values()
    ]
    assert 0 < sum(units) < MAX_PAGE_COST / 100
