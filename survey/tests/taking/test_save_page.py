"""The contract of `save_page`, which both databases' statements fulfil."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.db.utils import IntegrityError
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from survey.models import Administration, Respondent, Response
from survey.taking import storage
from survey.taking.storage import TABS, AnswerRow, Outcome, save_page
from survey.tests.conftest import enrol

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite]

ART = [AnswerRow(1, "a", "3"), AnswerRow(2, "s", None), AnswerRow(3, "h", None)]
SPORT = [AnswerRow(1, "a", "1"), AnswerRow(2, "a", "sport"), AnswerRow(3, "s", None)]


def save(respondent, rows=ART, revision=10, **changes):
    given = {
        "administration_id": respondent.administration_id,
        "respondent_id": respondent.pk,
        "issue": 1,
        "revision": revision,
        "rows": rows,
        **changes,
    }
    return save_page(**given)


def stored(respondent) -> list[AnswerRow]:
    rows = Response.objects.filter(respondent_id=respondent.pk).order_by("item_id")
    return [AnswerRow(*row) for row in rows.values_list("item_id", "state", "value")]


def test_a_page_is_saved_with_its_states_and_its_revision(maya, noor):
    receipt = save(maya, revision=1763705000000007)

    assert receipt.outcome is Outcome.SAVED
    assert abs(timezone.now() - receipt.saved_at) < timedelta(minutes=1)
    assert stored(maya) == ART
    assert set(Response.objects.values_list("revision", flat=True)) == {
        1763705000000007
    }
    assert stored(noor) == []


def test_sending_a_page_again_gives_the_same_receipt_and_no_second_row(maya):
    first = save(maya)
    assert save(maya) == first
    assert len(stored(maya)) == 3


def test_a_newer_revision_replaces_the_answers(maya):
    save(maya, ART, revision=10)
    assert save(maya, SPORT, revision=11).outcome is Outcome.SAVED
    assert stored(maya) == SPORT


def test_an_older_revision_that_arrives_late_changes_nothing(maya):
    save(maya, SPORT, revision=11)
    assert save(maya, ART, revision=10).outcome is Outcome.SUPERSEDED
    assert stored(maya) == SPORT


def test_without_the_revision_guard_a_late_save_would_overwrite(maya, monkeypatch):
    """Shows that the condition on revisions is what protects."""
    guard = "survey_response.revision < excluded.revision"
    without(monkeypatch, guard, "true")
    save(maya, SPORT, revision=11)
    save(maya, ART, revision=10)
    assert stored(maya) == ART


# Two tabs: the laptop loads, the phone continues, and the laptop saves a page that
# it still shows as it was. The low bits of a revision name its tab.
BLANK = [AnswerRow(item, "s", None) for item in (1, 2, 3)]
LAPTOP, PHONE = 1, 2


def save_from(respondent, tab, at, rows, seen=0):
    """Save as a browser does, `at` counts up from tab to tab."""
    revision = at * TABS + tab
    return save(respondent, rows, revision, seen=seen)


def without(monkeypatch, guard: str, instead: str) -> None:
    """Change a condition of the statement."""
    assert guard in storage.ON_CONFLICT
    monkeypatch.setattr(
        storage, "ON_CONFLICT", storage.ON_CONFLICT.replace(guard, instead)
    )
    storage.postgresql_insert.cache_clear()
    storage.sqlite_insert.cache_clear()


def without_exact_revisions(monkeypatch):
    """Let a tab replace rows up to the highest revision that it has seen."""
    ranges = {
        "postgresql": "<= ANY(%s::bigint[])",
        "sqlite": "<= (SELECT max(value) FROM json_each(%s))",
    }
    without(monkeypatch, storage.IS_SHOWN, ranges[connection.vendor])


@pytest.fixture(autouse=True)
def original_statements():
    yield
    storage.postgresql_insert.cache_clear()
    storage.sqlite_insert.cache_clear()


def test_a_newer_tab_does_not_undo_answers_that_it_never_showed(maya):
    save_from(maya, PHONE, 1, ART)
    assert save_from(maya, LAPTOP, 2, BLANK).outcome is Outcome.SUPERSEDED
    assert stored(maya) == ART


def test_without_seen_a_newer_tab_would_undo_them(maya):
    save_from(maya, PHONE, 1, ART)
    assert save(maya, BLANK, revision=2 * TABS + LAPTOP).outcome is Outcome.SAVED
    assert stored(maya) == BLANK


def test_a_tab_replaces_answers_that_it_was_loaded_with_or_has_saved(maya):
    loaded = TABS + PHONE
    save_from(maya, PHONE, 1, ART)
    assert save_from(maya, LAPTOP, 2, SPORT, seen=loaded).outcome is Outcome.SAVED
    # The reply was lost: the tab does not know whether its save was stored.
    assert save_from(maya, LAPTOP, 3, ART, seen=loaded).outcome is Outcome.SAVED
    assert stored(maya) == ART


def test_two_tabs_with_the_same_base_do_not_undo_each_other(maya):
    """The primary's clock is behind: both tabs count from the same number."""
    assert save_from(maya, PHONE, 1, ART).outcome is Outcome.SAVED
    assert save_from(maya, LAPTOP, 1, SPORT).outcome is Outcome.SUPERSEDED
    assert save_from(maya, LAPTOP, 2, SPORT).outcome is Outcome.SUPERSEDED
    assert stored(maya) == ART


