"""Publishing freezes a survey under its digest; the database holds it so."""

from __future__ import annotations

import hashlib
import json
import threading
from dataclasses import replace
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, connections, transaction

from survey.instrument.definitions.publishing import (
    NotPublishable,
    canonical_json,
    compile_definition,
    publish_survey,
)
from survey.instrument.definitions.rule_costs import MAX_PAGE_COST
from survey.instrument.xlsform import import_survey, read_xlsform
from survey.models import Item, Option, PublishedSurvey, Survey
from survey.tests.workbooks import read
from survey.tests.xlsform.test_import_survey import climate

ROWS: list[list[Any]] = [
    ["type", "name", "label", "relevant", "constraint"],
    ["begin group", "first", "First"],
    ["integer", "b", "B?", "${a} > 1", ". > 0"],
    ["integer", "a", "A?"],
    ["select_one pets", "pet", "Pet?"],
    ["end group"],
    ["begin group", "second", "Second"],
    ["text", "c", "C?", "${a} > 1"],
    ["text", "d", "D?", "${c} != ''"],
    ["end group"],
]


def draft(**settings: str) -> Survey:
    given = {"form_id": "climate", "version": "1", **settings}
    reading = read(ROWS, settings=[list(given), list(given.values())])
    measures = {"essentials": [], "measures": []}
    return import_survey(draft=replace(reading.draft, measures=measures))


@pytest.mark.django_db
def test_draft_is_compiled_and_stored_under_its_digest():
    survey = draft()
    published = publish_survey(survey=survey)

    text = published.definition
    assert published.digest == hashlib.sha256(text.encode()).hexdigest()
    definition = json.loads(text)
    assert canonical_json(definition) == text
    ids = dict(Item.objects.values_list("name", "pk"))
    assert definition["items"] == {
        "b": {
            "id": ids["b"],
            "page": 1,
            "kind": "integer",
            "label": {"en": "B?"},
            "relevant": [">", ["$", "a"], 1],
            "constraint": [">", ["$", "b"], 0],
            "local": ["relevant", "constraint"],
        },
        "a": {"id": ids["a"], "page": 1, "kind": "integer", "label": {"en": "A?"}},
        "pet": {
            "id": ids["pet"],
            "page": 1,
            "kind": "select_one",
            "label": {"en": "Pet?"},
            "option_set": "pets",
        },
        "c": {
            "id": ids["c"],
            "page": 2,
            "kind": "text",
            "label": {"en": "C?"},
            "relevant": [">", ["$", "a"], 1],
        },
        "d": {
            "id": ids["d"],
            "page": 2,
            "kind": "text",
            "label": {"en": "D?"},
            "relevant": ["!=", ["$", "c"], ""],
        },
    }
    assert definition["pages"][0] == {
        "name": "first",
        "title": {"en": "First"},
        "blocks": [{"label": {}, "grid": False, "items": ["b", "a", "pet"]}],
    }
    assert definition["option_sets"] == {
        "pets": [
            {"value": "cat", "label": {"en": "Cat"}, "attributes": {}},
            {"value": "dog", "label": {"en": "Dog"}, "attributes": {}},
        ]
    }
    order = definition["order"]
    assert sorted(order) == ["a", "b", "c", "d", "pet"]
    assert order.index("a") < order.index("b")
    assert order.index("a") < order.index("c") < order.index("d")
    assert (definition["format"], definition["name"]) == (1, "climate")


@pytest.mark.django_db
def test_publishing_again_changes_nothing():
    survey = draft()
    first = publish_survey(survey=survey)
    survey.refresh_from_db()
    moment = survey.published_at
    assert publish_survey(survey=survey) == first
    survey.refresh_from_db()
    assert survey.published_at == moment is not None
    assert PublishedSurvey.objects.count() == 1


@pytest.mark.django_db
def test_publishing_costs_the_same_number_of_queries_for_any_size(
    django_assert_num_queries,
):
    small = draft()
    large = import_survey(draft=read_xlsform(climate()).draft)
    for survey in (small, large):
        # The savepoint and its release, the lock, five reads, two writes.
        with django_assert_num_queries(11):
            publish_survey(survey=survey)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("name", "rules", "reason"),
    [
        ("a", {"relevant": ["$", "b"]}, "wait for each other"),
        ("a", {"relevant": ["$", "nobody"]}, "reads nobody"),
        ("a", {"constraint": ["jr:choice-name", "x", "gone"]}, "reads gone"),
    ],
)
def test_draft_changed_by_hand_is_checked_again(name, rules, reason):
    survey = draft()
    Item.objects.filter(name=name).update(rules=rules)
    with pytest.raises(NotPublishable, match=reason):
        publish_survey(survey=survey)
    survey.refresh_from_db()
    assert survey.published_at is None
    assert not PublishedSurvey.objects.exists()


