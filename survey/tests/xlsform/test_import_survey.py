"""Import a complete survey file, then each element of one."""

from __future__ import annotations

import datetime
import io
import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from openpyxl import Workbook

from survey.instrument.definitions.publishing import compile_definition
from survey.instrument.xlsform import SurveyIsPublished, import_survey, read_xlsform
from survey.models import Item, Option, OptionSet, Page, Survey
from survey.simulation import demo
from survey.tests.workbooks import AGREE, draft_items, form, places, read, saved

DEMO = Path(demo.__file__).parent

# Every feature once, in three languages, one of which is written from the
# right, with the spellings of several decades.
SURVEY = [
    [
        "Type",
        "name",
        "label::English (en)",
        "label::Español (es)",
        "label::العربية (ar)",
        "hint::English (en)",
        "guidance_hint::English (en)",
        "required",
        "Required Message::English (en)",
        "bind:relevant",
        "constraint",
        "constraint_message::English (en)",
        "calculation",
        "choice_filter",
        "appearance",
        "default",
        "read_only",
        "parameters",
        "notes to self",
    ],
    ["start", "began"],
    ["note", None, "Welcome", "Hola", "أهلا"],
    {"type": "integer", "name": "grade", "label": "Your grade?", "required": "yes",
     "required_message": "We need it", "constraint": ". >= 4 and . <= 12",
     "constraint_message": "4 to 12"},
    {"type": "select_one yes_no", "name": "new", "label": "New here?"},
    {"type": "text", "name": "from", "label": "From where?",
     "relevant": "${new} = 'yes'", "appearance": "multiline"},
    {"type": "select all that apply from places or_other", "name": "liked",
     "label": "Which places do you like?", "hint": "Several",
     "guidance": "Think of this week"},
    {"type": "decimal", "name": "km", "label": "How far, in km?"},
    {"type": "date", "name": "day", "label": "Which day?", "default": "today()"},
    {"type": "begin group", "name": "belonging", "label": "Belonging",
     "appearance": "field-list", "relevant": "${grade} > 5"},
    {"type": "select_one agree", "name": "head", "label": "How much do you agree?",
     "appearance": "label"},
    {"type": "select_one agree", "name": "safe", "label": "I feel safe.",
     "appearance": "list-nolabel", "required": "true()"},
    {"type": "select1 agree", "name": "known", "label": "I am known.",
     "appearance": "list-nolabel"},
    {"type": "begin_group", "name": "inner", "label": "More",
     "relevant": "${new} = 'no'"},
    {"type": "text", "name": "why", "label": "Why, if you are in grade ${grade}?",
     "relevant": "${safe} = '1'"},
    {"type": "end_group"},
    {"type": "end group"},
    {"type": "begin group", "name": "table", "label": "How often?",
     "appearance": "table-list"},
    {"type": "select_one often", "name": "reads", "label": "I read."},
    {"type": "select_one often", "name": "runs", "label": "I run."},
    {"type": "end group"},
    {"type": "begin group", "name": "section", "label": "Places"},
    {"type": "begin group", "name": "where", "appearance": "field-list"},
    {"type": "select_one region", "name": "region", "label": "Region?",
     "appearance": "minimal"},
    {"type": "select_one town", "name": "town", "label": "Town?",
     "choice_filter": "region = ${region}", "parameters": "randomize=true seed=7"},
    {"type": "end group"},
    {"type": "begin group", "name": "rest", "label": "The rest",
     "appearance": "field-list"},
    {"type": "range", "name": "mood", "label": "Mood?",
     "parameters": "start=0 end=10 step=0.5"},
    {"type": "time", "name": "up", "label": "When do you get up?"},
    {"type": "dateTime", "name": "met", "label": "When did we meet?"},
    {"type": "select_one agree", "name": "last", "label": "I would come again.",
     "appearance": "likert", "default": 2},
    {"type": "acknowledge", "name": "honest", "label": "I was honest."},
    {"type": "hidden", "name": "cohort", "default": "2027"},
    {"type": "calculate", "name": "double", "calculation": "${grade} * 2"},
    {"type": "text", "name": "shown", "label": "Twice your grade",
     "calculation": "${double}", "read_only": "yes"},
    {"type": "end group"},
    {"type": "end group"},
]  # fmt: skip
KEYS = [
    "type", "name", "label", "es", "ar", "hint", "guidance", "required",
    "required_message", "relevant", "constraint", "constraint_message",
    "calculation", "choice_filter", "appearance", "default", "read_only",
    "parameters",
]  # fmt: skip
CHOICES = [
    ["list name", "value", "label::English (en)", "label::Español (es)", "region"],
    ["yes_no", "yes", "Yes", "Sí"],
    ["yes_no", "no", "No", "No"],
    ["agree", 1.0, "Disagree", "No"],
    ["agree", 2, "Agree", "Sí"],
    ["often", "1", "Seldom", "Poco"],
    ["often", "2", "Often", "Mucho"],
    ["places", "yard", "Yard", "Patio"],
    ["places", "hall", "Hall", "Pasillo"],
    ["region", "n", "North", "Norte"],
    ["region", "s", "South", "Sur"],
    ["town", "a", "Ada", "Ada", "n"],
    ["town", "b", "Bea", "Bea", "s"],
]
SETTINGS = [
    ["form_title", "form_id", "version", "default_language", "style"],
    ["School climate", "climate", 2027.1, "English (en)", "pages"],
]


