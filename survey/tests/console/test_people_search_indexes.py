"""Searches among 20,000 people use indexes."""

from __future__ import annotations

from contextlib import closing

import psycopg2
import pytest
from django.conf import settings
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from accounts.models import District, School
from accounts.permissions import Permissions
from accounts.tests.logging_in import log_in
from survey.console.people.search import find_people

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(
        "connection.vendor != 'postgresql'", reason="SQLite is for single schools"
    ),
]
PEOPLE, SCHOOLS, DISTRICTS = 20_000, 40, 8
MAX_ROWS = PEOPLE // 4


@pytest.fixture
def clean_tables():
    """Remove what earlier tests left: tables full of dead rows have other plans."""
    name = connection.settings_dict["NAME"]
    address = {"host": settings.SERVERS, "port": 5432, "user": "postgres"}
    with closing(psycopg2.connect(dbname=name, **address)) as superuser:
        superuser.autocommit = True
        with superuser.cursor() as cursor:
            cursor.execute(
                "VACUUM accounts_school, accounts_district, survey_respondent,"
                " survey_identity"
            )


@pytest.fixture
def crowd(clean_tables, administration, staff):
    districts = District.objects.bulk_create(
        District(code=f"d{n}", name=f"District {n}") for n in range(DISTRICTS)
    )
    schools = School.objects.bulk_create(
        School(district=districts[n % DISTRICTS], code=f"s{n}", name=f"School {n}")
        for n in range(SCHOOLS)
    )
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = 0")
        # Foreign keys are not checked: that would take longer than all the rest.
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(
            """
            INSERT INTO survey_respondent (administration_id, school_id, grade,
                language, attributes, code_digest, code_key_version, issue)
            SELECT %s, %s + n %% %s, '07', 'en', '{}', sha256(n::text::bytea), 1, 1
            FROM generate_series(1, %s) AS n
            """,
            [administration.pk, schools[0].pk, SCHOOLS, PEOPLE],
        )
        cursor.execute(
            """
            INSERT INTO survey_identity (respondent_id, administration_id, district_id,
                external_id, given_name, family_name, email)
            SELECT r.id, r.administration_id, s.district_id, 'R' || r.id,
                   'Given' || r.id % 2000, 'Family' || r.id % 30000, ''
            FROM survey_respondent r JOIN accounts_school s ON s.id = r.school_id
            """
        )
        cursor.execute("SET LOCAL session_replication_role = origin")
        cursor.execute("ANALYZE survey_respondent, survey_identity")
        # Otherwise plans depend on when earlier tests had them counted.
        cursor.execute("ANALYZE accounts_school, accounts_district")
    return schools


def prefer_indexes():
    # With so few people, the planner may prefer to read them all.
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_mergejoin = off")
        cursor.execute("SET LOCAL enable_hashjoin = off")


def drop_indexes():
    with connection.cursor() as cursor:
        cursor.execute(
            "DROP INDEX people_by_family_name, people_by_given_name, people_by_email"
        )


def rows_for(client, address, **query) -> int:
    """Return how many rows of tables and indexes a page's statements read."""
    with CaptureQueriesContext(connection) as context:
        assert client.get(address, query).status_code == 200
    statements = [row["sql"] for row in context.captured_queries]
    return sum(
        map(
            rows_of,
            (row for row in statements if row.startswith("SELECT")),
        )
    )


def rows_of(statement: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}")
        [([explained],)] = cursor.fetchall()
    return rows_read(explained["Plan"])


def rows_read(node: dict) -> int:
    if inner := node.get("Plans"):
        return sum(map(rows_read, inner))
    rows = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
    return rows * node["Actual Loops"]


SEARCHES = (
    *("family12345", "r4711", "given77 family29077", "family29077, given77", "zz"),
    "de la cruz, ana maria",
)


def plan_of(staff, administration, query) -> str:
    with CaptureQueriesContext(connection) as context:
        find_people(Permissions(staff.state), administration, query)
    [search] = [
        statement["sql"]
        for statement in context.captured_queries
        if 'FROM "survey_identity"' in statement["sql"]
    ]
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {search}")
        return "\n".join(line for (line,) in cursor.fetchall())


def test_searches_use_indexes_and_pages_read_few_rows(
    client, staff, administration, crowd
):
    plans = {query: plan_of(staff, administration, query) for query in SEARCHES}
    assert {query for query, plan in plans.items() if "Seq Scan" in plan} == set()
    with transaction.atomic():
        drop_indexes()
        plan = plan_of(staff, administration, "family12345")
        transaction.set_rollback(True)
    assert "people_by" not in plan
    assert "Seq Scan" in plan

    prefer_indexes()
    address = f"/console/administrations/{administration.pk}/people/"
    log_in(client, staff.state)
    rows = {
        "schools": rows_for(client, address),
        "a school": rows_for(client, address, school=crowd[7].pk),
        "its last page": rows_for(client, address, school=crowd[7].pk, page=20),
        "in a school": rows_for(client, address, school=crowd[7].pk, q="family12"),
        "a rare name": rows_for(client, address, q="family12345"),
        "a common beginning": rows_for(client, address, q="fa"),
        "two words": rows_for(client, address, q="given77 family29077"),
        "an ID": rows_for(client, address, q="R4711"),
        "no match": rows_for(client, address, q="zzzz"),
    }
    print(rows)
    assert {name: count for name, count in rows.items() if count > MAX_ROWS} == {}

    log_in(client, staff.dana)
    assert rows_for(client, address, q="zzzz") <= MAX_ROWS

    # The twin: without the indexes, all rows are read.
    drop_indexes()
    log_in(client, staff.state)
    assert rows_for(client, address, q="family12345") > PEOPLE // 2