@pytest.mark.django_db
def test_select_without_options_and_survey_without_questions_are_refused():
    survey = draft()
    Option.objects.all().delete()
    with pytest.raises(NotPublishable, match="pet has no options"):
        publish_survey(survey=survey)
    Item.objects.all().delete()
    with pytest.raises(NotPublishable, match="Nothing"):
        publish_survey(survey=survey)


# --- Frozen --------------------------------------------------------------

CHANGES = {
    "definition": "UPDATE survey_publishedsurvey SET definition = 'x'",
    "digest": "UPDATE survey_publishedsurvey SET digest = 'x'",
    "published": "DELETE FROM survey_publishedsurvey",
    "survey": "UPDATE survey_survey SET version = '2'",
    "thawing": "UPDATE survey_survey SET published_at = NULL",
    "survey gone": "DELETE FROM survey_survey",
    "page": "UPDATE survey_page SET name = 'x'",
    "page gone": "DELETE FROM survey_page",
    "page more": "INSERT INTO survey_page (survey_id, position, name, title)"
    " SELECT id, 99, 'x', '{}' FROM survey_survey",
    "block": "UPDATE survey_block SET position = position + 10",
    "block gone": "DELETE FROM survey_block",
    "block more": "INSERT INTO survey_block (page_id, position, label, is_grid)"
    " SELECT id, 99, '{}', (0 = 1) FROM survey_page",
    "item": "UPDATE survey_item SET kind = 'text'",
    "item gone": "DELETE FROM survey_item",
    "item more": "INSERT INTO survey_item (survey_id, block_id, position, name, kind,"
    " label, hint, guidance, rules) SELECT survey_id, block_id, 99, 'x', kind,"
    " label, hint, guidance, rules FROM survey_item WHERE name = 'a'",
    "set": "UPDATE survey_optionset SET name = 'x'",
    "set gone": "DELETE FROM survey_optionset",
    "set more": "INSERT INTO survey_optionset (survey_id, name)"
    " SELECT id, 'x' FROM survey_survey",
    "option": "UPDATE survey_option SET value = value",
    "option gone": "DELETE FROM survey_option",
    "measures": "UPDATE survey_surveymeasures SET content = '{}'",
    "measures gone": "DELETE FROM survey_surveymeasures",
    "measures added": "INSERT INTO survey_surveymeasures (survey_id, content)"
    " SELECT id, '{}' FROM survey_survey",
    "option more": "INSERT INTO survey_option (option_set_id, position, value, label,"
    " attributes) SELECT id, 99, 'x', '{}', '{}' FROM survey_optionset",
}


@pytest.mark.django_db
def test_database_refuses_changes_to_a_published_survey():
    publish_survey(survey=draft())
    for statement in CHANGES.values():
        with (
            pytest.raises(DatabaseError, match="frozen|never changes"),
            transaction.atomic(),
            connection.cursor() as cursor,
        ):
            cursor.execute(statement)
            pytest.fail(statement)
    survey = Survey.objects.get()
    assert survey.version == "1"
    assert survey.published.get().definition == canonical_json(
        compile_definition(survey)
    )


@pytest.mark.django_db
def test_same_changes_are_allowed_in_a_draft():
    draft()
    changes = [change for change in CHANGES if change.split()[-1] in ("set", "more")]
    changes += ["survey", "page", "block", "item", "option"]
    changes += ["measures", "measures gone"]
    for change in changes:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(CHANGES[change])
            assert cursor.rowcount > 0, change
            transaction.set_rollback(True)


@pytest.mark.django_db
def test_rows_cannot_move_into_or_out_of_a_published_survey():
    publish_survey(survey=draft())
    second = draft(form_id="other")
    published = Survey.objects.get(name="climate")
    for source, target in ((published, second), (second, published)):
        with pytest.raises(DatabaseError, match="frozen"), transaction.atomic():
            source.pages.update(survey=target, position=77)


