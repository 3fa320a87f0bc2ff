"""The history of a draft says who changed what, and brings earlier versions back."""

from __future__ import annotations

import pytest
from django.urls import reverse

from accounts.tests.logging_in import log_in
from survey.instrument.definitions.publishing import publish_survey
from survey.instrument.drafts import commands
from survey.instrument.drafts.drafting import publish_draft
from survey.instrument.drafts.history import LONGEST_COMPARED, marked
from survey.instrument.drafts.store import change_draft, load_book, redo, undo
from survey.instrument.xlsform import import_survey, read_xlsform
from survey.tests.console.test_starting_surveys import set_label
from survey.tests.console.test_surveys import ROWS, draft_of
from survey.tests.workbooks import workbook

pytestmark = pytest.mark.django_db


@pytest.fixture
def draft(staff):
    return draft_of(district=staff.riverside)


def label_of(survey, name):
    sheet = load_book(survey).sheet("survey")
    [row] = [row for row in sheet.rows if sheet.value(row, "name") == name]
    return row.cells[3]


def text_of(client, route, *arguments, **data):
    return client.get(reverse(route, args=arguments), data).content.decode()


def test_an_earlier_version_is_found_compared_and_restored(staff, client, draft):
    log_in(client, staff.dana)
    set_label(draft, "pet", "Which animal?", by=staff.dana)
    set_label(draft, "age", "How old is it?", by=staff.dana)
    text = text_of(client, "survey_edit_history", draft.pk)
    assert "Text of “How old is it?”" in text and staff.dana.name in text
    assert "Which <del>pet</del><ins>animal</ins>?" in text
    # The mark of a translation whose original changed is no text.
    assert "<ins>4</ins>" not in text
    text = text_of(client, "survey_edit_compare", draft.pk, **{"from": 2, "to": 1})
    assert "How old is it?" not in text.split("<h2")[0]
    assert "1 changed text" in text and "<ins>How old is it</ins>" in text
    address = reverse("survey_edit_restore", args=[draft.pk, 1])
    text = client.get(address).content.decode()
    assert "1 changed text" in text and "Restore this version" in text
    client.post(address, {"seen": 2})
    draft.refresh_from_db()
    assert label_of(draft, "age") == "Its age?"
    assert label_of(draft, "pet") == "Which animal?"
    assert "An earlier version was restored." in text_of(
        client, "survey_edit_history", draft.pk
    )
    client.post(reverse("survey_edit_restore", args=[draft.pk, 0]), {"seen": 3})
    assert label_of(draft, "pet") == "Which pet?"


def test_each_change_is_said_in_words(staff, client, draft):
    log_in(client, staff.dana)
    keys = {row.cells.get(2): row.key for row in load_book(draft).sheet("survey").rows}

    def change(command):
        change_draft(draft, command, action="any", by=staff.dana)

    change(lambda book: commands.duplicate_rows(book, keys["pet"]))
    change(lambda book: commands.move_rows(book, keys["age"], after=""))
    change(lambda book: commands.delete_rows(book, keys["pet"]))
    change(
        lambda book: commands.set_value(
            book, "survey", keys["age"], field="relevant", text="1 = 1"
        )
    )
    change(
        lambda book: commands.set_options(
            book, "pets", [("cat", {"en": "Kitten"}), ("cow", {"en": "Cow"})]
        )
    )
    change(lambda book: commands.set_setting(book, field="style", text="pages"))
    undo(draft, by=staff.dana)
    redo(draft, by=staff.dana)
    text = text_of(client, "survey_edit_history", draft.pk)
    for words in (
        "Added: “Which pet?”",
        "Moved: “Its age?”",
        "Deleted: “Which pet?”",
        "When it is shown of “Its age?”",
        "Text of the option of “Kitten”",
        "Deleted: “Dog”",
        "Added: “Cow”",
        "style",
        "Undone:",
        "Done again:",
    ):
        assert words in text, words


def test_two_versions_of_a_survey_are_compared(staff, client, draft):
    publish_survey(survey=draft)
    rows = [[*row] for row in ROWS]
    rows[2][2], rows[3][5] = "Which pet do you like?", "${pet} = 'dog'"
    second = draft_of(district=staff.riverside, rows=rows, version="2")
    log_in(client, staff.dana)
    text = text_of(client, "survey_compare", second.pk)
    assert "Which pet <ins>do you like</ins>?" in text
    assert "${pet} = &#x27;cat&#x27;" in text and "${pet} = &#x27;dog&#x27;" in text
    assert "1 difference in questions, options or rules" in text
    text = text_of(client, "survey_detail", second.pk)
    assert f"{reverse('survey_compare', args=[second.pk])}?with={draft.pk}" in text
    alone = draft_of(district=staff.riverside, name="alone")
    assert "There is no other version" in text_of(client, "survey_compare", alone.pk)