def climate() -> bytes:
    rows = [
        [row.get(key) for key in KEYS] if isinstance(row, dict) else row
        for row in SURVEY
    ]
    book = Workbook()
    for title, cells in (
        ("Survey", rows),
        ("CHOICES", CHOICES),
        ("settings", SETTINGS),
        ("_draft", [["not", "read"]]),
        ("Summary", [["read", "by people"]]),
    ):
        sheet = book.create_sheet(title)
        for row in cells:
            sheet.append(row)
    book.remove(book["Sheet"])
    return saved(book)


@pytest.mark.django_db
def test_complete_file_becomes_pages_blocks_and_items():
    reading = read_xlsform(climate())
    assert [str(problem) for problem in reading.problems] == []
    survey = import_survey(
        draft=reading.draft, source_name="climate.xlsx", source=reading.source
    )

    assert (survey.name, survey.version) == ("climate", "2027.1")
    assert survey.title == {"en": "School climate"}
    assert [(row["code"], row["direction"]) for row in survey.languages] == [
        ("en", "ltr"),
        ("es", "ltr"),
        ("ar", "rtl"),
    ]
    pages = {
        page.name: [
            (block.label.get("en"), block.is_grid, [i.name for i in block.items.all()])
            for block in page.blocks.all()
        ]
        for page in survey.pages.all()
    }
    assert pages == {
        "page_1": [
            (
                None,
                False,
                ["generated_note_name_3", "grade", "new", "from", "liked"]
                + ["liked_other", "km"],
            )
        ],
        "page_2": [(None, False, ["day"])],
        "belonging": [
            ("How much do you agree?", True, ["safe", "known"]),
            ("More", False, ["why"]),
        ],
        "table": [("How often?", True, ["reads", "runs"])],
        "where": [(None, False, ["region", "town"])],
        "rest": [
            (None, False, ["mood", "up", "met", "last", "honest", "shown"]),
            (None, False, ["cohort", "double"]),
        ],
    }
    titles = {page.name: page.title.get("en") for page in survey.pages.all()}
    assert titles["belonging"] == "Belonging"
    assert titles["where"] == "Places"
    assert titles["rest"] == "The rest"
    assert bytes(survey.source) == reading.source


