"""Reading any workbook ends with a draft or with reasons."""

from __future__ import annotations

import io
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openpyxl import Workbook
from pyxform.xls2json import workbook_to_json
from pyxform.xls2json_backends import DefinitionData, xlsx_to_dict

from survey.instrument.definitions.rule_dependencies import (
    evaluation_order,
    local_rules,
)
from survey.instrument.xlsform import Reading, read_xlsform
from survey.tests.workbooks import as_excel_writes_it, draft_items, saved
from survey.tests.xlsform.test_import_survey import (
    CHOICES,
    KEYS,
    SETTINGS,
    SURVEY,
    climate,
)

WHOLE = {
    "survey": [
        [row.get(key) for key in KEYS] if isinstance(row, dict) else row
        for row in SURVEY
    ],
    "choices": CHOICES,
    "settings": SETTINGS,
}
NASTY = (
    "type|name|label|begin group|end group|begin repeat|select_one agree|rank agree|"
    "select_one ${x}|select_multiple places or_other|or_other|calculate|note|text|"
    "range|field-list|table-list|label|list-nolabel|minimal|yes|no|true()|${grade}|${|"
    "}|${ }|. > 3|.|..|grade|new|agree|other|name|constructor|__proto__|1|0|-1|1e9|"
    "=1+1|#REF!|start=1 end=5|start=|randomize=true|::|label::|:|jr:|jr:count|"
    "bind::jr:|media::image|label::Elvish|label::xx (yy)|'|\"|(|)|((((((|not(|"
    "selected(${new}, 'a')|_x0000_|today()|now()|${double} + 1|if(|[|regex(., '(')|"
    "last-saved#grade|/data/grade|default_language|form_id|version|image|disabled|"
    "trigger|parameters|\t"
)
WORDS = st.sampled_from(NASTY.split("|"))
CELLS = st.one_of(
    WORDS,
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.dates(),
    st.datetimes(),
    st.times(),
    st.text(
        st.characters(
            exclude_categories=("Cs",),
            exclude_characters="".join(map(chr, range(32))) + "\ufffe\uffff",
        ),
        max_size=40,
    ),
)
SHEET = st.sampled_from(sorted(WHOLE))


@st.composite
def workbooks(draw: st.DrawFn) -> bytes:
    """Change some cells and rows of the complete survey."""
    sheets = {title: [list(row) for row in rows] for title, rows in WHOLE.items()}
    for _ in range(draw(st.integers(1, 6))):
        rows = sheets[draw(SHEET)]
        at = draw(st.integers(0, len(rows) - 1))
        change = draw(st.sampled_from(["cell", "cell", "cell", "drop", "twice", "row"]))
        if change == "cell" and rows[at]:
            rows[at][draw(st.integers(0, len(rows[at]) - 1))] = draw(CELLS)
        elif change == "drop" and len(rows) > 1:
            del rows[at]
        elif change == "twice":
            rows.insert(draw(st.integers(0, len(rows))), list(rows[at]))
        else:
            rows.insert(at, draw(st.lists(CELLS, max_size=8)))
    return book_of(sheets)


def book_of(sheets: dict[str, list[list[Any]]]) -> bytes:
    book = Workbook()
    book.remove(book.active)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    return saved(book)


def check(reading: Reading) -> None:
    assert (reading.draft is None) == bool(reading.problems)
    for problem in (*reading.problems, *reading.warnings):
        assert problem.reason
        assert str(problem).isprintable()
    if reading.draft is None:
        return
    items = draft_items(reading)
    assert len(items) == sum(1 for _ in reading.draft.items())
    languages = [language["code"] for language in reading.draft.languages]
    assert len(set(languages)) == len(languages)
    rules = {name: {"kind": item.kind, **item.rules} for name, item in items.items()}
    assert sorted(evaluation_order(rules)) == sorted(items)
    for page in reading.draft.pages:
        on_page = {item.name: rules[item.name] for item in page.items()}
        assert any(item.is_shown for item in page.items())
        for item in on_page.values():
            local_rules(item, on_page)
    for item in items.values():
        assert bool(item.option_set) == item.kind.startswith("select_")
        assert not item.option_set or reading.draft.option_sets[item.option_set]
        assert not item.label or languages[0] in item.label


@given(workbooks())
@settings(
    max_examples=80,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.large_base_example],
)
def test_changed_survey_is_read_or_refused(content: bytes):
    check(read_xlsform(content))


@given(
    st.dictionaries(
        st.sampled_from(["survey", "choices", "settings", "_x", "Sheet"]),
        st.lists(st.lists(CELLS, max_size=6), max_size=8),
        min_size=1,
    )
)
@settings(max_examples=60)
def test_random_sheets_are_read_or_refused(sheets: dict[str, list[list[Any]]]):
    check(read_xlsform(book_of(sheets), name="any"))


@given(st.data())
@settings(max_examples=60)
def test_damaged_file_is_read_or_refused(data: st.DataObject):
    content = bytearray(DAMAGED)
    for _ in range(data.draw(st.integers(1, 8))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at] = data.draw(st.integers(0, 255))
    check(read_xlsform(bytes(content)))


DAMAGED = as_excel_writes_it(climate())


def test_pyxform_reads_the_same_items():
    reading = read_xlsform(climate())
    tree = workbook_to_json(DefinitionData(**xlsx_to_dict(io.BytesIO(climate()))))
    names: set[str] = set()
    waiting = list(tree["children"])
    while waiting:
        node = waiting.pop()
        waiting += node.get("children", [])
        if node["type"] != "group":
            names.add(node["name"])
    added_by_pyxform = {name for name in names if name.startswith(("reserved", "gen"))}
    metadata, heading = {"began", "instanceID"}, {"head"}
    assert names - added_by_pyxform - metadata - heading == {
        name for name in draft_items(reading) if not name.startswith("generated")
    }
