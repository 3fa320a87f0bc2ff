"""What each of the stack's database roles may do, and what it is refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, timedelta

import pytest
from django.db import DEFAULT_DB_ALIAS, connection
from django.test import RequestFactory
from django.utils import timezone

from accounts.permissions import Places
from reports.answers.selection import Selection
from reports.answers.snapshot import snapshot
from reports.console.exports.forms import size_of
from reports.exports.local_days import LocalDays
from reports.exports.offered_versions import offered_versions
from reports.exports.panel_people import (
    count_people_in_several,
    joined_ids,
    person_ids,
)
from reports.exports.release_mask import release_mask, released_keys
from reports.exports.released_rows import released_rows
from reports.rates import rollup_query
from reports.tests.exports.conftest import released
from survey.fieldwork.administrations.removal import remove_administration
from survey.fieldwork.open_codes.limits import students_of_school
from survey.fieldwork.open_codes.lookup import COLUMNS
from survey.models import Administration, Identity, OpenCode, Respondent
from survey.taking.next_part import begin_part, next_part
from survey.taking.published import published_survey
from survey.taking.saved_answers import read_saved_answers
from survey.taking.session import RespondentSession
from survey.tests.database.test_partitions import (
    ADD,
    ROW,
    refused,
    session,
)
from survey.tests.open_codes.cast import open_code
from survey.tests.taking.test_next_part import create_module
from survey.tests.taking.test_storage_races import save

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has no roles"),
    pytest.mark.usefixtures("granted"),
]

NAMES = "SELECT family_name FROM survey_identity"
ANSWERS = "SELECT value FROM survey_response"
STAFF = "SELECT password FROM accounts_user"


def reads(role: str, statement: str) -> bool:
    with session(role) as cursor:
        # A default of the reports role, which anybody may change.
        cursor.execute("SET default_transaction_read_only = off")
        try:
            cursor.execute(statement)
        except Exception as error:
            assert type(error).__name__ == "InsufficientPrivilege"
            return False
        return True


@pytest.mark.parametrize(
    ("role", "names", "answers", "staff"),
    [
        ("taking", False, True, False),
        ("console", True, False, True),
        ("worker", True, False, True),
        ("reports", False, True, False),
    ],
)
def test_no_role_reads_both_names_and_answers(
    administration: Administration, role: str, names: bool, answers: bool, staff: bool
) -> None:
    assert reads(role, NAMES) is names
    assert reads(role, ANSWERS) is answers
    assert reads(role, STAFF) is staff
    # A partition is a table of its own, which the parent's rights don't cover.
    assert not reads(role, f"SELECT value FROM survey_response_{administration.pk}")


def test_respondents_servers_read_a_schools_number_and_not_who_supplied_it(
    administration: Administration,
) -> None:
    """The number limits the starts with the school's open code."""
    codes = OpenCode.objects.annotate(students=students_of_school())
    statement, values = codes.values_list(*COLUMNS).query.sql_with_params()
    with session("taking") as cursor:
        cursor.execute(statement, values)
    assert not reads("taking", "SELECT by FROM survey_schoolcount")


def test_a_partition_made_later_is_closed_too(publish) -> None:
    with session("console") as console:
        console.execute(ROW, [publish(name="other").pk])
        (number,) = console.fetchone()
        console.execute(ADD, [number])
    for role in ("console", "worker", "reports", "taking"):
        assert not reads(role, f"SELECT value FROM survey_response_{number}")


def test_rights_granted_in_advance_would_open_it(publish) -> None:
    """The twin: with default privileges the console reads a new partition."""
    with session("groundswell") as owner:
        owner.execute("ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO console")
    try:
        with session("console") as console:
            console.execute(ROW, [publish(name="other").pk])
            (number,) = console.fetchone()
            console.execute(ADD, [number])
        assert reads("console", f"SELECT value FROM survey_response_{number}")
    finally:
        with session("groundswell") as owner:
            owner.execute(
                "ALTER DEFAULT PRIVILEGES REVOKE SELECT ON TABLES FROM console"
            )


@pytest.mark.parametrize("role", ["taking", "console", "worker", "reports"])
@pytest.mark.parametrize(
    "statement",
    [
        "SET ROLE groundswell",
        "SET ROLE postgres",
        "COPY survey_respondent TO PROGRAM 'cat'",
        "SELECT pg_read_file('postgresql.conf')",
        "SELECT rolpassword FROM pg_authid",
        "ALTER TABLE survey_response OWNER TO CURRENT_USER",
    ],
)
def test_no_role_can_become_another(role: str, statement: str) -> None:
    assert not reads(role, statement)


@pytest.mark.parametrize("role", ["taking", "console", "worker", "reports"])
def test_no_role_reads_the_password_of_the_replica(role: str) -> None:
    with session(role) as cursor:
        assert refused(cursor, "SHOW primary_conninfo") == "InsufficientPrivilege"


DELETE_STARTS = "SELECT survey_delete_empty_starts(1, now(), 0, 1)"