@pytest.mark.django_db
def test_other_drafts_can_still_be_changed_and_deleted():
    publish_survey(survey=draft())
    second = draft(form_id="other")
    second.items.filter(name="a").update(kind="decimal")
    second.delete()
    assert Survey.objects.get().name == "climate"


@pytest.mark.django_db
def test_without_the_triggers_a_published_survey_changes():
    publish_survey(survey=draft())
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("DROP TRIGGER frozen_definition ON survey_publishedsurvey")
            cursor.execute("DROP TRIGGER frozen_survey_item ON survey_item")
        else:
            cursor.execute("DROP TRIGGER frozen_definition_update")
            cursor.execute("DROP TRIGGER frozen_survey_item_update")
        cursor.execute(CHANGES["definition"])
        cursor.execute(CHANGES["item"])
    assert PublishedSurvey.objects.get().definition == "x"
    assert set(Item.objects.values_list("kind", flat=True)) == {"text"}


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(
    connection.vendor != "postgresql", reason="SQLite has one writer at a time"
)
@pytest.mark.parametrize("change", ["item more", "item", "option gone", "page more"])
def test_row_added_while_publishing_is_refused(change: str):
    survey = draft()
    outcome: list[str] = []
    started = threading.Event()

    def slip_in() -> None:
        started.set()
        try:
            with connection.cursor() as cursor:
                cursor.execute(CHANGES[change])
            outcome.append("slipped in")
        except DatabaseError as error:
            outcome.append(str(error))
        finally:
            connections.close_all()

    with transaction.atomic():
        publish_survey(survey=survey)
        thread = threading.Thread(target=slip_in)
        thread.start()
        started.wait()
        thread.join(0.5)
        assert thread.is_alive(), "the row should wait for the publishing"
    thread.join()
    assert "frozen" in outcome[0]
    assert json.loads(survey.published.get().definition) == compile_definition(survey)


@pytest.mark.django_db(transaction=True)
def test_test_database_can_be_emptied_after_publishing():
    """Flushing deletes rows one by one on SQLite; the next test checks that
    it could, and that the triggers are back."""
    publish_survey(survey=draft())


@pytest.mark.django_db
def test_emptied_test_database_has_its_triggers_again():
    assert not PublishedSurvey.objects.exists()
    publish_survey(survey=draft())
    with pytest.raises(DatabaseError, match="never changes"), transaction.atomic():
        PublishedSurvey.objects.all().delete()


# --- The command ---------------------------------------------------------


@pytest.mark.django_db
def test_command_prints_the_digest(capsys):
    survey = draft()
    call_command("publish_survey", "climate")
    assert capsys.readouterr().out.strip() == survey.published.get().digest
    call_command("publish_survey", "climate", "--version", "1")
    assert capsys.readouterr().out.strip() == survey.published.get().digest


@pytest.mark.django_db
def test_command_publishes_the_only_draft():
    publish_survey(survey=draft())
    second = draft(version="2")
    call_command("publish_survey", "climate")
    assert second.published.exists()


@pytest.mark.django_db
def test_command_requires_a_version_where_there_are_several_drafts():
    draft()
    draft(version="2")
    with pytest.raises(CommandError, match="--version: 1, 2"):
        call_command("publish_survey", "climate")
    with pytest.raises(CommandError, match="no survey other"):
        call_command("publish_survey", "other")


@pytest.mark.django_db
def test_command_says_why_a_draft_cannot_be_published():
    draft()
    Item.objects.filter(name="a").update(rules={"relevant": ["$", "b"]})
    with pytest.raises(CommandError, match="wait for each other"):
        call_command("publish_survey", "climate")


@pytest.mark.django_db
def test_page_with_too_costly_rules_is_not_published():
    """Drafts can be changed by hand; fewer of the same rule are published."""
    survey = draft()

    def constrain(count: int) -> None:
        chosen = [">", ["count-selected", ["$", "c"]], 3]
        constraint = ["or", *[chosen] * count]
        Item.objects.filter(name="c").update(rules={"constraint": constraint})

    constrain(450)
    with pytest.raises(NotPublishable, match=f"page 2 .* most {MAX_PAGE_COST:,}"):
        publish_survey(survey=survey)
    constrain(300)
    assert publish_survey(survey=survey)