def test_what_was_not_shown_is_not_restored_away(staff, client, draft):
    set_label(draft, "pet", "Which animal?", by=staff.dana)
    log_in(client, staff.dana)
    address = reverse("survey_edit_restore", args=[draft.pk, 0])
    text = client.get(address).content.decode()
    assert '<input type="hidden" name="seen" value="1">' in text
    set_label(draft, "age", "How old is it?", by=staff.state)
    refused = client.post(address, {"seen": 1})
    text = refused.content.decode()
    assert refused.status_code == 409 and "changed while this page was open" in text
    # What the colleague has changed is shown, and can be restored away then.
    assert "<del>How old is it</del>" in text
    assert '<input type="hidden" name="seen" value="2">' in text
    assert client.post(address).status_code == 409
    assert label_of(draft, "age") == "How old is it?"
    client.post(address, {"seen": 2})
    assert label_of(draft, "age") == "Its age?"


def test_languages_are_named_in_the_history(staff, client, draft):
    log_in(client, staff.dana)
    for command in (
        lambda book: commands.add_language(book, "Hmong (hmn)"),
        lambda book: commands.remove_language(book, "hmn"),
    ):
        change_draft(draft, command, action="any", by=staff.dana)
    text = text_of(client, "survey_edit_history", draft.pk)
    assert "Added: Hmong" in text and "Deleted: Hmong" in text
    assert "label::" not in text


def test_what_is_published_is_not_restored(staff, client, draft):
    set_label(draft, "pet", "Which animal?", by=staff.dana)
    set_label(draft, "age", "How old?", by=staff.dana)
    publish_draft(survey=draft, by=staff.dana)
    log_in(client, staff.dana)
    address = reverse("survey_edit_restore", args=[draft.pk, 1])
    assert "Restore this version" not in client.get(address).content.decode()
    refused = client.post(address)
    assert refused.status_code == 409
    assert label_of(draft, "age") == "How old?"


def test_wrong_numbers_are_not_there(staff, client, draft):
    set_label(draft, "pet", "Which animal?", by=staff.dana)
    log_in(client, staff.dana)
    for data in ({"from": "x", "to": 1}, {"from": 1, "to": 99}, {"from": "9" * 30}):
        address = reverse("survey_edit_compare", args=[draft.pk])
        assert client.get(address, data).status_code == 404, data
    # Without numbers, all changes are shown.
    assert "1 changed text" in text_of(client, "survey_edit_compare", draft.pk)
    address = reverse("survey_edit_restore", args=[draft.pk, 99])
    assert client.get(address).status_code == 404


def test_rules_of_a_draft_with_problems_are_compared_too(staff, client, draft):
    set_label(draft, "pet", "Which animal?", by=staff.dana)
    set_label(draft, "age", "Of ${nobody}?", by=staff.dana)
    log_in(client, staff.dana)
    text = text_of(client, "survey_edit_restore", draft.pk, 1)
    assert "1 changed text" in text and "differences in questions" not in text


@pytest.mark.parametrize("count", [1, 3])
def test_history_costs_the_same_number_of_queries_for_any_length(
    staff, client, draft, count, django_assert_num_queries
):
    for number in range(count):
        name = ("pet", "age")[number % 2]
        set_label(draft, name, f"Text {number}", by=staff.dana)
    log_in(client, staff.dana)
    with django_assert_num_queries(8):
        response = client.get(reverse("survey_edit_history", args=[draft.pk]))
    assert response.content.decode().count("change-row") == count


def test_texts_are_marked_word_by_word():
    assert marked("A <b> text", "A new <b> text") == ("A <ins>new </ins>&lt;b&gt; text")
    assert marked("", "New") == "<ins>New</ins>"
    assert marked("قلم أحمر", "قلم أزرق") == "قلم <del>أحمر</del><ins>أزرق</ins>"
    long = "word " * LONGEST_COMPARED
    assert marked(long, long + "x").startswith("<del>word")


def test_a_sheet_of_notes_has_no_names_to_read(staff, client):
    content = workbook(
        {
            "survey": ROWS,
            "choices": [["list_name", "name", "label"], ["pets", "cat", "Cat"]],
            "settings": [["form_id", "version"], ["pets", "1"]],
            "Codebook": [["code", "meaning"], [1, "One"]],
        }
    )
    reading = read_xlsform(content)
    assert reading.draft, reading.problems
    draft = import_survey(draft=reading.draft, source=content)
    set_label(draft, "pet", "Which animal?", by=staff.state)
    log_in(client, staff.state)
    assert "Which <del>pet</del><ins>animal</ins>?" in text_of(
        client, "survey_edit_history", draft.pk
    )