@pytest.mark.django_db
def test_rules_of_the_complete_file_are_compiled():
    reading = read_xlsform(climate())
    rules = {name: item.rules for name, item in draft_items(reading).items()}
    grade = ["$", "grade"]
    assert rules["grade"] == {
        "required": True,
        "required_message": {"en": "We need it"},
        "constraint": ["and", [">=", grade, 4], ["<=", grade, 12]],
        "constraint_message": {"en": "4 to 12"},
    }
    assert rules["why"]["relevant"] == [
        "and",
        ["and", [">", grade, 5], ["=", ["$", "new"], "no"]],
        ["=", ["$", "safe"], "1"],
    ]
    assert rules["liked_other"]["relevant"] == ["selected", ["$", "liked"], "other"]
    assert rules["town"] == {
        "choice_filter": ["=", ["col", "region"], ["$", "region"]],
        "randomize": True,
        "seed": 7,
    }
    assert rules["region"] == {"appearance": ["minimal"]}
    assert rules["from"]["appearance"] == ["multiline"]
    assert rules["mood"] == {"range": {"start": "0", "end": "10", "step": "0.5"}}
    assert rules["day"] == {"default_expression": ["today"]}
    assert rules["last"] == {"appearance": ["likert"], "default": "2"}
    assert rules["cohort"] == {"default": "2027"}
    assert rules["shown"] == {"calculation": ["$", "double"], "read_only": True}


def test_dropped_rows_columns_and_sheets_give_warnings():
    warnings = {(w.sheet, w.row, w.column): w for w in read_xlsform(climate()).warnings}
    assert "not collected: dropped" in warnings["survey", 2, "Type"].reason
    assert warnings["survey", 2, "Type"].text == "start"
    assert "unknown column" in warnings["survey", 1, "notes to self"].reason
    assert "not a sheet" in warnings["Summary", None, ""].reason
    missing = [w.reason for w in warnings.values() if "translation" in w.reason]
    assert any("no Arabic translation" in reason for reason in missing)
    assert not any(w.sheet == "_draft" for w in warnings.values())


def test_or_other_adds_an_option_to_that_question_only():
    reading = read(
        [
            ["type", "name", "label"],
            ["select_one pets or_other", "pet", "Pet?"],
            ["select_one pets", "old_pet", "Earlier pet?"],
        ],
        settings=[["form_id", "default_language"], ["pets", "Español (es)"]],
    )
    items = draft_items(reading)
    sets = reading.draft.option_sets
    assert [o.value for o in sets[items["pet"].option_set]] == ["cat", "dog", "other"]
    assert [o.value for o in sets[items["old_pet"].option_set]] == ["cat", "dog"]
    assert sets[items["pet"].option_set][2].label == {"es": "Otro"}
    assert items["pet_other"].kind == "text"
    # Neither "especifica" (tú) nor "especifique" (usted).
    assert items["pet_other"].label == {"es": "Especificar"}


def test_list_with_its_own_other_keeps_it():
    choices = [*AGREE, ["pets", "other", "Something else"]]
    reading = read(
        [["type", "name", "label"], ["select_one pets or_other", "pet", "Pet?"]],
        choices,
    )
    options = reading.draft.option_sets[draft_items(reading)["pet"].option_set]
    assert [o.label for o in options][-1] == {"en": "Something else"}


@pytest.mark.parametrize(
    ("spelling", "kind"),
    [
        ("text", "text"),
        ("string", "text"),
        ("add text prompt", "text"),
        ("Integer", "integer"),
        ("int", "integer"),
        ("q int", "integer"),
        ("decimal", "decimal"),
        ("range", "range"),
        ("date", "date"),
        ("time", "time"),
        ("dateTime", "datetime"),
        ("datetime", "datetime"),
        ("q date time", "datetime"),
        ("note", "note"),
        ("hidden", "hidden"),
        ("acknowledge", "acknowledge"),
        ("trigger", "acknowledge"),
        ("select_one pets", "select_one"),
        ("Select_One pets", "select_one"),
        ("select one pets", "select_one"),
        ("select1 pets", "select_one"),
        ("select one from pets", "select_one"),
        ("add select one prompt using pets", "select_one"),
        ("select_multiple pets", "select_multiple"),
        ("select all that apply from pets", "select_multiple"),
        ("select all that apply pets", "select_multiple"),
        ("add select multiple prompt using pets", "select_multiple"),
    ],
)
def test_every_spelling_of_a_type_is_read(spelling: str, kind: str):
    rows = [["type", "name", "label"], [spelling, "a", "A?"], ["text", "b", "B?"]]
    assert draft_items(read(rows))["a"].kind == kind


