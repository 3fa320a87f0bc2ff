"""IDs that change, and files that identify people by another column."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import User
from survey.models import Identity, RosterUpload
from survey.people.rosters import diff
from survey.people.rosters.identity_changes import (
    OTHER_NAME,
    OTHER_PERSON,
    TWO_ROWS,
)
from survey.people.rosters.layouts import KnownPlace
from survey.people.rosters.unreadable import RosterUnreadable
from survey.tests.rosters.roster_imports import counts, run_import

HEADER = "student id,given name,family name,birth date"
CHANGED = "student id,previous id,given name,family name,birth date"
OLD = ["a1,Maya,Lopez,2014-03-04", "a2,Ali,Diaz,2013-12-31", "a3,Zoe,Kim,2012-05-06"]
NEW = [
    "b1,a1,Maya,Lopez,2014-03-04",
    "b2,a2,Ali,Diaz,2013-12-31",
    "b3,a3,Zoe,Kim,2012-05-06",
]
pytestmark = pytest.mark.django_db


@pytest.fixture
def apply(administration, lincoln):
    def apply(header, *rows, **options):
        known = KnownPlace.of(None, lincoln)
        return run_import(administration, header, *rows, known=known, **options)

    return apply


def pks():
    return dict(Identity.objects.values_list("external_id", "respondent"))


def test_people_keep_their_answers_under_a_new_id(apply):
    apply(HEADER, *OLD)
    before = pks()
    report = apply(CHANGED, *NEW)
    assert counts(report) == (0, 3, 0, 0)
    assert pks() == {f"b{n}": before[f"a{n}"] for n in (1, 2, 3)}
    # And again, when they are known by the new one.
    assert counts(apply(CHANGED, *NEW)) == (0, 0, 3, 0)


def test_a_new_person_can_have_an_unknown_previous_id(apply):
    apply(HEADER, *OLD)
    report = apply(CHANGED, "b4,z9,Noor,Haddad,2012-05-06")
    assert counts(report) == (1, 0, 0, 0)


def test_a_file_with_other_ids_is_refused_and_names_both_columns(apply, administration):
    apply(HEADER, *OLD)
    RosterUpload.objects.create(
        administration=administration,
        by=User.objects.create(email="dana@x.org"),
        state="applied",
        confirmed_at=timezone.now(),
        ended_at=timezone.now() - timedelta(days=1),
        name="r.csv",
        size=1,
        report={"columns": {"external_id": "Local ID"}},
    )
    new_rows = [row.replace("a", "77", 1) for row in OLD]
    with pytest.raises(RosterUnreadable, match="3 of 3 people.*“Local ID” did before"):
        apply(HEADER, *new_rows)
    assert len(pks()) == 3


def test_everybody_would_be_doubled_without_the_refusal(apply, monkeypatch):
    monkeypatch.setattr(diff, "refuse_other_identifiers", lambda *_: None)
    apply(HEADER, *OLD)
    apply(HEADER, *[row.replace("a", "77", 1) for row in OLD])
    assert len(pks()) == 6


def test_a_namesake_or_half_of_a_file_is_not_refused(apply):
    apply(HEADER, *OLD)
    report = apply(HEADER, OLD[0].replace("a1", "c1"), *OLD[1:])
    assert counts(report) == (1, 0, 2, 0)


def reasons(report):
    return [(cell.row, cell.reason) for cell in report.rejections]


def test_two_rows_for_one_person_are_rejected(apply):
    apply(HEADER, *OLD)
    before = pks()
    report = apply(CHANGED, NEW[0], NEW[0].replace("b1", "b9"), NEW[1], partial=True)
    assert reasons(report) == [(2, TWO_ROWS), (3, TWO_ROWS)]
    assert pks() == {"a1": before["a1"], "b2": before["a2"], "a3": before["a3"]}


def test_an_id_that_is_another_persons_is_rejected(apply):
    apply(HEADER, *OLD)
    before = pks()
    report = apply(CHANGED, "a2,a1,Maya,Lopez,2014-03-04", complete_for="schools",
                   partial=True)  # fmt: skip
    assert reasons(report) == [(2, OTHER_PERSON)]
    assert pks() == before
    assert not Identity.objects.exclude(respondent__withdrawn_at=None).exists()


def test_an_id_of_somebody_with_another_name_is_rejected(apply):
    """The new number of somebody new can be the old number of somebody else."""
    apply(HEADER, *OLD)
    report = apply(CHANGED, "a2,z9,Noor,Haddad,2011-01-01", partial=True)
    assert reasons(report) == [(2, OTHER_NAME)]
    assert Identity.objects.get(external_id="a2").given_name == "Ali"


def test_a_rejected_row_protects_the_person_of_its_previous_id(apply):
    apply(HEADER, *OLD)
    report = apply(
        CHANGED, NEW[0], "b2,a2,Ali,Diaz,someday", complete_for="schools", partial=True
    )
    assert report.rejected == 1
    withdrawn = Identity.objects.exclude(respondent__withdrawn_at=None)
    assert [identity.external_id for identity in withdrawn] == ["a3"]
