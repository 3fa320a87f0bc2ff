"""Which roles may read free text, of whom, and of which questions."""

from __future__ import annotations

from importlib import import_module

import pytest
from django.db import connection
from django.utils import timezone

from survey.models import Item, Respondent, Response
from survey.tests.conftest import enrol
from survey.tests.database.test_partitions import (  # noqa: F401 - a fixture
    granted,
    refused,
    session,
)

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has no roles"),
]
READ = "SELECT * FROM survey_read_comments(%s, %s, %s, %s)"


@pytest.fixture
def question(granted, administration, lincoln):  # noqa: F811
    """Return a question with free text, which three people have answered."""
    item = Item.objects.filter(kind="text").first()
    # In the same block.
    first = enrol(administration, lincoln).pk // 128 * 128 + 256
    for n in range(3):
        person = enrol(administration, lincoln, pk=first + n)
        write(person, item, f"comment {n}")
    return item


def write(person: Respondent, item: Item, text: str) -> None:
    Response.objects.create(
        administration_id=person.administration_id,
        respondent_id=person.pk,
        item_id=item.pk,
        state="a",
        value=text,
        revision=1,
        saved_at=timezone.now(),
    )


def test_the_console_role_reads_comments_and_no_response(question, administration):
    with session("console") as console:
        console.execute(READ, [administration.pk, question.pk, 0, 100])
        [(comments, schools, following)] = console.fetchall()
        assert {"comment 0", "comment 1", "comment 2"} <= set(comments)
        assert len(schools) == 1
        assert following is None
        reading = "SELECT value FROM survey_response"
        assert refused(console, reading) == "InsufficientPrivilege"


def test_no_page_is_of_a_chosen_person(question, administration):
    """The role may read keys and names: pages of one person would tell who wrote."""
    people = Respondent.objects.filter(administration=administration)
    newest = people.latest("pk").pk
    read = 0
    with session("console") as console:
        for block in range(newest // 128 - 1, newest // 128 + 2):
            for at_least in (1, 2, 100):
                values = [administration.pk, question.pk, block, at_least]
                console.execute(READ, values)
                [(comments, _, _)] = console.fetchall()
                assert comments is None or len(comments) >= 3
                read += comments is not None
    assert read
    # The twin: without blocks, the newest person's page has only their comment.
    function = import_module("survey.migrations.0004_functions_of_roles").READ_COMMENTS
    weaker = function.replace(":= 128", ":= 1").replace(
        "public.survey_read", "pg_temp.read"
    )
    assert weaker.count(":= 1;") == 1
    with session("groundswell") as owner:
        owner.execute(weaker)
        values = [administration.pk, question.pk, newest, 100]
        owner.execute(
            "SELECT comments FROM pg_temp.read_comments(%s, %s, %s, %s)", values
        )
        assert owner.fetchall() == [(["comment 2"],)]


def test_other_answers_are_not_read(question, administration):
    with session("console") as console:
        for item in Item.objects.exclude(kind="text"):
            values = [administration.pk, item.pk, 0, 100]
            assert refused(console, READ, *values) == "InsufficientPrivilege"
        values = [administration.pk, None, 0, 100]
        assert refused(console, READ, *values) == "InsufficientPrivilege"


@pytest.mark.parametrize("role", ["taking", "worker", "reports"])
def test_no_other_role_may_call_the_function(question, administration, role):
    values = [administration.pk, question.pk, 0, 100]
    with session(role) as cursor:
        assert refused(cursor, READ, *values) == "InsufficientPrivilege"