@pytest.mark.parametrize(
    "header",
    [
        "relevant",
        "Relevance",
        "bind:relevant",
        "bind::relevant",
        "BIND::Relevant",
        "bind : relevant",
    ],
)
def test_every_spelling_of_a_column_is_read(header: str):
    # A double colon elsewhere must not make a single one mean nothing.
    rows = [
        ["command", "tag", "caption::English (en)", header],
        ["text", "a", "A?", None],
        ["text", "b", "B?", "${a} = '1'"],
    ]
    assert draft_items(read(rows))["b"].rules == {"relevant": ["=", ["$", "a"], "1"]}


@pytest.mark.parametrize(
    ("header", "code", "name", "direction"),
    [
        ("label::Español (es)", "es", "Español", "ltr"),
        ("label::es", "es", "español", "ltr"),
        ("label::Spanish", "es", "Spanish", "ltr"),
        ("label:Arabic (ar)", "ar", "Arabic", "rtl"),
        ("label::اردو (ur)", "ur", "اردو", "rtl"),
        ("label::Roman Urdu (ur-Latn)", "ur-Latn", "Roman Urdu", "ltr"),
        ("label::Uzbek (uz_arab)", "uz-Arab", "Uzbek", "rtl"),
        ("label::Hmong (hmn)", "hmn", "Hmong", "ltr"),
        ("label::Português (pt-br)", "pt-BR", "Português", "ltr"),
    ],
)
def test_languages_have_codes_and_directions(header, code, name, direction):
    reading = read(
        [["type", "name", header], ["text", "a", "…?"]],
        settings=[["form_id", "version"], ["one", "1"]],
    )
    assert reading.draft.languages == [
        {"code": code, "name": name, "direction": direction}
    ]
    assert draft_items(reading)["a"].label == {code: "…?"}


def test_texts_without_a_language_are_in_the_default_language():
    rows = [
        ["type", "name", "label", "label::English (en)"],
        ["text", "a", "¿A?", "A?"],
        ["text", "b", "¿B?", None],
    ]
    reading = read(
        rows, settings=[["form_id", "version", "default_language"], ["f", "1", "es"]]
    )
    assert [language["code"] for language in reading.draft.languages] == ["es", "en"]
    items = draft_items(reading)
    assert items["a"].label == {"es": "¿A?", "en": "A?"}
    assert items["b"].label == {"es": "¿B?"}
    assert any(
        "row 3 has no English translation" in warning.reason
        for warning in reading.warnings
    )


def test_lists_that_no_question_uses_need_no_translation():
    head = ["list_name", "name", "label::English (en)", "label::Spanish (es)"]
    choices = [head, ["pets", "cat", "Cat", None], ["spare", "x", "Spare", None]]
    rows = [["type", "name", *head[2:]], ["select_one pets", "a", "A?", "¿A?"]]
    missing = [
        (warning.sheet, warning.row)
        for warning in read(rows, choices).warnings
        if "translation" in warning.reason
    ]
    assert missing == [("choices", 2)]


def test_text_without_the_default_language_is_shown_in_another():
    rows = [
        ["type", "name", "label::English (en)", "label::Español (es)"],
        ["text", "a", None, "¿A?"],
    ]
    assert draft_items(read(rows))["a"].label == {"en": "¿A?", "es": "¿A?"}


def loose(count: int) -> list[list[str]]:
    return [["text", f"q{n}", f"Question {n}?"] for n in range(1, count + 1)]


