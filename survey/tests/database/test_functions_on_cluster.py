"""Functions that a cluster replaces do what those of the migrations do.

Each names the text that it replaces, so that a migration that changes one fails here
until the other has been reviewed. Here one server has both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.utils import timezone

from settings.tests.matrix.snapshot import rolled_back, table_digests
from survey.database.distribution import DISTRIBUTED
from survey.database.sql_files import read_sql
from survey.fieldwork.emails.suppression import digest_of, suppress
from survey.models import (
    Administration,
    OpenCode,
    OpenCodeSeat,
    Respondent,
    SuppressedAddress,
)
from survey.tests.conftest import FIRST_PAGE, Browser, enrol
from survey.tests.message_platforms.cast import identify
from survey.tests.open_codes.cast import (
    begin,
    begin_together,
    open_code,
    open_to_parents,
)

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(not settings.SERVERS, reason="the functions are PostgreSQL's"),
]
# Functions with the MD5 of the body that they replace.
REPLACED = {
    name: md5
    for md5, name in re.findall(
        r"^-- In place of the body ([0-9a-f]{32}), .+\n"
        r"CREATE OR REPLACE FUNCTION public\.(\w+)",
        read_sql("functions_on_cluster"),
        re.MULTILINE,
    )
}
# These work on a cluster as they are.
UNCHANGED = {
    "survey_add_partition",
    "survey_count_answers",
    "survey_destroy_answers",
    "survey_erase_answers",
    "survey_read_comments",
}
# Without Citus: a shard for everybody, which stays.
FAKES = """
CREATE FUNCTION public.shard_of(of_table text, person bigint) RETURNS bigint
LANGUAGE sql AS 'SELECT 1::bigint';
CREATE FUNCTION public.survey_hold_shard(shard bigint) RETURNS boolean
LANGUAGE sql AS 'SELECT true';
"""
ON_CLUSTER = FAKES + read_sql("functions_on_cluster").replace(
    "get_shard_id_for_distribution_column", "public.shard_of"
)


def rows(statement: str, *values: object) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchall() if cursor.description else []


@contextmanager
def functions_of_cluster(text: str = ON_CLUSTER) -> Iterator[None]:
    with rolled_back(), connection.cursor() as cursor:
        cursor.execute(text)
        yield


def test_every_function_that_reads_people_has_a_text_for_a_cluster(db):
    results = rows(
        "SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace"
        " AND prosrc ~ %s",
        rf"\y({'|'.join(DISTRIBUTED)})\y",
    )
    assert {name for (name,) in results} == REPLACED.keys() | UNCHANGED


@pytest.mark.parametrize("name", REPLACED)
def test_no_migration_has_changed_what_is_replaced(name):
    """Review the function of the cluster, and write the new digest above it."""
    digest = "SELECT md5(prosrc) FROM pg_proc WHERE proname = %s"
    assert rows(digest, name) == [(REPLACED[name],)]
    with functions_of_cluster():
        assert rows(digest, name) != [(REPLACED[name],)]


# All but language and body.
HEADER = """
SELECT proname, pg_get_function_arguments(oid), pg_get_function_result(oid),
    prosecdef, provolatile, proconfig, proisstrict, proparallel, proowner, proacl