@pytest.mark.parametrize(
    ("role", "may"),
    [("worker", True), ("taking", False), ("console", False), ("reports", False)],
)
def test_only_the_worker_may_delete_starts_without_answers(role, may) -> None:
    assert reads(role, DELETE_STARTS) is may


@contextmanager
def connected_as(role: str) -> Iterator[None]:
    """Let this process's queries run as one of the roles."""
    original = {name: connection.settings_dict[name] for name in ("USER", "PORT")}
    connection.close()
    connection.settings_dict.update(USER=role, PORT=5432)
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict.update(original)


def test_the_reports_role_can_count_and_export(administration, maya) -> None:
    save(maya, "an answer", 7)
    maya.started_at = timezone.now() - timedelta(minutes=1)
    maya.save(update_fields=["started_at"])
    selection = Selection([administration], Places(state=True))
    with connected_as("reports"):
        _, counts = rollup_query.count([administration])
        with snapshot(selection) as taken:
            assert taken.count_people() == {administration.pk: 1}
            assert taken.count_responses() == 3
    assert counts


def test_the_taking_role_goes_on_to_a_module(administration, lincoln, maya) -> None:
    module = create_module(administration, lincoln.district)
    now = timezone.now()
    Respondent.objects.filter(pk=maya.pk).update(started_at=now, completed_at=now)
    digest = administration.published_id
    taking = RespondentSession(administration.pk, maya.pk, 1, digest, "en", "tag")
    with connected_as("taking"):
        saved = read_saved_answers(taking, published_survey(digest), "")
        part = next_part(taking, saved, "")
        assert part is not None
        begun = begin_part(RequestFactory().post("/"), taking, part, "a device")
    assert begun is not None
    assert begun.respondent_id == module.respondents.get().pk


def test_the_console_and_worker_roles_can_list_people(administration, maya) -> None:
    Identity.objects.create(
        respondent=maya,
        administration=administration,
        district=maya.school.district,
        external_id="1",
        family_name="Okafor",
    )
    for role in ("console", "worker"):
        with connected_as(role):
            assert Identity.objects.get().family_name == "Okafor"


@pytest.mark.parametrize("denominator", ["roster", "count"])
def test_the_console_role_can_remove_an_administration(
    administration, maya, denominator
) -> None:
    lincoln = maya.school
    if denominator == "count":
        Administration.objects.update(denominator=denominator)
        open_code(administration, lincoln, limit=3)
    with connected_as("console"):
        administration.refresh_from_db()
        remove_administration(
            administration=administration,
            seen=None,
            confirmed=administration.name,
            by="a test",
        )
    assert not Administration.objects.exists()


def test_the_console_role_can_show_the_size_of_an_export(administration, maya) -> None:
    maya.started_at = timezone.now() - timedelta(minutes=1)
    maya.save(update_fields=["started_at"])
    save(maya, "an answer", 7)
    for without_names in (False, True):
        if without_names:
            released(administration)
        for places in (Places(state=True), Places(schools=frozenset([maya.school_id]))):
            with connected_as("console"):
                size = size_of(
                    [administration], places, False, without_names=without_names
                )
            # Nobody has answered an item of the survey.
            assert size.respondents == (0 if without_names else 1)
            assert not size.unreleased


def test_the_console_role_can_count_people_of_a_panel(administration, maya) -> None:
    Identity.objects.create(
        respondent=maya,
        administration=administration,
        district=maya.school.district,
        external_id="1",
    )
    maya.started_at = timezone.now() - timedelta(minutes=1)
    maya.save(update_fields=["started_at"])
    save(maya, "an answer", 7)
    released(administration)
    places = Places(state=True)
    with connected_as("console"):
        keys = released_keys(
            administration, DEFAULT_DB_ALIAS, places, finished_only=False
        )
        selection = Selection([administration], places, keys={administration.pk: keys})
        assert count_people_in_several(selection) == 0


def test_the_reports_role_can_read_a_release(administration, maya) -> None:
    maya.started_at = timezone.now() - timedelta(minutes=1)
    maya.save(update_fields=["started_at"])
    save(maya, "an answer", 7)
    released(administration)
    [offered] = offered_versions([administration]).values()
    with connected_as("reports"):
        mask = release_mask(administration, DEFAULT_DB_ALIAS)
        rows = released_rows(
            mask,
            Places(state=True),
            offered,
            LocalDays(UTC),
            finished_only=False,
            is_long=False,
        )
    assert rows.keys_in_file() == []


def test_the_worker_role_can_find_people_of_a_panel(administration, maya) -> None:
    Identity.objects.create(
        respondent=maya,
        administration=administration,
        district=maya.school.district,
        external_id="1",
    )
    with connected_as("worker"):
        joined = joined_ids(["student"])
        ids = person_ids([maya.pk], {administration.pk: administration}, joined)
        versions = offered_versions([administration])
    assert ids[maya.pk].external_id == "1"
    assert versions[administration.pk].is_single


def test_the_reports_role_cannot_read_the_keys_of_panels(administration) -> None:
    assert not reads("reports", "SELECT key FROM reports_panelproject")
    assert not reads("taking", "SELECT key FROM reports_panelproject")
    assert reads("worker", "SELECT key FROM reports_panelproject")
