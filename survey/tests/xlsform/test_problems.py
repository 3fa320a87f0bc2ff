"""Problems of a survey are reported by sheet, row, column and reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from survey.instrument.definitions.rule_costs import MAX_PAGE_COST, RuleCosts
from survey.instrument.xlsform import read_xlsform
from survey.instrument.xlsform.problems import MOST_REPORTED
from survey.simulation import demo
from survey.tests.workbooks import (
    AGREE,
    as_excel_writes_it,
    draft_items,
    form,
    places,
    read,
    workbook,
)

DEMO = Path(demo.__file__).parent
HEAD = ["type", "name", "label"]


def with_column(header: str, *rows: list[Any]) -> list[list[Any]]:
    """Make rows of type, name, label and one further column."""
    return [[*HEAD, header], *rows]


def test_all_problems_are_reported_at_once():
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
    settings = [["form_id", "default_language"], ["x" * 65, "Elvish"]]
    reading = read(rows, choices, settings)
    assert reading.draft is None
    assert places(reading.problems) == [
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
    assert ("settings", 2, "default_language") in places(reading.warnings)


REFUSED_ROWS = {
    "geopoint": "where people are",
    "geoshape": "where people are",
    "start-geopoint": "where people are",
    "barcode": "scan codes",
    "cascading_select places": "choice_filter",
    "cascading select places": "choice_filter",
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
def test_type_without_a_web_equivalent_is_refused(type_: str, reason: str):
    rows = [HEAD, ["text", "q", "Q?"], [type_, "x", "X?"]]
    rows += [["end repeat"]] if type_.startswith("begin ") else []
    reading = read(rows)
    assert ("survey", 3, "type") in places(reading.problems)
    problem = next(p for p in reading.problems if p.row == 3)
    assert reason in problem.reason
    assert problem.text == type_


REFUSED_CELLS = [
    ("media::image", "text", "a.png", "cannot be shown"),
    ("audio", "note", "a.mp3", "cannot be shown"),
    ("video::English (en)", "text", "a.mp4", "cannot be shown"),
    ("trigger", "text", "${q}", "wait for another answer"),
    ("choice_filter", "text", "name = 'cat'", "has no options"),
    ("choice_filter", "select_one pets or_other", "name='cat'", "cannot be filtered"),
    ("choice_filter", "select_one pets", "colour = 'red'", "no column colour"),
    ("relevant", "text", "${q} +", "ends too early"),
    ("relevant", "text", "evil('x')", "unknown function"),
    ("relevant", "text", "/data/zz = 1", "no question at the path /data/zz"),
    ("relevant", "text", "${q}/note = 1", "paths are not supported"),
    ("relevant", "text", r"regex(${q}, '(a)\1')", "regex"),
    ("relevant", "text", "${nobody} = 1", "no item ${nobody}"),
    ("relevant", "text", "${Q} = 1", "did you mean ${q}?"),
    ("relevant", "text", "${note} = 1", "has no answer"),
    ("relevant", "text", "now() - ${began} > 1", "metadata"),
    ("relevant", "text", "${x} = 1", "depends on itself"),
    ("relevant", "text", "jr:choice-name(${q}, '${q}') = 'a'", "has no options"),
    ("relevant", "text", "(" * 200 + "1" + ")" * 200, "nested too deeply"),
    ("relevant", "text", "1 + " * 1500 + "1", "at most 4,000 characters"),
    ("constraint", "integer", ". > ", "ends too early"),
    ("required", "text", "maybe", "unknown name"),
    ("read_only", "text", "${q} = 1", "is yes or no"),
    ("default", "integer", "many", "not an answer to an item of type integer"),
    ("default", "integer", "1234567890123456", "not an answer"),
    ("default", "decimal", "1,5", "not an answer"),
    ("default", "date", "31.12.2027", "not an answer"),
    ("default", "date", "2027-02-30", "not an answer"),
    ("default", "time", "25:00", "not an answer"),
    ("default", "dateTime", "2027-01-01", ""),
    ("default", "select_one pets", "bird", "not an answer"),
    ("default", "select_multiple pets", "cat bird", "not an answer"),
    ("default", "range", "11", "not an answer"),
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
def test_invalid_cell_is_refused(header, type_, cell, reason):
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
    assert places(reading.problems) == [("survey", 5, header)]
    assert reason in reading.problems[0].reason


@pytest.mark.parametrize(
    "name",
    ["1st", "a b", "a:b", "a$", "-a", "é à", "constructor", "__proto__", "a" * 201],
)
def test_invalid_name_is_refused(name: str):
    reading = read([HEAD, ["text", name, "Q?"]])
    assert places(reading.problems) == [("survey", 2, "name")]


def test_empty_name_is_refused_except_for_notes():
    assert places(read([HEAD, ["text", None, "Q?"]]).problems) == [
        ("survey", 2, "name")
    ]
    assert draft_items(read([HEAD, ["note", None, "Hi"], ["text", "a", "A?"]]))


def test_names_that_differ_only_in_case_give_a_warning():
    reading = read([HEAD, ["text", "Age", "A?"], ["text", "age", "B?"]])
    assert reading.draft
    assert "exports" in reading.warnings[-1].reason
    assert places(reading.warnings)[-1] == ("survey", 3, "name")


def test_name_that_or_other_needs_is_refused():
    rows = [HEAD, ["text", "pet_other", "?"], ["select_one pets or_other", "pet", "P?"]]
    assert places(read(rows).problems) == [("survey", 3, "name")]


def test_each_of_several_circles_is_reported():
    rows = with_column(
        "relevant",
        ["text", "a", "A?", "${b} = 1"],
        ["text", "b", "B?", "${a} = 1"],
        ["text", "c", "C?", "${d} = 1"],
        ["text", "d", "D?", "${c} = 1"],
        ["text", "e", "E?"],
    )
    reading = read(rows)
    assert places(reading.problems) == [
        ("survey", 2, "relevant"),
        ("survey", 4, "relevant"),
    ]
    assert "${a} → ${b} → ${a}" in reading.problems[0].reason


def test_circle_through_a_group_is_reported():
    rows = with_column(
        "relevant",
        ["begin group", "g", "G", "${a} = 1"],
        ["text", "a", "A?"],
        ["end group"],
    )
    assert "depends on itself" in read(rows).problems[0].reason


def test_rule_of_a_group_is_reported_at_the_group():
    rows = with_column(
        "relevant",
        ["begin group", "g", "G", "${nobody} = 1"],
        ["text", "a", "A?"],
        ["text", "b", "B?"],
        ["end group"],
    )
    assert places(read(rows).problems) == [("survey", 2, "relevant")]


def test_rows_of_a_grid_must_share_one_list():
    rows = with_column(
        "appearance",
        ["select_one agree", "head", "Agree?", "label"],
        ["select_one agree", "a", "A.", "list-nolabel"],
        ["select_one pets", "b", "B.", "list-nolabel"],
    )
    assert places(read(rows).problems) == [("survey", 4, "type")]
    rows = with_column(
        "appearance",
        ["begin group", "g", "G", "table-list"],
        ["select_one agree", "a", "A."],
        ["select_one pets", "b", "B."],
        ["end group"],
    )
    assert places(read(rows).problems) == [("survey", 4, "type")]


def test_grid_cannot_have_random_order_filter_or_other():
    head = [*HEAD, "appearance", "parameters", "choice_filter"]
    rows = [
        head,
        ["select_one agree", "head", "Agree?", "label"],
        ["select_one agree", "a", "A.", "list-nolabel", "randomize=true"],
        ["select_one agree", "b", "B.", "list-nolabel", None, "name = '1'"],
        ["select_one agree or_other", "c", "C.", "list-nolabel"],
    ]
    assert {row for _, row, _ in places(read(rows).problems)} == {3, 4, 5}


def test_rule_that_reads_a_later_page_gives_a_warning():
    rows = [[*HEAD, "relevant"], ["text", "first", "F?", "${q9} = 1"]]
    rows += [["text", f"q{n}", "Q?"] for n in range(12)]
    reading = read(rows)
    assert reading.draft
    assert "later page" in reading.warnings[-1].reason


def test_comparison_with_a_missing_option_gives_a_warning():
    rows = with_column(
        "relevant",
        ["select_one pets", "pet", "Pet?"],
        ["text", "a", "A?", "${pet} = 'bird' or selected(${pet}, 'fish')"],
        ["text", "b", "B?", "'cat' = ${pet} and ${pet} != ''"],
    )
    reasons = [w.reason for w in read(rows).warnings if w.row == 3]
    assert len(reasons) == 2
    assert not [w for w in read(rows).warnings if w.row == 4]


def test_values_with_spaces_are_refused_for_multiple_choices():
    choices = [*AGREE, ["pets", "guinea pig", "Guinea pig"]]
    assert read([HEAD, ["select_one pets", "a", "A?"]], choices).draft
    several = read([HEAD, ["select_multiple pets", "a", "A?"]], choices)
    assert places(several.problems) == [("survey", 2, "type")]
    assert several.problems[0].text == "guinea pig"


def test_pictures_in_options_are_refused():
    choices = [["list_name", "name", "label", "image"], ["l", "a", "A", "a.png"]]
    rows = [HEAD, ["select_one l", "a", "A?"]]
    assert places(read(rows, choices).problems) == [("choices", 2, "image")]


def test_label_of_an_option_that_cannot_be_filled_is_refused_by_cell():
    english, spanish = "label::English (en)", "label::Español (es)"
    choices = [
        ["list_name", "name", english, spanish],
        ["l", "a", "As ${who} said", "Como dijo ${whom}"],
        ["l", "b", "See ${hello}", "Vea"],
        ["l", "c", "At ${started}", "A las"],
        ["l", "d", "Of ${who", "De"],
    ]
    rows = [
        ["type", "name", english, spanish],
        ["text", "who", "Who?", "¿Quién?"],
        ["note", "hello", "Hello", "Hola"],
        ["start", "started"],
        ["select_one l", "q", "Q?", "¿Q?"],
    ]
    problems = read(rows, choices).problems
    columns = [spanish, english, english, english]
    assert places(problems) == [
        ("choices", row, column) for row, column in enumerate(columns, 2)
    ]
    assert [problem.text for problem in problems] == [
        "Como dijo ${whom}",
        "See ${hello}",
        "At ${started}",
        "Of ${who",
    ]
    reasons = [problem.reason for problem in problems]
    assert reasons[0] == "there is no item ${whom}; did you mean ${who}?"
    assert reasons[1] == "${hello} is a note, which has no answer"
    assert "it has no answer" in reasons[2]
    assert reasons[3] == "a ${ is never closed"


def test_rule_that_reads_labels_that_quote_it_is_refused():
    choices = [["list_name", "name", "label"], ["l", "a", "Not ${said}"]]
    rows = [
        ["type", "name", "label", "calculation"],
        ["select_one l", "q", "Q?", None],
        ["calculate", "said", None, "jr:choice-name(${q}, '${q}')"],
    ]
    [problem] = read(rows, choices).problems
    assert (problem.row, problem.column) == (3, "calculation")
    assert problem.reason == "depends on itself: ${said} → ${said}"


def test_repeated_header_is_refused():
    choices = [["list_name", "name", "label", "kind", "kind"], *AGREE[1:]]
    rows = [["type", "name", "label", "hint", "hint"], ["text", "a", "A?"]]
    reading = read_xlsform(as_excel_writes_it(form(rows, choices)))
    assert places(reading.problems) == [("survey", 1, "hint"), ("choices", 1, "kind")]


def test_names_of_javascript_attributes_are_not_columns():
    choices = [["list_name", "name", "label", "constructor"], ["l", "a", "A", "x"]]
    rows = [[*HEAD, "choice_filter"], ["select_one l", "a", "A?", "constructor = 'x'"]]
    assert places(read(rows, choices).problems) == [("survey", 2, "choice_filter")]


def test_headers_that_mean_the_same_are_refused():
    rows = [["type", "name", "label", "Label"], ["text", "a", "A?", "B?"]]
    assert places(read(rows).problems) == [("survey", 1, "Label")]
    rows = [["type", "name", "label", "relevant", "Relevance"], ["text", "a", "A?"]]
    assert places(read(rows).problems) == [("survey", 1, "Relevance")]
    rows = [["type", "name", "label::es", "label::Español (es)"], ["text", "a", "A?"]]
    assert ("survey", 1, "label::Español (es)") in places(read(rows).problems)


def test_missing_columns_and_sheets_are_named():
    reading = read([["kind", "name"], ["text", "a"]])
    assert ("survey", 1, "type") in places(reading.problems)
    reading = read([HEAD, ["text", "a", "A?"]], [["list", "name"], ["x", "y"]])
    assert ("choices", 1, "list_name") in places(reading.problems)
    reading = read_xlsform(workbook({"questions": [HEAD, ["text", "a", "A?"]]}))
    assert "no sheet named survey" in reading.problems[0].reason
    reading = read_xlsform(workbook({"survey": [HEAD, ["text", "a", "A?"]]}))
    assert places(reading.problems) == [("settings", 2, "name")]


def test_survey_without_form_id_is_named_after_its_file():
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
def test_survey_without_questions_is_refused(rows):
    assert read(rows).problems


def test_columns_for_answers_are_ignored_on_rows_without_answers():
    rows = with_column("required", ["note", "n", "Hi", "yes"], ["text", "a", "A?"])
    reading = read(rows)
    assert draft_items(reading)["n"].rules == {}
    assert ("survey", 2, "required") in places(reading.warnings)


def test_problem_that_only_pyxform_finds_is_reported(monkeypatch):
    from pyxform.errors import PyXFormError

    from survey.instrument.xlsform import pyxform_check

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


def test_only_the_first_problems_are_listed_and_the_others_counted():
    rows = [HEAD, *([f"telepathy{n}", "a", "A?"] for n in range(900))]
    problems = read(rows).problems
    assert len(problems) == MOST_REPORTED + 1
    assert problems[-1].reason == f"and {900 + 1 - MOST_REPORTED} more"


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


def test_too_much_work_on_a_page_is_reported_at_its_heaviest_rule():
    reading = filtered(f"{COUNTED} > 0", 1_000)
    assert reading.draft is None
    assert places(reading.problems) == [("survey", 4, "choice_filter")]
    reason = reading.problems[0].reason
    assert "take too long" in reason
    assert f"{MAX_PAGE_COST:,}" in reason
    assert "${q}" in reason


def test_heavy_rule_for_few_options_and_light_rule_for_many_are_accepted():
    """The twin: options are multiplied by the size of the rule."""
    assert filtered(f"{COUNTED} > 0", 2).draft
    assert filtered("region = ${region}", 1_000).draft


def test_many_large_patterns_on_one_page_are_refused():
    def patterned(count: int) -> Any:
        rule = " and ".join(["regex(., '[ab]*a[ab]{478}')"] * count)
        return read(with_column("constraint", ["text", "a", "A?", rule]))

    assert places(patterned(121).problems) == [("survey", 2, "constraint")]
    assert patterned(1).draft


def test_work_is_added_up_per_page():
    rule = " or ".join(["count-selected(.) > 3"] * 120)
    rows = [["text", f"q{n}", "Q?", rule] for n in range(4)]
    first = [["begin group", "one", "One"], *rows[:2], ["end group"]]
    second = [["begin group", "two", "Two"], *rows[2:], ["end group"]]
    assert read(with_column("constraint", *first, *second)).draft
    together = [["begin group", "one", "One"], *rows, ["end group"]]
    assert places(read(with_column("constraint", *together)).problems) == [
        ("survey", 3, "constraint")
    ]


@pytest.mark.parametrize("name", ["students", "teachers"])
def test_demo_surveys_need_a_tenth_of_the_work_allowed(name):
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