@pytest.mark.parametrize(
    ("count", "sizes"), [(1, [1]), (5, [5]), (6, [5, 1]), (12, [5, 5, 2])]
)
def test_loose_questions_are_gathered_about_five_to_a_page(count, sizes):
    reading = read([["type", "name", "label"], *loose(count)])
    assert [len(list(page.items())) for page in reading.draft.pages] == sizes


def test_note_stays_on_the_page_of_the_next_question():
    rows = [["type", "name", "label"], *loose(5)]
    rows += [["note", "intro", "Now:"], ["text", "q6", "Six?"]]
    pages = read(rows).draft.pages
    assert [item.name for item in pages[1].items()] == ["intro", "q6"]


def test_grid_outside_of_groups_stays_on_one_page():
    head = ["type", "name", "label", "appearance"]
    rows = [head, *[[*row, None] for row in loose(4)]]
    rows += [["select_one agree", "head", "Agree?", "label"]]
    rows += [["select_one agree", f"g{n}", f"G{n}", "list-nolabel"] for n in range(6)]
    pages = read(rows).draft.pages
    assert [len(list(page.items())) for page in pages] == [4, 6]
    assert pages[1].blocks[0].is_grid


def test_calculations_get_no_page_of_their_own():
    rows = [
        ["type", "name", "label", "calculation", "appearance"],
        ["calculate", "before", None, "1 + 1"],
        ["begin group", "g", "G", None, "field-list"],
        ["text", "a", "A?"],
        ["end group"],
        ["begin group", "h", "H"],
        ["calculate", "after", None, "${before} + 1"],
        ["end group"],
    ]
    pages = read(rows).draft.pages
    assert [page.name for page in pages] == ["g"]
    assert {item.name for item in pages[0].items()} == {"before", "a", "after"}


def test_headings_of_groups_are_never_lost():
    rows = [
        ["type", "name", "label", "appearance"],
        ["begin group", "page", "Page", "field-list"],
        ["begin group", "outer", "Outer", None],
        ["begin group", "grid", "Inner", "table-list"],
        ["select_one agree", "a", "A."],
        ["select_one agree", "b", "B."],
        ["end group"],
        ["text", "c", "C?"],
        ["end group"],
        ["end group"],
    ]
    (page,) = read(rows).draft.pages
    assert [(block.label.get("en"), block.is_grid) for block in page.blocks] == [
        ("Outer\nInner", True),
        (None, False),
    ]


def test_cells_are_read_as_excel_shows_them():
    rows = [
        ["type", "name", "label", "required", "default"],
        ["integer", "n", 2027.0, True, 3.0],
        ["decimal", "d", " Much\N{NO-BREAK SPACE}space ", False, 0.1],
        ["text", "t", "Line_x000D_\nend", None, "001"],
    ]
    items = draft_items(read(rows))
    assert items["n"].label == {"en": "2027"}
    assert items["n"].rules == {"required": True, "default": "3"}
    assert items["d"].label == {"en": "Much space"}
    assert items["d"].rules == {"default": "0.1"}
    assert items["t"].label == {"en": "Line\nend"}
    assert items["t"].rules == {"default": "001"}


def test_dates_in_cells_are_dates():
    day, moment = datetime.date(2027, 3, 1), datetime.datetime(2027, 3, 1, 8, 30)
    rows = [
        ["type", "name", "label", "default"],
        ["date", "a", "A?", day],
        ["dateTime", "b", "B?", moment],
        ["dateTime", "c", "C?", day],
        ["time", "d", "D?", datetime.time(8, 30)],
    ]
    items = draft_items(read(rows))
    assert [items[name].rules["default"] for name in "abcd"] == [
        "2027-03-01",
        "2027-03-01T08:30:00",
        "2027-03-01T00:00",
        "08:30:00",
    ]


def test_curly_quotes_stay_in_texts_and_are_straight_in_rules():
    rows = [
        ["type", "name", "label", "relevant"],
        ["text", "a", "“A”?"],
        ["text", "b", "B?", "${a} = ‘x’"],
    ]
    items = draft_items(read(rows))
    assert items["a"].label == {"en": "“A”?"}
    assert items["b"].rules["relevant"] == ["=", ["$", "a"], "x"]