def test_without_the_tab_in_the_revision_they_would(maya):
    """With the same low bits, each takes the other's rows for its own."""
    assert save_from(maya, PHONE, 1, ART).outcome is Outcome.SAVED
    assert save_from(maya, PHONE, 2, SPORT).outcome is Outcome.SAVED
    assert stored(maya) == SPORT


def test_a_tab_has_not_seen_rows_below_those_that_a_promotion_lost(maya):
    """Both loaded revision 9. The phone's 5 came after a promotion lost 9."""
    save_from(maya, PHONE, 5, ART)
    lost = 9 * TABS + 7
    assert save_from(maya, LAPTOP, 10, SPORT, seen=lost).outcome is Outcome.SUPERSEDED
    assert stored(maya) == ART


def test_without_the_exact_revision_it_would_undo_them(maya, monkeypatch):
    without_exact_revisions(monkeypatch)
    save_from(maya, PHONE, 5, ART)
    lost = 9 * TABS + 7
    assert save_from(maya, LAPTOP, 10, SPORT, seen=lost).outcome is Outcome.SAVED


# A page that was saved in parts: its first and third item by two tabs, and the
# second by a third tab, between the two, after the laptop was loaded.
PARTS = [1 * TABS + PHONE, 5 * TABS + 7]


def save_in_parts(respondent):
    for revision, row in zip(PARTS, (ART[0], ART[2]), strict=True):
        save(respondent, [row], revision, seen=0)
    save_from(respondent, 9, 3, [ART[1]])


def test_a_tab_replaces_all_rows_that_it_was_loaded_with(maya):
    save_in_parts(maya)
    revision = 10 * TABS + LAPTOP
    shown = [*PARTS, 3 * TABS + 9]
    receipt = save(maya, SPORT, revision, seen=PARTS[1], shown=shown)
    assert receipt.outcome is Outcome.SAVED
    assert stored(maya) == SPORT


def test_a_tab_does_not_replace_a_row_between_those_that_it_was_loaded_with(maya):
    save_in_parts(maya)
    revision = 10 * TABS + LAPTOP
    receipt = save(maya, SPORT, revision, seen=PARTS[1], shown=PARTS)
    assert receipt.outcome is Outcome.SUPERSEDED
    assert stored(maya) == ART


def test_of_a_refused_save_no_row_is_stored(maya):
    save_from(maya, PHONE, 1, [ART[1]])
    assert save_from(maya, LAPTOP, 2, SPORT).outcome is Outcome.SUPERSEDED
    assert stored(maya) == [ART[1]]
    # A promotion takes the phone's answer back, and the refused save arrives again.
    Response.objects.all().delete()
    assert save_from(maya, LAPTOP, 2, SPORT).outcome is Outcome.SAVED
    assert stored(maya) == SPORT


def test_with_its_guard_as_a_filter_it_would_be_stored_in_part(maya, monkeypatch):
    update, rest = storage.ON_CONFLICT.split("revision = CASE\n    WHEN ")
    guard = rest.split("\n    THEN")[0]
    filtered = (
        f"{update}revision = excluded.revision\nWHERE {guard}\nRETURNING saved_at"
    )
    without(monkeypatch, storage.ON_CONFLICT, filtered)
    save_from(maya, PHONE, 1, [ART[1]])
    assert save_from(maya, LAPTOP, 2, SPORT).outcome is Outcome.SUPERSEDED
    assert stored(maya) == [SPORT[0], ART[1], SPORT[2]]


def test_with_a_range_of_revisions_it_would_replace_that_row(maya, monkeypatch):
    without_exact_revisions(monkeypatch)
    save_in_parts(maya)
    revision = 10 * TABS + LAPTOP
    receipt = save(maya, SPORT, revision, seen=PARTS[1], shown=PARTS)
    assert receipt.outcome is Outcome.SAVED
    assert stored(maya) == SPORT


