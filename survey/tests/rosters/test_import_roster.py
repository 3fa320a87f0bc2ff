"""Import rosters: new, changed and missing people, their codes, large files."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import District, School
from survey.models import Administration, Identity, Respondent, Response
from survey.people import access_codes
from survey.people.access_codes import CodeKeyMissing, code_of, digest_for
from survey.people.rosters import apply, diff
from survey.people.rosters.file_reader import RosterUnreadable
from survey.tests.conftest import enrol
from survey.tests.rosters.roster_imports import (
    ALI,
    HEADER,
    MAYA,
    NOOR,
    all_rows,
    counts,
    many_rows,
    run_import,
)


@pytest.mark.sqlite
def test_a_roster_is_imported(administration, lincoln):
    report = run_import(administration, HEADER, MAYA, ALI, NOOR)

    assert report.imported
    assert counts(report) == (3, 0, 0, 0)
    maya = Identity.objects.select_related("respondent").get(given_name="Maya")
    assert (maya.external_id, maya.family_name) == ("00123", "Lopez")
    assert (maya.email, maya.birth_date.isoformat()) == ("maya@x.org", "2014-03-04")
    respondent = maya.respondent
    assert respondent.school == lincoln
    assert (respondent.grade, respondent.language) == ("07", "es")
    assert respondent.attributes == {"lunch": "free"}
    assert (respondent.issue, respondent.code_key_version) == (1, 2)
    assert bytes(respondent.code_digest) == digest_for(code_of(respondent), 2)
    noor = Identity.objects.select_related("district").get(given_name="Noor")
    assert (noor.district.code, noor.district.name) == ("lakeshore", "Lakeshore")
    assert report.schools_created == ["roosevelt"]


def test_a_districts_code_and_name_mean_the_same_district(administration):
    harbor = District.objects.create(code="d7", name="Harbor")
    School.objects.create(code="sea", name="Sea", district=harbor)
    header = HEADER.replace("district,", "district name,")
    rows = [
        MAYA.replace("Riverside,Lincoln", f"{text},sea") for text in ("d7", "Harbor")
    ]

    report = run_import(administration, header, *rows, partial=True)
    assert counts(report) == (1, 0, 0, 1)
    [refused] = report.rejections
    assert (refused.row, refused.reason) == (
        3,
        "is the same as in row 2, in the same district",
    )
    # The same holds for a person who is already there.
    report = run_import(administration, header, *reversed(rows), partial=True)
    assert counts(report) == (0, 0, 1, 1)


@pytest.mark.sqlite
def test_an_imported_person_can_log_in(administration, browser):
    run_import(administration, HEADER, MAYA)
    browser.log_in(Respondent.objects.get())
    assert browser.bootstrap()["language"] == "es"


@pytest.mark.sqlite
def test_the_same_roster_again_changes_nothing(administration):
    run_import(administration, HEADER, MAYA, ALI, NOOR)
    before = all_rows()

    report = run_import(administration, HEADER, MAYA, ALI, NOOR)

    assert counts(report) == (0, 0, 3, 0)
    assert all_rows() == before


@pytest.mark.sqlite
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Lincoln", "Jefferson"),
        (",7,", ",8,"),
        ("Maya", "Maia"),
        ("Lopez", ""),
        ("maya@x.org", "maya@y.org"),
        ("2014-03-04", "2014-03-05"),
        ("2014-03-04", ""),
        ("Spanish", "English"),
        ("free", "paid"),
        ("free", ""),
    ],
)
def test_changed_people_keep_respondent_code_and_answers(administration, old, new):
    run_import(administration, HEADER, MAYA, ALI)
    before = Respondent.objects.get(identity__external_id="00123")
    answer = Response.objects.create(
        administration_id=administration.pk,
        respondent_id=before.pk,
        item_id=1,
        state="a",
        value="3",
        revision=1,
        saved_at=administration.opens_at,
    )

    changed = MAYA.replace(old, new)
    report = run_import(administration, HEADER, changed, ALI)

    assert counts(report) == (0, 1, 1, 0)
    after = Respondent.objects.get(identity__external_id="00123")
    assert (after.pk, after.issue) == (before.pk, before.issue)
    assert bytes(after.code_digest) == bytes(before.code_digest)
    assert Response.objects.get().pk == answer.pk
    assert counts(run_import(administration, HEADER, changed, ALI)) == (0, 0, 2, 0)


@pytest.mark.sqlite
def test_columns_missing_from_the_file_are_not_changed(administration):
    run_import(administration, HEADER, MAYA)
    before = all_rows()

    report = run_import(
        administration, "school,student ID,district", "Lincoln,00123,Riverside"
    )

    assert counts(report) == (0, 0, 1, 0)
    assert all_rows() == before


@pytest.mark.sqlite
def test_missing_people_are_not_withdrawn_by_default(administration):
    run_import(administration, HEADER, MAYA, ALI)
    report = run_import(administration, HEADER, ALI)
    assert counts(report) == (0, 0, 1, 0)
    assert Respondent.objects.filter(withdrawn_at=None).count() == 2


@pytest.mark.sqlite
def test_the_same_person_in_two_administrations_has_two_codes(administration):
    second = Administration.objects.create(
        name="again",
        published=administration.published,
        role="student",
        opens_at=administration.opens_at,
        closes_at=administration.closes_at,
    )
    run_import(administration, HEADER, MAYA)
    assert counts(run_import(second, HEADER, MAYA)) == (1, 0, 0, 0)
    assert len({code_of(person) for person in Respondent.objects.all()}) == 2


@pytest.mark.sqlite
def test_existing_respondents_keep_their_codes(administration, maya):
    before = bytes(maya.code_digest)
    run_import(administration, HEADER, MAYA)
    maya.refresh_from_db()
    assert bytes(maya.code_digest) == before
    assert Respondent.objects.count() == 2


def test_a_truncated_file_imports_nothing(administration):
    before = all_rows()
    with pytest.raises(RosterUnreadable, match="never closed"):
        run_import(administration, HEADER, MAYA, '"Riverside')
    assert all_rows() == before
    assert counts(run_import(administration, HEADER, MAYA)) == (1, 0, 0, 0)


def test_nothing_is_imported_without_an_access_code_key(administration, settings):
    settings.ACCESS_CODE_KEYS = {}
    with pytest.raises(CodeKeyMissing):
        run_import(administration, HEADER, MAYA)


@pytest.mark.sqlite
def test_colliding_access_codes_are_replaced(administration, monkeypatch):
    real = access_codes.code_for

    def colliding(id_, issue, version=None):
        return "A" * 12 if issue == 1 else real(id_, issue, version)

    monkeypatch.setattr(access_codes, "code_for", colliding)
    report = run_import(administration, HEADER, MAYA, ALI, NOOR)

    assert counts(report) == (3, 0, 0, 0)
    assert sorted(Respondent.objects.values_list("issue", flat=True)) == [1, 2, 2]
    for respondent in Respondent.objects.all():
        assert bytes(respondent.code_digest) == digest_for(code_of(respondent), 2)


@pytest.mark.sqlite
def test_primary_keys_do_not_collide_with_other_inserts(administration, lincoln):
    run_import(administration, HEADER, MAYA, ALI)
    later = enrol(administration, lincoln)
    run_import(administration, HEADER, NOOR)
    ids = list(Respondent.objects.order_by("pk").values_list("pk", flat=True))
    assert ids[2] == later.pk and len(ids) == 4


def test_the_number_of_statements_does_not_grow_with_the_roster(
    administration, monkeypatch
):
    monkeypatch.setattr(diff, "BATCH", 500)
    monkeypatch.setattr(apply, "ADD_AT_ONCE", 500)
    run_import(administration, HEADER, *many_rows(1))
    statements = []
    for start, end in ((10, 20), (100, 400), (1000, 1700)):
        with CaptureQueriesContext(connection) as captured:
            report = run_import(administration, HEADER, *many_rows(end)[start:])
        assert report.added == end - start
        statements.append(len(captured))
    assert statements[0] == statements[1] <= 111
    # One more batch.
    assert statements[2] - statements[1] < 20


@pytest.mark.sqlite
def test_the_result_does_not_depend_on_batch_sizes(administration, monkeypatch):
    monkeypatch.setattr(diff, "BATCH", 3)
    monkeypatch.setattr(apply, "ADD_AT_ONCE", 3)
    monkeypatch.setattr(apply, "CHANGE_AT_ONCE", 3)
    assert counts(run_import(administration, HEADER, *many_rows(10))) == (10, 0, 0, 0)
    assert Identity.objects.values("external_id").distinct().count() == 10
    rows = [row.replace(",8,", ",9,") for row in many_rows(10)]
    assert counts(run_import(administration, HEADER, *rows)) == (0, 10, 0, 0)
    assert Respondent.objects.filter(grade="09").count() == 10