def test_columns_that_no_filter_reads_are_not_published():
    choices = [["list_name", "name", "label", "kind", "remark"]]
    choices += [["pets", "cat", "Cat", "small", "ask Ann"]]
    rows = [
        ["type", "name", "label", "choice_filter"],
        ["text", "k", "Kind?"],
        ["select_one pets", "a", "A?", "kind = ${k} or name = 'cat'"],
    ]
    reading = read(rows, choices)
    (option,) = reading.draft.option_sets["pets"]
    assert option.attributes == {"kind": "small"}
    assert ("choices", 1, "remark") in places(reading.warnings)


def test_labels_of_options_quote_answers_in_every_language():
    english, spanish = "label::English (en)", "label::Español (es)"
    choices = [
        ["list_name", "name", english, spanish],
        ["people", "teacher", "${ name }’s teacher", "Docente de ${name}"],
        ["people", "later", "${ later }", None],
    ]
    rows = [
        ["type", "name", english, spanish, "appearance"],
        ["text", "name", "Name?", "¿Nombre?"],
        ["select_multiple people or_other", "who", "Who?", "¿Quién?"],
        ["text", "later", "Later?", "¿Después?"],
        ["select_one people", "menu", "Who first?", "¿Quién primero?", "minimal"],
    ]
    reading = read(rows, choices)
    assert reading.draft, reading.problems
    assert [row.label for row in reading.draft.option_sets["people or_other"]][:2] == [
        {"en": "${name}’s teacher", "es": "Docente de ${name}"},
        {"en": "${later}"},
    ]
    assert ("survey", 5, "appearance") in places(reading.warnings)


@pytest.mark.parametrize("file", ["students", "teachers"])
def test_demo_surveys_have_no_problems_and_no_warnings(file: str):
    reading = read_xlsform(DEMO / f"{file}.xlsx")
    assert reading.draft
    assert (reading.problems, reading.warnings) == ([], [])


@pytest.mark.django_db
def test_a_draft_is_replaced_by_the_same_version():
    for label in ("First?", "Second?"):
        reading = read([["type", "name", "label"], ["text", "a", label]])
        import_survey(draft=reading.draft)
    assert Survey.objects.count() == 1
    assert Item.objects.get().label == {"en": "Second?"}


@pytest.mark.django_db
def test_a_published_version_is_not_replaced():
    reading = read([["type", "name", "label"], ["text", "a", "A?"]])
    survey = import_survey(draft=reading.draft)
    Survey.objects.filter(pk=survey.pk).update(published_at="2027-01-01T00:00Z")
    with pytest.raises(SurveyIsPublished, match="new version"):
        import_survey(draft=reading.draft)
    assert Survey.objects.get() == survey


@pytest.mark.django_db
def test_undecodable_file_name_is_made_printable():
    draft = read([["type", "name", "label"], ["text", "a", "A?"]]).draft
    survey = import_survey(draft=draft, source_name="caf\udce9.xlsx")
    survey.refresh_from_db()
    assert survey.source_name == "caf\N{REPLACEMENT CHARACTER}.xlsx"


def test_a_title_has_the_default_language():
    reading = read(
        [["type", "name", "label::English (en)"], ["text", "a", "A?"]],
        settings=[["form_title::Español (es)", "form_id"], ["Clima", "climate"]],
    )
    assert reading.draft.title == {"es": "Clima", "en": "Clima"}


@pytest.mark.django_db
def test_an_import_that_fails_leaves_nothing():
    reading = read([["type", "name", "label"], ["select_one pets", "a", "A?"]])
    reading.draft.pages[0].blocks[0].items *= 2
    with pytest.raises(Exception, match="(?i)unique"):
        import_survey(draft=reading.draft)
    models = (Survey, Page, Item, OptionSet, Option)
    assert [model.objects.count() for model in models] == [0] * 5