def test_a_repeated_save_with_seen_is_still_a_retry(maya):
    first = save_from(maya, LAPTOP, 2, SPORT, seen=10)
    assert save_from(maya, LAPTOP, 2, SPORT, seen=10) == first


def test_the_same_revision_with_other_answers_is_superseded(maya):
    save(maya, ART, revision=10)
    assert save(maya, SPORT, revision=10).outcome is Outcome.SUPERSEDED
    assert stored(maya) == ART


def test_rows_sent_in_any_order_are_the_same_page(maya):
    first = save(maya, ART)
    assert save(maya, ART[::-1]) == first


def test_a_page_of_blanks_is_saved_as_seen(maya):
    assert save(maya, [AnswerRow(1, "s", None)]).outcome is Outcome.SAVED
    assert stored(maya) == [AnswerRow(1, "s", None)]


def test_a_page_without_items_needs_no_row(maya):
    assert save(maya, []).outcome is Outcome.SAVED


def test_a_finished_respondent_is_refused(maya):
    now = timezone.now()
    Respondent.objects.filter(pk=maya.pk).update(started_at=now, completed_at=now)
    assert save(maya).outcome is Outcome.FINISHED
    assert stored(maya) == []


def test_a_retry_after_finishing_still_gets_its_receipt(maya):
    first = save(maya)
    now = timezone.now()
    Respondent.objects.filter(pk=maya.pk).update(started_at=now, completed_at=now)
    assert save(maya) == first


def test_a_withdrawn_respondent_is_refused(maya):
    Respondent.objects.filter(pk=maya.pk).update(withdrawn_at=timezone.now())
    assert save(maya).outcome is Outcome.WITHDRAWN
    assert stored(maya) == []


def test_an_erased_respondent_is_refused(maya):
    save(maya)
    Response.objects.filter(respondent_id=maya.pk).delete()
    number = maya.pk
    maya.delete()
    maya.pk = number
    assert save(maya).outcome is Outcome.WITHDRAWN
    assert stored(maya) == []


def test_a_reissued_code_ends_saves_with_the_old_one(maya):
    Respondent.objects.filter(pk=maya.pk).update(issue=2)
    assert save(maya).outcome is Outcome.REISSUED
    assert save(maya, issue=2).outcome is Outcome.SAVED


def test_a_page_is_accepted_for_ten_minutes_after_closing(maya):
    closes(maya.administration, timedelta(minutes=-9, seconds=-50))
    assert save(maya).outcome is Outcome.SAVED


def test_a_page_is_refused_ten_minutes_after_closing(maya):
    closes(maya.administration, timedelta(minutes=-10, seconds=-1))
    assert save(maya).outcome is Outcome.CLOSED
    assert stored(maya) == []


def closes(administration: Administration, after: timedelta) -> None:
    administration.closes_at = timezone.now() + after
    administration.save(update_fields=["closes_at"])


def test_a_respondent_of_another_administration_is_refused(maya):
    wrong = maya.administration_id + 1
    assert save(maya, administration_id=wrong).outcome is Outcome.WITHDRAWN
    assert stored(maya) == []


def test_values_are_stored_exactly(maya):
    texts = ["'; DROP TABLE survey_response; --", "%s %(a)s", "é\u202e🙂\n\t", " x "]
    rows = [AnswerRow(n, "a", text) for n, text in enumerate(texts)]
    assert save(maya, rows).outcome is Outcome.SAVED
    assert stored(maya) == rows


def test_only_answered_rows_have_a_value(maya):
    with pytest.raises(IntegrityError):
        save(maya, [AnswerRow(1, "s", "left over")])


def test_pages_of_many_items_are_one_statement(maya):
    rows = [AnswerRow(n, "a", str(n)) for n in range(200)]
    with CaptureQueriesContext(connection) as queries:
        assert save(maya, rows).outcome is Outcome.SAVED
    # In the test's transaction, a savepoint is around it.
    ran = [query["sql"].split()[0] for query in queries]
    assert [word for word in ran if word not in ("SAVEPOINT", "RELEASE")] in (
        ["WITH"],
        ["INSERT"],
        ["SELECT"],
    )
    assert len(stored(maya)) == 200


def test_two_respondents_never_share_a_row(maya, noor):
    save(maya, ART, revision=5)
    save(noor, SPORT, revision=4)
    assert stored(maya) == ART
    assert stored(noor) == SPORT


def test_a_statement_commits_on_its_own():
    assert connection.settings_dict["AUTOCOMMIT"]
    assert not connection.settings_dict["ATOMIC_REQUESTS"]


def test_every_respondent_has_a_different_code(maya, administration, lincoln):
    classmate = enrol(administration, lincoln, grade="07")
    assert bytes(classmate.code_digest) != bytes(maya.code_digest)