FROM pg_proc WHERE proname = ANY (%s) ORDER BY proname
"""


def test_what_is_replaced_keeps_its_rights_and_arguments():
    before = rows(HEADER, [*REPLACED])
    assert len(before) == len(REPLACED)
    with functions_of_cluster():
        assert rows(HEADER, [*REPLACED]) == before


def test_what_a_cluster_adds_is_called_by_its_functions_alone():
    with functions_of_cluster():
        results = rows(
            "SELECT proname, has_function_privilege('console', oid, 'EXECUTE')"
            " FROM pg_proc WHERE proname IN"
            " ('survey_lock_people', 'survey_without_answers') ORDER BY proname"
        )
    assert results == [("survey_lock_people", False), ("survey_without_answers", False)]


def test_what_drops_partitions_differs_in_the_columns_of_its_queries_alone():
    body = "SELECT prosrc FROM pg_proc WHERE proname = 'survey_drop_partition'"
    [(of_migration,)] = rows(body)
    with functions_of_cluster():
        [(of_cluster,)] = rows(body)
    assert of_cluster != of_migration
    assert of_cluster.replace("SELECT 1 FROM", "SELECT FROM") == of_migration


def test_the_others_are_compared_by_what_they_do():
    assert REPLACED.keys() - {"survey_drop_partition"} == WEAKER.keys()


# Both do the same


@pytest.fixture
def codes(administration, lincoln):
    """Return codes with and without seats, of a survey that closed a month ago.

    With each, two people have begun, and one of them has answered; with the second,
    50 more, 30 of them with answers, who began together.
    """
    parents = open_to_parents(published=administration.published)
    made = [open_code(parents, lincoln, limit=limit) for limit in (None, 3)]
    for code in made:
        for answers in (True, False):
            browser = Browser()
            assert begin(browser, code).status_code == 302
            if answers:
                base = browser.bootstrap()["revision"]
                assert browser.save(1, FIRST_PAGE, base).status_code == 200
    long_ago = timezone.now() - timedelta(days=30)
    OpenCodeSeat.objects.filter(respondent__isnull=False).update(claimed_at=long_ago)
    Administration.objects.filter(pk=parents.pk).update(
        opens_at=long_ago - timedelta(days=30), closes_at=long_ago
    )
    begin_together(made[1], starts=50, answered=30)
    return made


def period_of(person: Respondent) -> int:
    return int(person.started_at.timestamp()) // 600


@pytest.fixture
def people(administration, lincoln):
    """Return people to whom messages may say different things."""
    now = timezone.now()
    calls = [
        identify(enrol(administration, lincoln, **fields))
        for fields in (
            {"language": "es"},
            {"completed_at": now, "started_at": now},
            {"withdrawn_at": now},
        )
    ]
    calls += [
        identify(enrol(administration, lincoln, grade=str(n)), email=email)
        for n, email in enumerate(("gone@example.org", "josé@example.org", ""))
    ]
    suppress(digest_of("gone@example.org"), SuppressedAddress.Reason("opted out"))
    return calls


def outcome(statement: str, *values: object) -> tuple[Any, dict[str, str]]:
    """Return the rows and the content of all tables, and undo it."""
    with rolled_back():
        return sorted(rows(statement, *values), key=repr), table_digests()


def both_do(calls: list[tuple[Any, ...]]) -> list[Any]:
    """Return what the calls return, which is the same with either text."""
    expected = [outcome(*call) for call in calls]
    with functions_of_cluster():
        assert [outcome(*call) for call in calls] == expected
    return [result for result, _ in expected]


def reading(people: list[Respondent], codes: list[OpenCode]) -> list[tuple[Any, ...]]:
    parents = codes[0].administration_id
    everybody = list(Respondent.objects.order_by("pk").values_list("pk", flat=True))
    crowded = Respondent.objects.filter(open_code__isnull=False).earliest("started_at")
    return [
        *(("SELECT * FROM survey_read_for_message(%s)", pk) for pk in everybody),
        *(("SELECT survey_answered_starts(%s)", code.pk) for code in codes),
        *(
            ("SELECT survey_answered_in_crowd(%s, %s)", crowded.open_code_id, period)
            for period in (period_of(crowded), period_of(crowded) + 1)
        ),
        ("SELECT survey_answered_people(%s, %s)", parents, everybody),
        ("SELECT survey_answered_people(%s, %s)", parents, everybody[:3]),
        (
            "SELECT survey_answered_people(%s, %s)",
            people[0].administration_id,
            everybody,
        ),
        ("SELECT survey_answered_people(%s, '{}')", parents),
    ]


def test_both_read_the_same(people, codes):
    results = both_do(reading(people, codes))
    assert sum(map(len, results[: len(people)])) == len(people)
    assert results[-8:-6] == [[(1,)], [(31,)]]
    assert results[-6:-4] == [[(30,)], [(None,)]]
    assert [len(each) for each in results[-4:]] == [32, 0, 0, 0]


RETURN = "SELECT survey_return_seats(%s)"
DELETE = "SELECT * FROM survey_delete_empty_starts(%s, %s, %s, %s)"


def returning() -> list[tuple[Any, ...]]:
    now = timezone.now()
    return [(RETURN, now), (RETURN, now - timedelta(days=90))]


def deleting(people: list[Respondent], codes: list[OpenCode]) -> list[tuple[Any, ...]]:
    closed, still_open = codes[0].administration_id, people[0].administration_id
    now = timezone.now()
    last = Respondent.objects.filter(administration=closed).latest("pk").pk
    return [
        (DELETE, closed, now, 0, 100),
        (DELETE, closed, now, 0, 1),
        (DELETE, closed, now, last, 100),
        (DELETE, closed, now - timedelta(days=90), 0, 100),
        (DELETE, still_open, now, 0, 100),
    ]


def test_both_return_the_same_seats(codes):
    assert both_do(returning()) == [[(1,)], [(0,)]]


def test_both_delete_the_same_starts(people, codes):
    results = both_do(deleting(people, codes))
    last = Respondent.objects.filter(administration=codes[0].administration).latest(
        "pk"
    )
    assert results[0] == [(22, last.pk)]
    assert results[2:] == [[(0, None)]] * 3


WEAKER = {
    "survey_read_for_message": ("i.email ~ '[^ -~]'", "false"),
    "survey_answered_starts": (" AND EXISTS (", " OR EXISTS ("),
    "survey_answered_in_crowd": ("IF starts < 50 THEN", "IF true THEN"),
    "survey_answered_people": ("x.administration_id = of_administration AND", ""),
    "survey_return_seats": ("WHERE s.claimed_at < claimed_before", ""),
    "survey_delete_empty_starts": ("IF NOT FOUND THEN", "IF false THEN"),
}


def test_a_difference_between_them_would_be_seen(people, codes):
    calls = [*reading(people, codes), *returning(), *deleting(people, codes)]
    expected = [outcome(*call) for call in calls]
    for name, (protected, weaker) in WEAKER.items():
        begins = ON_CLUSTER.index(f"CREATE OR REPLACE FUNCTION public.{name}")
        function = ON_CLUSTER[begins : ON_CLUSTER.index("END $$;", begins)]
        assert protected in function
        changed = ON_CLUSTER.replace(function, function.replace(protected, weaker))
        with functions_of_cluster(changed):
            differing = [
                call[0]
                for call, before in zip(calls, expected, strict=True)
                if outcome(*call) != before
            ]
        assert differing and all(name in statement for statement in differing), name