@pytest.mark.django_db
@pytest.mark.parametrize("count", [1, 3, 60])
def test_import_needs_the_same_queries_for_any_size(count, django_assert_num_queries):
    rows = [["type", "name", "label"], *loose(count), ["select_one pets", "s", "S?"]]
    draft = read(rows).draft
    # The savepoint and its release, the look for an earlier draft, and one
    # statement for each of the six tables.
    with django_assert_num_queries(10):
        import_survey(draft=draft)


@pytest.mark.django_db
def test_command_imports_and_prints_a_summary(tmp_path, capsys):
    (tmp_path / "climate.xlsx").write_bytes(climate())
    call_command("import_survey", str(tmp_path / "climate.xlsx"))
    out = capsys.readouterr().out
    assert "Imported climate, version 2027.1, as a draft: 6 pages" in out
    assert "languages en, es, ar" in out
    assert "unknown column" in out
    assert Survey.objects.get().source_name == "climate.xlsx"


@pytest.mark.django_db
def test_command_prints_json(tmp_path):
    (tmp_path / "climate.xlsx").write_bytes(climate())
    out = io.StringIO()
    call_command("import_survey", str(tmp_path / "climate.xlsx"), "--json", stdout=out)
    printed = json.loads(out.getvalue())
    items = compile_definition(Survey.objects.get())["items"].values()
    kinds = [item["kind"] for item in items]
    unanswered = sum(kind in ("note", "calculate", "hidden") for kind in kinds)
    assert printed["imported"] is True
    assert printed["items"] == len(kinds) - unanswered == 20
    assert printed["pages"] == 6
    assert printed["languages"] == ["en", "es", "ar"]


@pytest.mark.django_db
def test_command_lists_all_problems_and_exits_with_1(tmp_path, capsys):
    rows = [["type", "name", "label"], ["geopoint", "g", "Where?"], ["text", "", "A?"]]
    (tmp_path / "bad.xlsx").write_bytes(form(rows))
    with pytest.raises(SystemExit) as stop:
        call_command("import_survey", str(tmp_path / "bad.xlsx"))
    err = capsys.readouterr().err
    assert stop.value.code == 1
    assert "survey, row 2, type" in err
    assert "survey, row 3, name" in err
    assert "2 problems; nothing was imported." in err
    assert not Survey.objects.exists()


@pytest.mark.django_db
def test_command_prints_problems_as_json(tmp_path):
    (tmp_path / "bad.xlsx").write_bytes(b"not a workbook")
    out = io.StringIO()
    with pytest.raises(SystemExit):
        call_command("import_survey", str(tmp_path / "bad.xlsx"), json=True, stdout=out)
    printed = json.loads(out.getvalue())
    assert printed["imported"] is False
    assert [problem["sheet"] for problem in printed["problems"]] == [""]


def test_command_reports_a_missing_file():
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("import_survey", "/nonexistent/climate.xlsx")


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        ("${q} = 'don’t know'", "don’t know"),
        ("${q} = “don’t know”", "don’t know"),
        ("${q} = ‘don’t know’", "don’t know"),
        ("${q} = ‘the students’ choice’", "the students’ choice"),
        ("${q} = ’yes’", "yes"),
        ("selected(${q}, 'yes’)", "yes"),
        ("${q} = 'the students’ choice'", "the students’ choice"),
        ("${q} = “don't know\"", "don't know"),
    ],
)
def test_quotes_are_straightened_around_values_and_not_inside(rule: str, value: str):
    rows = [
        ["type", "name", "label", "relevant"],
        ["select_one yn", "q", "Q?"],
        ["text", "why", "Why?", rule],
    ]
    choices = [["list_name", "name", "label"], ["yn", value, "A"], ["yn", "z", "Z"]]
    reading = read(rows, choices)
    assert draft_items(reading)["why"].rules["relevant"][1:] == [["$", "q"], value]
    assert not [warning for warning in reading.warnings if warning.column == "relevant"]
