"""A draft is edited in the browser: each change is stored, or both texts are shown."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils.translation import override

from accounts.models import Membership, User
from accounts.tests.logging_in import log_in
from survey.console.surveys.editor.fields import Address, Fields
from survey.console.surveys.views import STATE
from survey.instrument.definitions.publishing import NotPublishable, publish_survey
from survey.instrument.definitions.schema import load_definition
from survey.instrument.drafts.commands import CommandRefused, languages_of
from survey.instrument.drafts.drafting import publish_draft
from survey.instrument.drafts.option_rows import options_of
from survey.instrument.drafts.reading import read_rows_of
from survey.instrument.drafts.store import load_book
from survey.instrument.drafts.texts import texts_in
from survey.instrument.drafts.workbook import Row
from survey.models import DraftChange, Survey
from survey.tests.console.test_surveys import CHOICES, draft_of

pytestmark = pytest.mark.django_db
LABELS = ["label::English (en)", "label::Español (es)"]
ROWS = [
    ["type", "name", *LABELS, "required", "relevant", "appearance"],
    ["begin group", "pets_page", "Pets", "Mascotas"],
    ["select_one pets", "pet", "Which pet?", "¿Qué mascota?", "yes"],
    ["text", "why", "Why a ${pet}?", "¿Por qué?", None, "${pet} = 'cat'"],
    ["end group"],
    ["begin group", "more_page", "More", "Más"],
    ["begin group", "grid", "How much?", "¿Cuánto?", None, None, "table-list"],
    ["select_one pets", "first", "First?", "¿Primero?"],
    ["select_one pets", "second", "Second?", "¿Segundo?"],
    ["end group"],
    ["end group"],
]


@pytest.fixture
def draft() -> Survey:
    return draft_of(rows=ROWS)


class Editor:
    """The requests that a browser sends for one user."""

    def __init__(self, survey: Survey, user: User) -> None:
        self.survey = survey
        self.client = log_in(Client(), user)

    def post(self, headers: dict[str, str] | None = None, **data: str) -> Any:
        return self.client.post(
            reverse("survey_edit_change", args=[self.survey.pk]),
            data,
            headers={"accept": "application/json", **(headers or {})},
        )

    def type(self, address: str, text: str, *, seen: str, **more: Any) -> Any:
        fields = {f"seen:{address}": seen, f"f:{address}": text}
        return self.post(**fields, **more)

    def act(self, verb: str, at: str = "", **more: str) -> dict[str, Any]:
        reply = self.post(act=verb, at=at, **more)
        assert reply.status_code == 200, reply.content
        return reply.json()

    def page(self, at: str = "") -> str:
        address = reverse("survey_edit", args=[self.survey.pk])
        return self.client.get(f"{address}?at={at}").content.decode()

    def key(self, name: str) -> str:
        sheet = load_book(self.survey).sheet("survey")
        rows = [row for row in sheet.rows if sheet.value(row, "name") == name]
        return rows[0].key

    def read(self, name: str, field: str, language: str = "") -> str:
        address = Address("survey", self.key(name), field, language)
        return Fields(load_book(self.survey)).read(address)

    def names(self) -> list[str]:
        sheet = load_book(self.survey).sheet("survey")
        return [name for row in sheet.rows if (name := sheet.value(row, "name"))]

    def options(self, name: str) -> list[str]:
        choices = load_book(self.survey).sheet("choices")
        rows = [row for row in choices.rows if choices.value(row, "list") == name]
        return [choices.value(row, "name") for row in rows]


@pytest.fixture
def editor(draft, staff) -> Editor:
    return Editor(draft, staff.state)


@pytest.fixture
def colleague(draft, staff) -> Editor:
    pat = User.objects.create(email="pat@example.org")
    Membership.objects.create(user=pat, role=Membership.Role.STATE)
    return Editor(draft, pat)


def test_a_survey_is_written_and_published(editor, draft, staff):
    page = editor.page()
    assert "Which pet?" in page and "Why a ${pet}?" in page
    pet = editor.key("pet")
    added = editor.act("add:select_one", at=pet)
    key, focus = added["at"], added["focus"]
    assert focus == "label" and "No text yet" in added["outline"]
    text = f"survey:{key}:label:en"
    editor.type(text, "How old is your pet?", seen="", at=key)
    reply = editor.type(text, "How old is it?", seen="How old is your pet?", left=text)
    assert reply.status_code == 200
    assert editor.names()[1:4] == ["pet", "old", "why"]
    options = Fields(load_book(draft)).book.sheet("choices").rows
    first = options[-2].key
    editor.act(
        f"options-paste:{first}", at=key, text="A puppy\r\nYoung\tabout 3\n\nOld"
    )
    settings = editor.page(key)
    for label in ("A puppy", "Young", "Old"):
        assert f"\n{label}</textarea>" in settings
    editor.type(f"survey:{key}:required_choice:", "yes", seen="")
    editor.act(f"up:{key}", at=key)
    assert editor.names()[1:4] == ["old", "pet", "why"]
    editor.act("undo")
    assert editor.names()[1:4] == ["pet", "old", "why"]
    draft.refresh_from_db()
    assert not read_rows_of(draft).problems
    canvas = reverse("survey_edit_canvas", args=[draft.pk])
    assert "How old is it?" in editor.client.get(f"{canvas}?at={key}").content.decode()


def test_a_text_that_somebody_else_changed_is_not_overwritten(editor, colleague):
    address = f"survey:{editor.key('pet')}:label:en"
    colleague.type(address, "Which animal?", seen="Which pet?")
    reply = editor.type(address, "Which pets?", seen="Which pet?")
    assert reply.status_code == 409
    [conflict] = reply.json()["conflicts"]
    assert conflict["sentence"].startswith("pat@example.org changed this at")
    assert (conflict["theirs"], conflict["mine"]) == ("Which animal?", "Which pets?")
    assert editor.read("pet", "label", "en") == "Which animal?"
    # *Keep mine* says that it was seen.
    reply = editor.type(address, "Which pets?", seen="Which animal?")
    assert reply.status_code == 200
    assert editor.read("pet", "label", "en") == "Which pets?"


def test_a_text_that_one_changed_in_another_window_says_so(editor):
    address = f"survey:{editor.key('pet')}:label:en"
    editor.type(address, "Which animal?", seen="Which pet?")
    reply = editor.type(address, "Which pets?", seen="Which pet?")
    [conflict] = reply.json()["conflicts"]
    assert conflict["isOwn"]
    assert conflict["sentence"].startswith("You changed this in another window at")


def test_without_what_was_seen_a_text_is_lost(editor, colleague):
    """The twin: what the comparison is for."""
    address = f"survey:{editor.key('pet')}:label:en"
    colleague.type(address, "Which animal?", seen="Which pet?")
    editor.type(address, "Which pets?", seen="Which animal?")
    assert editor.read("pet", "label", "en") == "Which pets?"


def test_a_text_that_is_sent_again_changes_nothing(editor, draft):
    address = f"survey:{editor.key('pet')}:label:en"
    for _attempt in range(2):
        assert editor.type(address, "Which?", seen="Which pet?").status_code == 200
    assert DraftChange.objects.filter(survey=draft).count() == 1


def test_deleting_names_the_questions_that_read_it(editor):
    body = editor.act(f"delete:{editor.key('pet')}", at=editor.key("pet"))
    assert body["message"] == "1 question is deleted." and body["offersUndo"]
    assert [row["text"] for row in body["readers"]] == ["Why a ${pet}?"]
    assert body["at"] == editor.key("why")
    assert editor.act("undo")["message"] == "Undone."
    assert "pet" in editor.names()


def test_moving_below_a_reader_names_it(editor):
    body = editor.act(f"down:{editor.key('pet')}", at=editor.key("pet"))
    assert [row["text"] for row in body["readers"]] == ["Why a ${pet}?"]


def test_questions_move_from_page_to_page_and_stop_at_the_ends(editor):
    why = editor.key("why")
    editor.act(f"down:{why}")
    assert editor.names() == ["pets_page", "pet", "more_page", "why", *NAMES[4:]]
    editor.act(f"up:{why}")
    assert editor.names() == NAMES
    assert editor.act(f"up:{editor.key('pets_page')}")["message"].startswith(
        "It is the"
    )
    editor.act(f"down:{editor.key('pets_page')}")
    assert editor.names() == [*NAMES[3:], *NAMES[:3]]


NAMES = ["pets_page", "pet", "why", "more_page", "grid", "first", "second"]


def test_a_row_is_placed_below_a_grid_or_into_a_page(editor):
    pet, grid = editor.key("pet"), editor.key("grid")
    editor.act(f"place:{pet}", after=grid)
    assert editor.names()[-1] == "pet"
    editor.act(f"place:{pet}", after=f"into:{editor.key('pets_page')}")
    assert editor.names() == NAMES
    reply = editor.post(act=f"place:{grid}", after=editor.key("first"))
    assert reply.status_code == 422 and "outside" in reply.json()["error"]


def test_a_shared_list_is_locked_and_copied(editor):
    pet = editor.key("pet")
    assert "Used by 3 questions" in editor.page(pet)
    assert "readonly" in editor.page(pet)
    editor.act(f"own-options:{pet}", at=pet)
    assert editor.read("pet", "type") == "select_one pet_options"
    assert editor.read("first", "type") == "select_one pets"
    assert "readonly" not in editor.page(pet)
    # The rows of one grid share their list anyway.
    assert "Used by" not in editor.page(editor.key("grid"))


def test_a_question_of_another_type_borrows_no_options(editor):
    role = editor.act("add:select_one", at=editor.key("pet"))["at"]
    assert editor.read("question", "type") == "select_one question_options"
    address = f"survey:{role}:label:en"
    editor.type(address, "Your role?", seen="", left=address, at=role)
    assert editor.read("role", "type") == "select_one question_options"
    often = editor.act("add:text", at=role)["at"]
    editor.type(f"survey:{often}:kind:", "select_one", seen="text", at=often)
    assert editor.read("question", "type") == "select_one question_options_2"
    assert editor.read("role", "type") == "select_one question_options"


def test_options_are_added_moved_and_deleted(editor):
    pet = editor.key("pet")
    editor.act(f"own-options:{pet}", at=pet)
    choices = load_book(editor.survey).sheet("choices")
    cat, dog = [row.key for row in choices.rows[-2:]]
    editor.act(f"option-down:{cat}", at=pet)
    focus = editor.act(f"option-add:{dog}", at=pet)["focus"]
    added = focus.split(":")[1]
    editor.type(f"choices:{added}:label:en", "Eel 🐟", seen="")
    assert editor.options("pet_options") == ["dog", "option", "cat"]
    editor.act(f"option-delete:{cat}", at=pet)
    assert editor.options("pet_options") == ["dog", "option"]
    editor.act(f"option-delete:{dog}", at=pet)
    reply = editor.post(act=f"option-delete:{added}", at=pet)
    assert reply.status_code == 422


def test_pasted_options_replace_those_that_nobody_has_written(editor):
    added = editor.act("add:select_one", at=editor.key("pet"))["at"]
    copy = editor.act(f"duplicate:{added}", at=added)["at"]
    editor.act(f"own-options:{copy}", at=copy)
    choices = load_book(editor.survey).sheet("choices")
    first, second = choices.rows[-2:]
    editor.act(f"options-paste:{second.key}", at=copy, text="Yes\nNo\nPerhaps")
    assert labels_of(editor, first) == ["Yes", "No", "Perhaps"]
    editor.act(f"options-paste:{second.key}", at=copy, text="Often\nNever")
    assert labels_of(editor, first) == ["Often", "Never", "No", "Perhaps"]


def labels_of(editor: Editor, option: Row, language: str = "en") -> list[str]:
    choices = load_book(editor.survey).sheet("choices")
    option_set = option.cells[choices.column("list")]
    book = load_book(editor.survey)
    return [
        Fields(book).read(Address("choices", row.key, "label", language))
        for row in options_of(book, option_set)
    ]


def test_a_new_list_offers_answers_that_are_ready_made(editor):
    added = editor.act("add:select_one", at=editor.key("pet"))["at"]
    assert "How often" in editor.page(added)
    settings = editor.act("ready-options:yes", at=added)["settings"]
    assert "\nYes</textarea>" in settings and "ready-options" not in settings
    first = load_book(editor.survey).sheet("choices").rows[-2]
    assert labels_of(editor, first) == ["Yes", "No"]
    assert labels_of(editor, first, "es") == ["Sí", "No"]
    # What somebody has written is not replaced.
    reply = editor.post(act="ready-options:often", at=added)
    assert reply.status_code == 422
    assert labels_of(editor, first) == ["Yes", "No"]


def test_a_statement_says_that_its_options_are_those_of_the_grid(editor):
    sentence = "Its options belong to all statements of the grid."
    assert sentence in editor.page(editor.key("second"))
    assert sentence not in editor.page(editor.key("pet"))


def test_how_many_conditions_must_be_true_is_asked_for_two_of_them(editor):
    why = editor.key("why")
    assert "How many must be true" not in editor.page(why)
    relevant = "${pet} = 'cat' or ${pet} = 'dog'"
    address = f"survey:{why}:relevant:"
    editor.type(address, relevant, seen="${pet} = 'cat'")
    assert "How many must be true" in editor.page(why)


def test_the_options_of_a_statement_change_in_the_whole_grid(editor):
    second = editor.key("second")
    editor.act(f"own-options:{second}", at=second)
    types = {editor.read(name, "type") for name in ("first", "second")}
    assert types == {"select_one first_options"}
    editor.act(f"use-options:{second}", at=second, list="pets")
    assert editor.read("first", "type") == "select_one pets"


def test_conditions_and_lists_name_questions_by_number_and_text(editor):
    editor.act("add:select_one", at=editor.key("second"))
    page = editor.page(editor.key("first"))
    assert ">1. Which pet?</option>" in page and "(pet)" not in page
    assert "Same answers as: 1. Which pet?" in page


def test_a_message_undoes_only_the_change_that_it_names(editor):
    named = editor.act(f"delete:{editor.key('why')}")["undo"]
    editor.type(f"survey:{editor.key('pet')}:label:en", "Pet?", seen="Which pet?")
    reply = editor.post(act=f"undo:{named}")
    assert reply.status_code == 422 and "since then" in reply.json()["error"]
    assert "why" not in editor.names() and editor.read("pet", "label", "en") == "Pet?"
    # Without the number, the last change is undone.
    assert editor.act("undo")["undo"] == named
    editor.act(f"undo:{named}")
    assert "why" in editor.names()


def test_after_undo_another_question_can_be_added(editor):
    why = editor.key("why")
    added = editor.act("add:text", at=why)["at"]
    # The row above the one that is gone is selected.
    assert editor.act("undo", at=added)["at"] == why
    assert editor.act("add:text", at=why)["at"] != added
    page = editor.act("add:page", at=why)["at"]
    body = editor.act("undo", at=page)
    assert body["at"] == editor.key("question")
    # Somebody else has deleted what is selected.
    names = editor.names()
    assert editor.act("add:text", at=added)["at"]
    assert editor.names() == [*names, "question_2"]


def test_the_empty_question_of_a_new_page_is_replaced(editor):
    page = editor.act("add:page", at=editor.key("pet"))["at"]
    editor.act("add:grid", at=page)
    assert editor.names()[3:6] == ["page", "grid_2", "grid_2_1"]
    page = editor.act("add:page", at=page)["at"]
    empty = editor.key("question")
    editor.act("add:select_one", at=empty)
    assert "question" not in editor.names() and "question_2" in editor.names()
    # What somebody has written is not.
    key = editor.act("add:page", at=page)["at"]
    address = f"survey:{editor.key('question')}:hint:en"
    editor.type(address, "In a few words.", seen="", at=key)
    editor.act("add:integer", at=key)
    assert editor.read("question", "hint", "en") == "In a few words."


GROUPS = [
    ["type", "name", "label", "relevant", "appearance"],
    ["begin group", "about", "About you"],
    ["begin group", "first_page", "You", None, "field-list"],
    ["text", "why", "Why ${book}?"],
    ["end group"],
    ["begin group", "second_page", "More", None, "field-list"],
    ["text", "book", "Which book?"],
    ["begin group", "library", "Library", "${why} = 'x'"],
    ["text", "which", "Which library?"],
    ["begin group", "inside", "Inside it"],
    ["text", "shelf", "Which shelf?"],
    ["end group"],
    ["text", "missing", "What is missing?"],
    ["end group"],
    ["end group"],
    ["end group"],
    ["begin group", "last_page", "Last", None, "field-list"],
    ["text", "last", "Anything else?"],
    ["end group"],
]


def test_the_contents_show_sections_and_groups(staff):
    editor = Editor(draft_of(rows=GROUPS), staff.state)
    outline = editor.page().split('id="ed-pages"')[1].split("</form>")[0]
    assert outline.count('ed-section"') == 1 and ">About you</p>" in outline
    assert outline.index(">About you</p>") < outline.index(">You</span>")
    assert outline.count("ed-sectioned") == 2
    depths = dict(re.findall(r'data-key="(\w+)" data-depth="(\d)"', outline))
    inside = {name for name in editor.names() if depths.get(editor.key(name)) == "1"}
    assert inside == {"which", "shelf", "missing"}
    # It quotes an answer that comes later.
    assert outline.count("ed-later") == 1
    assert "comes later" in outline.split("Why ${book}?")[1].split("</a>")[0]


def test_a_move_says_what_it_changes(staff):
    editor = Editor(draft_of(rows=GROUPS), staff.state)
    body = editor.act(f"down:{editor.key('book')}")
    assert body["message"] == (
        "Moved into “Library”, whose rule now decides as well who sees it."
    )
    assert body["offersUndo"]
    editor.act("undo")
    # It comes after a question that its group reads.
    body = editor.act(f"place:{editor.key('why')}", after=editor.key("last"))
    assert body["offersUndo"] and "Nobody has given it by then" in body["readersReason"]
    assert [row["text"] for row in body["readers"]] == ["Library"]


def test_the_page_keeps_its_rules_while_a_question_has_no_text(editor):
    body = editor.act("add:text", at=editor.key("pet"))
    badges = body["canvas"]["marks"]["items"]["why"]["badges"]
    assert badges and badges[0].startswith("Shown if")
    # A rule that cannot be followed is left out, and no other one.
    address = f"survey:{editor.key('second')}:relevant:"
    editor.type(address, "${nobody} = 1", seen="")
    body = editor.act("add:text", at=editor.key("pet"))
    assert body["canvas"]["marks"]["items"]["why"]["badges"]
    assert not editor.post(at=editor.key("second")).json()["canvas"]["marks"]["items"][
        "second"
    ]["badges"]


def test_too_many_options_are_refused_and_nothing_is_stored(editor, draft):
    pet = editor.key("pet")
    cat = load_book(draft).sheet("choices").rows[0].key
    text = "\n".join(f"Option {n}" for n in range(10_000))
    reply = editor.post(act=f"options-paste:{cat}", at=pet, text=text)
    assert reply.status_code == 422 and "1,000" in reply.json()["error"]
    assert not DraftChange.objects.exists()


def test_a_required_question_has_a_message_of_its_own(editor, draft):
    pet, why = editor.key("pet"), editor.key("why")
    address = f"survey:{pet}:required_message:en"
    assert f'name="f:{address}"' in editor.page(pet)
    assert "required_message" not in editor.page(why)
    editor.type(address, "Choose your pet.", seen="")
    draft.refresh_from_db()
    reading = read_rows_of(draft)
    assert not reading.problems
    item = reading.definition["items"]["pet"]
    assert item["required_message"]["en"] == "Choose your pet."


def test_a_name_that_is_taken_is_refused_at_its_field(editor):
    address = f"survey:{editor.key('pet')}:name:"
    reply = editor.type(address, "why", seen="pet")
    assert reply.status_code == 422
    assert reply.json()["error"] == "Another question is called why."
    reply = editor.type(address, "animal", seen="pet")
    assert reply.status_code == 200
    assert editor.read("why", "relevant") == "${animal} = 'cat'"
    assert editor.read("why", "label", "en") == "Why a ${animal}?"


def test_a_kind_keeps_what_it_can(editor):
    pet = editor.key("pet")
    address = f"survey:{pet}:kind:"
    editor.type(address, "long_text", seen="select_one")
    assert editor.read("pet", "type") == "text"
    assert editor.read("pet", "appearance") == "multiline"
    editor.type(address, "range", seen="long_text")
    assert editor.read("pet", "appearance") == ""
    editor.type(f"survey:{pet}:end:", "5", seen="")
    editor.type(f"survey:{pet}:start:", "0", seen="")
    assert editor.read("pet", "parameters") == "end=5 start=0"
    editor.type(address, "select_multiple", seen="range")
    assert editor.read("pet", "parameters") == ""
    assert editor.read("pet", "type").startswith("select_multiple ")


def test_types_that_are_passed_by_keys_cost_nothing(editor):
    pet = editor.key("pet")
    editor.act(f"own-options:{pet}", at=pet)
    editor.type(f"survey:{pet}:layout:", "likert", seen="")
    before = editor.names(), editor.options("pet_options"), editor.read("pet", "type")
    address = f"survey:{pet}:kind:"
    kinds = ["select_one", "select_multiple", "text", "long_text", "integer"]
    for way in (kinds, kinds[::-1]):
        for seen, kind in zip(way, way[1:], strict=False):
            assert editor.type(address, kind, seen=seen).status_code == 200
    after = editor.names(), editor.options("pet_options"), editor.read("pet", "type")
    assert before == after
    # In between, the options were away with the last question that had them.
    editor.type(address, "text", seen="select_one")
    assert editor.options("pet_options") == []
    editor.type(address, "range", seen="text")
    editor.type(f"survey:{pet}:end:", "7", seen="")
    editor.type(address, "integer", seen="range")
    assert editor.read("pet", "parameters") == ""
    editor.type(address, "range", seen="integer")
    assert editor.read("pet", "end") == "7"


def test_statements_of_a_grid_are_pasted(editor):
    first, grid = editor.key("first"), editor.key("grid")
    editor.act(f"rows-paste:{first}", at=grid, text="I am safe.\nI am heard.\n")
    sheet = load_book(editor.survey).sheet("survey")
    labels = [row.cells.get(3) for row in sheet.rows if "pets" in row.cells.get(1, "")]
    assert labels == ["Which pet?", "I am safe.", "I am heard.", "Second?"]


def test_pasted_statements_are_inserted_at_once(editor, draft):
    """The draft is locked meanwhile."""
    first = editor.key("first")
    lines = [f"I am safe in room {n}." for n in range(200)]
    reply = editor.post(act=f"rows-paste:{first}", text="\n".join([*lines, "More"]))
    assert reply.status_code == 422 and "at most 200" in reply.json()["error"]
    assert not DraftChange.objects.exists()
    editor.act(f"rows-paste:{first}", text="\n".join(lines))
    sorts = [row["op"] for row in DraftChange.objects.get().operations]
    assert sorts.count("insert") == 1 and len(sorts) < 5
    names = editor.names()
    assert len(names) == len(set(names)) == len(NAMES) + 199
    draft.refresh_from_db()
    assert not read_rows_of(draft).problems
    editor.act("undo")
    assert editor.names() == NAMES


def test_a_rule_is_chosen_in_words(editor):
    key = editor.key("first")
    form = {
        "rule-relevant-seen": "",
        "rule-relevant-code": "",
        "rule-relevant-group0-join": "all",
        "rule-relevant-1-group": "0",
        "rule-relevant-1-item": "pet",
        "rule-relevant-1-operator": "is",
        "rule-relevant-1-value": "",
    }
    body = editor.post(at=key, **form, **{"rule-relevant-do": "refresh"}).json()
    assert body["hasUnsavedRule"] and editor.read("first", "relevant") == ""
    form["rule-relevant-1-value"] = "dog"
    body = editor.post(at=key, **form).json()
    assert editor.read("first", "relevant") == "${pet} = 'dog'"
    assert not body["hasUnsavedRule"]
    # Of the same form in another tab, which has not seen the rule.
    form["rule-relevant-1-value"] = "cat"
    reply = editor.post(at=key, **form)
    assert reply.status_code == 409
    assert editor.read("first", "relevant") == "${pet} = 'dog'"


def test_a_rule_is_stored_at_the_question_that_its_form_names(editor):
    first, why = editor.key("first"), editor.key("why")
    form = {
        "rule-relevant-key": first,
        "rule-relevant-seen": "",
        "rule-relevant-code": "",
        "rule-relevant-group0-join": "all",
        "rule-relevant-1-group": "0",
        "rule-relevant-1-item": "pet",
        "rule-relevant-1-operator": "is",
        "rule-relevant-1-value": "dog",
    }
    body = editor.post(at=why, **form).json()
    assert editor.read("first", "relevant") == "${pet} = 'dog'"
    assert editor.read("why", "relevant") == "${pet} = 'cat'"
    assert body["at"] == why and not body["hasUnsavedRule"]
    # Without it, the rule is that of the selected question.
    del form["rule-relevant-key"]
    editor.post(at=editor.key("second"), **form)
    assert editor.read("second", "relevant") == "${pet} = 'dog'"


def test_a_rule_as_code_stays_as_it_is(editor):
    key = editor.key("why")
    code = "string-length( ${pet} )  > 2"
    editor.type(f"survey:{key}:relevant:", code, seen="${pet} = 'cat'")
    assert "string-length( ${pet} )  &gt; 2" in editor.page(key)
    form = {"rule-relevant-seen": code, "rule-relevant-code": code}
    assert editor.post(at=key, **form).status_code == 200
    assert editor.read("why", "relevant") == code


def filled_in(*conditions: tuple[str, str, str, str], **more: str) -> dict[str, str]:
    """Return a form: group, question, comparison and answer of each condition."""
    form = {"seen": "", "code": "", "group0-join": "all", "do": "", **more}
    for number, condition in enumerate(conditions, 1):
        names = ("group", "item", "operator", "value")
        form |= {f"{number}-{n}": v for n, v in zip(names, condition, strict=True)}
    return {f"rule-relevant-{name}": value for name, value in form.items()}


def test_a_rule_that_is_not_stored_says_so(editor):
    first = editor.key("first")
    half = filled_in(("0", "pet", "is", ""), do="refresh")
    body = editor.post(at=first, **half).json()
    assert body["ruleState"] == "unfinished"
    assert "does not count yet. Until then: Shown to everybody." in body["settings"]
    # What cannot be saved is said after a reload too, which draws the form anew.
    wrong = filled_in(("0", "why", "is", "both ${"), do="refresh")
    body = editor.post(at=first, **wrong).json()
    assert body["ruleState"] == "refused" and "Remove “${”" in body["settings"]
    # A row that is only added is nothing yet.
    added = filled_in(("0", "pet", "is", "dog"), do="add")
    body = editor.post(at=first, **added).json()
    assert (body["ruleState"], body["hasUnsavedRule"]) == ("", True)


def test_a_group_stays_while_its_conditions_are_chosen(editor):
    first = editor.key("first")
    conditions = [("0", "pet", "is", "dog"), ("9", "why", "is answered", "")]
    form = filled_in(*conditions, **{"group9-join": "any"})
    settings = editor.post(at=first, **form).json()["settings"]
    assert editor.read("first", "relevant") == "${pet} = 'dog' and ${why} != ''"
    assert "Add condition to this group" in settings
    # Another way to join and back again is what it was.
    conditions.append(("9", "pet", "is", "cat"))
    for outer, rule in {
        "any": "${pet} = 'dog' or ${why} != '' or ${pet} = 'cat'",
        "all": "${pet} = 'dog' and (${why} != '' or ${pet} = 'cat')",
    }.items():
        seen = editor.read("first", "relevant")
        joins = {"group0-join": outer, "group9-join": "any", "seen": seen, "code": seen}
        editor.post(at=first, **filled_in(*conditions, **joins))
        assert editor.read("first", "relevant") == rule


def test_the_survey_has_a_title_and_languages(editor, draft):
    editor.type("settings:-:title:en", "All about pets", seen="About pets")
    body = editor.act("language:", new_language="Arabic")
    assert body["title"] == "All about pets"
    assert body["message"].endswith(" is added.") and "Arabic" not in body["settings"]
    added = editor.act("language:", new_language="french")
    assert added["message"] == "Français is added."
    canvas = reverse("survey_edit_canvas", args=[draft.pk])
    assert 'dir="rtl"' in editor.client.get(f"{canvas}?language=ar").content.decode()


def test_a_version_is_changed_and_published(editor, draft, staff):
    version = "settings:-:version:"
    assert editor.type(version, "2", seen="1").status_code == 200
    draft.refresh_from_db()
    assert draft.version == "2"
    published = publish_draft(survey=draft)
    assert load_definition(published.definition)["version"] == "2"


def test_a_version_that_is_taken_is_refused(editor, draft, staff):
    version, second = "settings:-:version:", draft_of(rows=ROWS, version="2")
    reply = editor.type(version, "2", seen="1")
    assert reply.status_code == 422
    assert reply.json()["error"] == "There is a survey pets, version 2, already."
    assert not draft.changes.exists()
    # Nor is it by going back to it.
    editor.type(version, "3", seen="1")
    second.version = "1"
    second.save()
    assert editor.post(act="undo").status_code == 422
    restore = reverse("survey_edit_restore", args=[draft.pk, 0])
    refused = editor.client.post(restore, {"seen": 1})
    assert refused.status_code == 409
    assert "version 1, already" in refused.content.decode()
    draft.refresh_from_db()
    assert draft.version == "3"


def test_what_is_no_version_stays_a_problem(editor, draft):
    assert editor.type("settings:-:version:", "x" * 65, seen="1").status_code == 200
    draft.refresh_from_db()
    assert draft.version == "1" and read_rows_of(draft).problems


def test_a_question_that_is_gone_is_said_so(editor, colleague):
    address = f"survey:{editor.key('why')}:label:en"
    colleague.act(f"delete:{editor.key('why')}")
    reply = editor.type(address, "Why not?", seen="Why a ${pet}?")
    assert reply.status_code == 409
    assert reply.json()["error"] == "Somebody has deleted this meanwhile."


def test_a_published_survey_is_not_changed(editor, draft, staff):
    address = f"survey:{editor.key('pet')}:label:en"
    publish_survey(survey=draft)
    reply = editor.type(address, "Which?", seen="Which pet?")
    assert reply.status_code == 409 and reply.json()["published"]
    page = editor.client.get(reverse("survey_edit", args=[draft.pk]))
    assert page["Location"] == reverse("survey_detail", args=[draft.pk])


def test_without_scripts_forms_are_sent(editor):
    pet = editor.key("pet")
    change = reverse("survey_edit_change", args=[editor.survey.pk])
    data = {f"seen:survey:{pet}:label:en": "Which pet?"}
    data |= {f"f:survey:{pet}:label:en": "Which animal?", "at": pet}
    reply = editor.client.post(change, {**data, "act": f"down:{pet}"}, follow=True)
    assert reply.status_code == 200 and "Which animal?" in reply.content.decode()
    assert editor.names()[1:3] == ["why", "pet"]
    # An unticked box is not sent.
    shuffle = f"survey:{pet}:shuffle:"
    editor.client.post(change, {f"seen:{shuffle}": "", f"f:{shuffle}": "yes"})
    assert editor.read("pet", "parameters") == "randomize=true"
    editor.client.post(change, {f"seen:{shuffle}": "yes"})
    assert editor.read("pet", "parameters") == ""


def test_questions_outside_of_groups_get_a_page_with_a_title(staff):
    draft = draft_of(rows=[ROWS[0], *[["text", f"q{n}", f"{n}?"] for n in range(3)]])
    editor = Editor(draft, staff.state)
    keys = [editor.key(f"q{n}") for n in range(3)]
    assert f"wrap:{','.join(keys)}" in editor.page(keys[1])
    body = editor.act(f"wrap:{','.join(keys)}", at=keys[1])
    editor.type(f"survey:{body['at']}:label:en", "About you", seen="")
    draft.refresh_from_db()
    [page] = read_rows_of(draft).draft.pages
    assert page.title == {"en": "About you"} and len([*page.items()]) == 3


def test_a_question_becomes_the_first_statement_of_a_grid(editor, draft):
    pet = editor.key("pet")
    assert f"grid:{pet}" in editor.page(pet)
    at = editor.act(f"grid:{pet}", at=pet)["at"]
    editor.type(f"survey:{at}:label:en", "Which of them?", seen="")
    editor.act(f"row-add:{at}", at=at)
    draft.refresh_from_db()
    block = read_rows_of(draft).draft.pages[0].blocks[0]
    assert block.is_grid and block.label["en"] == "Which of them?"
    assert [item.name for item in block.items][:1] == ["pet"] and len(block.items) == 2
    # Nor do statements, grids and texts become one.
    for name in ("pet", "first", "why"):
        reply = editor.post(act=f"grid:{editor.key(name)}")
        assert reply.status_code == 422 and "one choice" in reply.json()["error"]
    editor.act("undo")
    editor.act("undo")
    editor.act("undo")
    assert editor.names() == NAMES


def test_a_grid_is_a_type_to_choose(editor, draft):
    pet = editor.key("pet")
    address = f"survey:{pet}:kind:"
    assert '<option value="grid">' in editor.page(pet)
    body = editor.type(address, "grid", seen="select_one", at=pet).json()
    grid = body["at"]
    assert grid not in ("", pet) and f"survey:{grid}:label:en" in body["settings"]
    draft.refresh_from_db()
    block = read_rows_of(draft).draft.pages[0].blocks[0]
    assert block.is_grid and [item.name for item in block.items] == ["pet"]
    # A request that is sent again changes nothing, and a statement is no grid.
    changes = draft.changes.count()
    repeated = editor.type(address, "grid", seen="select_one", at=pet)
    assert (repeated.status_code, repeated.json()["at"]) == (200, grid)
    assert draft.changes.count() == changes
    for name in ("pet", "why"):
        assert '<option value="grid">' not in editor.page(editor.key(name))
    why = editor.key("why")
    reply = editor.type(f"survey:{why}:kind:", "grid", seen="text", at=why)
    assert reply.status_code == 422 and "one choice" in reply.json()["error"]
    editor.act("undo")
    assert editor.names() == NAMES


def test_more_help_of_a_question_is_among_its_settings(editor, draft):
    why = editor.key("why")
    address = f"survey:{why}:guidance:en"
    body = editor.type(address, "Any reason counts.", seen="", at=why).json()
    assert "Any reason counts.</textarea>" in body["settings"]
    draft.refresh_from_db()
    [item] = [i for i in read_rows_of(draft).draft.items() if i.name == "why"]
    assert item.guidance == {"en": "Any reason counts."}
    # Statements of a grid show none, unless a workbook gave them one.
    first = editor.key("first")
    assert "guidance" not in editor.page(first)
    editor.type(f"survey:{first}:guidance:en", "Think back.", seen="")
    assert "Think back." in editor.page(first)


def test_a_question_gets_a_heading_that_can_be_removed(editor, draft):
    why = editor.key("why")
    at = editor.act(f"heading:{why}", at=why)["at"]
    editor.type(f"survey:{at}:label:en", "Your reasons", seen="")
    draft.refresh_from_db()
    assert read_rows_of(draft).problems == []
    assert read_rows_of(draft).draft.pages[0].blocks[1].label == {"en": "Your reasons"}
    assert editor.post(act=f"heading:{why}").status_code == 422
    assert f"unwrap:{at}" in editor.page(at)
    assert editor.act(f"unwrap:{at}", at=at)["at"] == why
    assert editor.names() == NAMES
    # Pages and grids are not taken apart.
    for name in ("grid", "pets_page", "pet"):
        assert editor.post(act=f"unwrap:{editor.key(name)}").status_code == 422
    assert editor.names() == NAMES


def test_pages_go_into_a_section_and_out_of_it(editor, draft):
    first, second = editor.key("pets_page"), editor.key("more_page")
    # Moved into a section, a group is a page only if it is a field-list.
    editor.type(f"survey:{first}:appearance:", "field-list", seen="")
    assert f"section:{second}" in editor.page(second)
    body = editor.act(f"section:{second}", at=second)
    assert body["at"] == second and body["focus"].endswith(":label")
    section = body["focus"].split(":")[1]
    editor.type(f"survey:{section}:label:en", "The end", seen="")
    assert "The end" in editor.page(second)
    assert editor.post(act=f"section:{second}").status_code == 422
    # The first page goes into the section, past the page there, and out again.
    names = [NAMES[:3], NAMES[3:]]
    editor.act(f"down:{first}")
    assert editor.names() == ["section", *names[0], *names[1]]
    editor.act(f"down:{first}")
    assert editor.names() == ["section", *names[1], *names[0]]
    editor.act(f"up:{first}")
    editor.act(f"up:{first}")
    assert editor.names() == [*names[0], "section", *names[1]]
    draft.refresh_from_db()
    assert [page.title["en"] for page in read_rows_of(draft).draft.pages] == [
        "Pets",
        "More",
    ]
    editor.act(f"unwrap:{section}", at=second)
    assert editor.names() == NAMES


def test_the_first_texts_of_options_are_in_the_language_of_the_draft(editor, draft):
    with override("es"):
        key = editor.act("add:select_one", at=editor.key("pet"))["at"]
    first = load_book(draft).sheet("choices").rows[-2]
    assert labels_of(editor, first) == ["Option 1", "Option 2"]
    # A colleague whose console is in Spanish pastes over them all the same.
    User.objects.update(language="es")
    editor.act(f"options-paste:{first.key}", at=key, text="Sí\nNo\nTal vez")
    assert labels_of(editor, first) == ["Sí", "No", "Tal vez"]


def test_a_request_that_is_sent_again_is_done_once(editor, draft):
    names = editor.names()
    at = editor.key("pet")
    first = editor.act("add:text", at=at, token="a1")
    # The reply was lost, and a colleague has added another one.
    editor.act("add:text", at=at)
    repeated = editor.act("add:text", at=at, token="a1")
    assert (repeated["at"], repeated["focus"]) == (first["at"], "label")
    assert len(editor.names()) == len(names) + 2
    editor.act("undo", token="a2")
    editor.act("undo", token="a2")
    assert len(editor.names()) == len(names) + 1
    # The damage that tokens prevent.
    editor.act("undo")
    editor.act("undo")
    assert editor.names() == names


def test_unknown_addresses_are_refused():
    for text in (
        "survey:k1:media:",
        "measures:k1:name:",
        "settings:-:name:",
        "survey:k1:label",
        "x",
    ):
        with pytest.raises(CommandRefused):
            Address.parse(text)


def test_rows_that_cannot_be_shown_are_listed(editor, draft):
    pet = editor.key("pet")
    editor.type(f"survey:{pet}:type:", "geopoint", seen="select_one pets")
    page = editor.page(pet)
    assert "Row that can’t be shown" in page and "geopoint" in page
    assert "There is a problem here" in page
    assert "2 questions with problems" in page


def test_an_empty_survey_gets_its_first_question(staff):
    draft = draft_of(rows=[ROWS[0], ROWS[1], ROWS[2], ROWS[4]])
    editor = Editor(draft, staff.state)
    body = editor.act(f"delete:{editor.key('pets_page')}")
    assert body["outline"] == "" and body["canvas"]["html"] == ""
    body = editor.act("add:text")
    assert body["page"] == 1 and "No text yet" in body["outline"]


@pytest.mark.parametrize("rows", [1, 3])
def test_a_change_takes_as_many_statements_for_each_size(
    rows, staff, django_assert_num_queries
):
    draft = draft_of(
        rows=[ROWS[0], *[[*ROWS[2][:1], f"q{n}", "?"] for n in range(rows)]]
    )
    editor = Editor(draft, staff.state)
    address = f"survey:{editor.key('q0')}:label:en"
    editor.type(address, "One?", seen="?")
    with django_assert_num_queries(CHANGE):
        editor.type(address, "Two?", seen="One?")
    key = editor.key("q0")
    with django_assert_num_queries(SHOW):
        editor.page(key)


# Nothing is committed in a test: what is shown is not read from memory.
CHANGE, SHOW = 18, 8


# Large surveys


def digests_in(outline: str) -> str:
    return "".join(re.findall(r'data-digest="(\w+)"', outline))


def test_only_changed_pages_of_the_outline_are_sent_again(editor):
    pet, second = editor.key("pet"), editor.key("second")
    text = f"survey:{pet}:label:en"
    whole = editor.type(text, "Which animal?", seen="Which pet?", at=pet).json()
    assert "Which animal?" in whole["outline"] and "Second?" in whole["outline"]

    shown = {"x-outline": digests_in(whole["outline"])}
    reply = editor.type(text, "A dog?", seen="Which animal?", at=pet, headers=shown)
    outline = reply.json()["outline"]
    assert "A dog?" in outline and "Second?" not in outline
    more = editor.key("more_page")
    assert f'<li data-key="{more}" data-same></li>' in outline

    # What is selected is a part of both pages.
    address = reverse("survey_edit", args=[editor.survey.pk])
    headers = {"accept": "application/json", **shown}
    looked = editor.client.get(f"{address}?at={second}", headers=headers).json()
    assert "A dog?" in looked["outline"] and "Second?" in looked["outline"]


def test_problems_on_other_pages_are_sent_with_their_count(editor):
    pet, first = editor.key("pet"), editor.key("first")
    shown = {"x-outline": digests_in(editor.page(pet))}
    text = f"survey:{first}:label:en"
    reply = editor.type(text, "A ${pat}?", seen="First?", at=pet, headers=shown)
    body = reply.json()
    assert "1 question with a problem" in body["wrong"]
    assert "There is a problem here" in body["outline"]


def long_draft(options: int) -> Survey:
    choices = [CHOICES[0], *(["pets", str(n), f"Pet {n}"] for n in range(options))]
    return draft_of(rows=ROWS, choices=choices)


def test_the_page_shows_the_start_of_a_long_list(staff):
    editor = Editor(long_draft(150), staff.state)
    pet = editor.key("pet")
    canvas = editor.post(at=pet, act="").json()["canvas"]
    assert ">Pet 99<" in canvas["html"] and "Pet 100" not in canvas["html"]
    badges = canvas["marks"]["items"]["pet"]["badges"]
    assert badges == ["The first 100 of 150 options"]
    canvas = editor.post(at=pet, options="all", act="").json()["canvas"]
    assert ">Pet 149<" in canvas["html"]
    assert canvas["marks"]["items"]["pet"]["badges"] == []


def test_a_rule_about_one_of_many_options_is_typed(staff):
    editor = Editor(long_draft(300), staff.state)
    why = editor.key("why")
    form = {
        "rule-relevant-seen": "${pet} = 'cat'",
        "rule-relevant-code": "${pet} = 'cat'",
        "rule-relevant-group0-join": "all",
        "rule-relevant-1-group": "0",
        "rule-relevant-1-item": "pet",
        "rule-relevant-1-operator": "is",
        "rule-relevant-1-value": "Pet 250",
    }
    body = editor.post(at=why, **form).json()
    assert editor.read("why", "relevant") == "${pet} = '250'"
    assert "Pet 251" not in body["settings"]
    form["rule-relevant-seen"] = form["rule-relevant-code"] = "${pet} = '250'"
    form["rule-relevant-1-value"] = "Pet 300"
    body = editor.post(at=why, **form).json()
    assert body["hasUnsavedRule"]
    assert "No option has this text or stored value." in body["settings"]
    assert editor.read("why", "relevant") == "${pet} = '250'"


def checked(editor) -> str:
    address = reverse("survey_check", args=[editor.survey.pk])
    return editor.client.get(address).content.decode()


def test_a_title_of_several_lines_is_a_hint_before_publishing(editor):
    words = "is a title of several lines. Was more pasted than the title?"
    assert words not in checked(editor)
    title = f"survey:{editor.key('pets_page')}:label:en"
    editor.type(title, "Pets\nDo you have any?", seen="Pets")
    assert words in checked(editor)
    # A question may have several lines.
    editor.type(title, "Pets", seen="Pets\nDo you have any?")
    pet = f"survey:{editor.key('pet')}:label:en"
    editor.type(pet, "Pets\nWhich?", seen="Which pet?")
    assert words not in checked(editor)


def test_an_added_option_without_a_text_is_a_problem(editor, draft):
    pet = editor.key("pet")
    body = editor.act(f"option-add:in:{pet}", at=pet)
    address = f"{body['focus']}:en"
    assert "The option has no text" in body["settings"]
    assert "There is a problem here" in body["outline"]
    page = checked(editor)
    assert "Question 1 (page 1), option 3" in page
    assert "It has no text. Write one, or delete the option." in page
    with pytest.raises(NotPublishable):
        publish_draft(survey=draft, by="test")
    editor.type(address, "A goldfish", seen="")
    assert "problem to fix" not in checked(editor)
    # A pasted list takes the place of options that have no text yet.
    blank = editor.act(f"option-add:in:{pet}", at=pet)["focus"].split(":")[1]
    [first, *_rest] = options_of(load_book(draft), "pets")
    editor.act(f"options-paste:{first.key}", at=pet, text="Cow\nPig")
    assert blank not in {row.key for row in options_of(load_book(draft), "pets")}


def test_options_of_a_workbook_may_have_no_text(staff):
    draft = draft_of(rows=ROWS, choices=[*CHOICES, ["pets", "none", None, None]])
    editor = Editor(draft, staff.state)
    editor.type(f"survey:{editor.key('why')}:label:en", "Why?", seen="Why a ${pet}?")
    assert "people see its stored value" in checked(editor)


def test_the_second_column_is_pasted_as_the_second_language(editor):
    pet = editor.key("pet")
    [first, *_rest] = options_of(load_book(editor.survey), "pets")
    text = "1.\tFish\tPez\n2.\tFish\tPez"
    body = editor.act(f"options-paste:{first.key}", at=pet, text=text, second="es")
    assert body["message"] == (
        "2 options are pasted. There twice: “Fish”."
        " Bullets and numbers of the list are left out."
    )
    assert (
        ">\nPez</textarea>"
        in editor.client.get(
            reverse("survey_edit", args=[editor.survey.pk]), {"at": pet, "second": "es"}
        ).content.decode()
    )
    body = editor.act(f"options-paste:{first.key}", at=pet, text="A\tB\nC\tD")
    assert "Further columns are left out." in body["message"]
    assert "A B" not in editor.page(pet)


def test_translations_are_pasted_over_translations_and_add_nothing(editor):
    """Else the English text would be overwritten, and options had no English."""
    pet = editor.key("pet")
    rows = options_of(load_book(editor.survey), "pets")
    act = f"options-paste:{rows[0].key}"
    editor.act(act, at=pet, text="Gatito\nPerrito", second="es", pasted="es")
    language = languages_of(load_book(editor.survey))[1]
    texts = [
        (text.original, text.text)
        for text in texts_in(load_book(editor.survey), language)
        if text.sheet == "choices"
    ]
    assert texts[:2] == [("Cat", "Gatito"), ("Dog", "Perrito")]
    for shown in ({"language": "en", "second": "es"}, {"language": "es"}):
        lines = "\n".join(f"Opción {n}" for n in range(len(rows) + 1))
        reply = editor.post(act=act, at=pet, text=lines, pasted="es", **shown)
        assert reply.status_code == 422
        assert f"only {len(rows)} texts to translate" in reply.json()["error"]
    assert len(options_of(load_book(editor.survey), "pets")) == len(rows)


def test_translations_of_statements_are_pasted_over_those_of_the_grid(editor):
    first, grid = editor.key("first"), editor.key("grid")
    more = {"at": grid, "second": "es", "pasted": "es"}
    editor.act(f"rows-paste:{first}", text="Primero\nSegundo", **more)
    sheet = load_book(editor.survey).sheet("survey")
    labels = [list(sheet.row(editor.key(name)).cells.values()) for name in NAMES[-2:]]
    assert "Primero" in labels[0] and "Segundo" in labels[1]
    reply = editor.post(act=f"rows-paste:{first}", text="A\nB\nC", **more)
    assert reply.status_code == 422 and editor.names() == NAMES


def test_a_list_is_pasted_over_a_list_that_is_selected(editor):
    pet = editor.key("pet")
    before = options_of(load_book(editor.survey), "pets")
    act, lines = f"options-paste:{before[0].key}", ["Cow", "Pig", "Hen", "Goat", "Bee"]
    editor.act(act, at=pet, text="\n".join(lines), replaces="yes")
    rows = options_of(load_book(editor.survey), "pets")
    assert [row.key for row in rows[: len(before)]] == [row.key for row in before]
    book = load_book(editor.survey)
    label = book.sheet("choices").column("label", languages_of(book)[0])
    assert [row.cells[label] for row in rows] == lines


def test_a_name_follows_its_text_until_it_is_typed(editor):
    key = editor.act("add:text", at=editor.key("pet"))["at"]
    address = f"survey:{key}:label:en"
    spanish = f"survey:{key}:label:es"

    def write(text: str, seen: str) -> str:
        editor.type(address, text, seen=seen)
        editor.post(left=address)
        sheet = load_book(editor.survey).sheet("survey")
        return sheet.value(sheet.row(key), "name")

    assert write("Two lines in one cell", "") == "two_lines_one_cell"
    why = f"survey:{editor.key('why')}:label:en"
    editor.type(why, "Why ${two_lines_one_cell}?", seen="Why a ${pet}?")
    assert write("How old are you?", "Two lines in one cell") == "old"
    assert editor.read("why", "label", "en") == "Why ${old}?"
    # A translation gives no name, and one step takes back a text with its name.
    editor.type(spanish, "¿Cuántos años tienes?", seen="", left=spanish)
    assert "old" in editor.names()
    editor.type(address, "How tall?", seen="How old are you?")
    editor.post(left=address)
    assert "tall" in editor.names()
    editor.act("undo")
    assert "old" in editor.names()
    assert editor.read("old", "label", "en") == "How old are you?"
    editor.type(f"survey:{key}:name:", "age", seen="old")
    assert write("How old are you now?", "How old are you?") == "age"


def test_names_of_an_earlier_version_stay(editor, draft, staff):
    key = editor.act("add:text", at=editor.key("pet"))["at"]
    address = f"survey:{key}:label:en"
    editor.type(address, "How old?", seen="", left=address)
    publish_draft(survey=draft, by="test")
    start = reverse("survey_new_version", args=[draft.pk])
    editor.client.post(start, {"version": "2", "owner": STATE})
    later = Editor(Survey.objects.get(version="2"), staff.state)
    later.type(address, "How tall?", seen="How old?", left=address)
    assert later.read("old", "label", "en") == "How tall?"


def test_limits_of_a_number_write_its_rule_and_message(editor):
    key = editor.act("add:integer", at=editor.key("pet"))["at"]
    text = f"survey:{key}:label:en"
    editor.type(text, "How many sisters?", seen="", left=text)
    name = "many_sisters"
    smallest, largest = (f"survey:{key}:{end}:" for end in ("smallest", "largest"))
    assert "Accepted numbers" in editor.page(key)
    assert "People can answer any number" in checked(editor)
    editor.type(smallest, "0", seen="")
    editor.type(largest, "7", seen="")
    assert editor.read(name, "constraint") == ". >= 0 and . <= 7"
    message = f"survey:{key}:constraint_message:en"
    wanted = "The number must be from 0 to 7."
    assert editor.read(name, "constraint_message", "en") == wanted
    assert "People can answer any number" not in checked(editor)
    assert editor.type(largest, "many", seen="7").status_code == 422
    # A message of the author stays.
    editor.type(message, "Between 0 and 7, please.", seen=wanted)
    editor.type(largest, "", seen="7")
    assert editor.read(name, "constraint") == ". >= 0"
    assert editor.read(name, "constraint_message", "en") == "Between 0 and 7, please."
    editor.type(f"survey:{key}:constraint:", ". > 0", seen=". >= 0")
    assert "Accepted numbers" not in editor.page(key)


def test_the_check_leads_to_a_translation_that_is_older(editor, draft):
    pet = f"survey:{editor.key('pet')}:label"
    editor.type(f"{pet}:en", "Which animal?", seen="Which pet?")
    page = checked(editor)
    assert "The translation is older than the text." in page
    [link] = re.findall(r'href="([^"]*second=es[^"]*)"', page)
    editor_page = editor.client.get(html.unescape(link)).content.decode()
    assert f'data-field="{pet}:es"' in editor_page
    assert f"still-right:{pet}:es" in editor_page
    assert (
        f'id="f-{pet}:es"' in editor_page and f"still-right:{pet}:en" not in editor_page
    )
    body = editor.act(f"still-right:{pet}:es", at=editor.key("pet"), second="es")
    assert "still-right:" not in body["settings"]
    assert editor.read("pet", "label", "es") == "¿Qué mascota?"
    assert "The translation is older" not in checked(editor)


def test_the_check_counts_missing_translations_by_language(editor, draft):
    for name, seen in (("pet", "¿Qué mascota?"), ("why", "¿Por qué?")):
        editor.type(f"survey:{editor.key(name)}:label:es", "", seen=seen)
    page = checked(editor)
    assert "3 of 10 texts are missing. People read English there." in page
    assert "has no Spanish text" not in page
    link = re.search(r'href="([^"]*show=missing[^"]*)"', page)[1]
    rows = editor.client.get(html.unescape(link)).context["rows"]
    assert [row.original for row in rows][1:] == ["Which pet?", "Why a ${pet}?"]
