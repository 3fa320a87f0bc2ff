"""Merge duplicate districts and schools, answers included."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.utils import timezone

from accounts.models import (
    AuditEntry,
    District,
    DistrictAlias,
    Membership,
    PlaceSettings,
    School,
    SchoolAlias,
)
from survey.fieldwork.open_codes.codes import create_open_code
from survey.models import (
    Administration,
    CardSet,
    CountedGroup,
    Identity,
    PlaceMerge,
    Respondent,
    Response,
    RosterFeed,
    SchoolCount,
    Wave,
)
from survey.people.access_codes import code_of
from survey.people.merging import dry_run, people, places
from survey.people.merging.merges import (
    MergeConflict,
    confirm_merge,
    latest_job,
    request_merge,
)
from survey.people.schools.open_surveys import questions_are_public
from survey.taking.login import LoginRefused, log_in_respondent
from survey.taking.storage import AnswerRow, Outcome, save_page
from survey.tests.rosters.roster_imports import run_import
from survey.work import jobs

pytestmark = pytest.mark.django_db

HEADER = "district,school,student ID,given name,grade"


def enrol(administration, *lines):
    report = run_import(administration, HEADER, *lines)
    assert report.imported, report.rejections


def person(external_id, district):
    return Respondent.objects.get(
        identity__external_id=external_id, identity__district=district
    )


def answer(respondent, text):
    log_in_respondent(code_of(respondent))
    item = respondent.administration.published.survey.items.get(name="comment")
    outcome = save_page(
        administration_id=respondent.administration_id,
        respondent_id=respondent.pk,
        issue=respondent.issue,
        revision=1,
        rows=[AnswerRow(item.pk, "a", text)],
    ).outcome
    assert outcome is Outcome.SAVED


def answers():
    return dict(Response.objects.values_list("respondent_id", "value"))


@pytest.fixture
def twice(administration, staff, copy, lincoln_copy):
    """Maya and Ali are in both districts; Zoe is in the copy only."""
    enrol(
        administration,
        "riverside,lincoln,00123,Maya,7",
        "riverside,lincoln,00124,Ali,7",
        "0017,0042,00123,Maya,7",
        "0017,0042,00124,Ali,7",
        "0017,0042,00125,Zoe,8",
    )
    assert Respondent.objects.count() == 5


@pytest.mark.sqlite
def test_two_districts_become_one(twice, merge, staff, copy, administration):
    maya = person("00123", copy)
    answer(maya, "by the code of the copy")
    ali = person("00124", staff.riverside)
    answer(ali, "by the other code")
    merged = merge(copy, staff.riverside)

    assert merged.state == "merged", merged.message
    assert merged.report["people"] == 1
    assert (merged.report["pairs"], merged.report["one_started"]) == (2, 2)
    assert not District.objects.filter(pk=copy.pk).exists()
    listed = Identity.objects.filter(respondent__withdrawn_at=None)
    assert sorted(listed.values_list("external_id", "district", "respondent")) == [
        ("00123", staff.riverside.pk, maya.pk),
        ("00124", staff.riverside.pk, ali.pk),
        ("00125", staff.riverside.pk, person("00125", staff.riverside).pk),
    ]
    assert {row.school for row in Respondent.objects.all()} == {staff.lincoln}
    assert answers() == {
        maya.pk: "by the code of the copy",
        ali.pk: "by the other code",
    }
    # Both go on with the code that they used.
    for respondent in (maya, ali):
        assert log_in_respondent(code_of(respondent)).respondent_id == respondent.pk


@pytest.mark.sqlite
@pytest.mark.parametrize("hides", [True, False])
def test_questions_that_a_district_hid_stay_hidden(
    merge, staff, copy, administration, hides
):
    Administration.objects.update(district=copy, public_questions=True)
    PlaceSettings.objects.create(district=None, public_questions=True)
    PlaceSettings.objects.create(district=copy, hides_questions=hides)
    merge(copy, staff.riverside)
    public = Administration.objects.filter(questions_are_public())
    assert Administration.objects.get().district == staff.riverside
    assert public.exists() != hides


@pytest.mark.sqlite
def test_the_other_code_of_a_person_is_refused(twice, merge, staff, copy):
    maya, twin = person("00123", copy), person("00123", staff.riverside)
    answer(maya, "mine")
    merge(copy, staff.riverside)
    with pytest.raises(LoginRefused) as refused:
        log_in_respondent(code_of(twin))
    assert refused.value.key == "withdrawn"
    assert log_in_respondent(code_of(maya)).respondent_id == maya.pk


@pytest.mark.sqlite
def test_answers_of_both_records_are_not_mixed(twice, merge, staff, copy):
    maya, twin = person("00123", copy), person("00123", staff.riverside)
    answer(maya, "of the copy")
    answer(twin, "of Riverside")
    merged = merge(copy, staff.riverside)
    assert merged.state == "partly"
    assert merged.report["both_started"] == 1
    # Both can go on, where they were; everybody else has moved.
    assert answers() == {maya.pk: "of the copy", twin.pk: "of Riverside"}
    assert person("00123", copy) == maya
    assert list(Identity.objects.filter(district=copy)) == [maya.identity]
    for respondent in (maya, twin):
        respondent.refresh_from_db()
        assert respondent.withdrawn_at is None

    merge.go_on(merged, keep="duplicate")
    assert merged.state == "merged", merged.message
    assert person("00123", staff.riverside) == maya
    twin.refresh_from_db()
    assert twin.withdrawn_at
    # The answers of the other record are still there, and its own.
    assert answers() == {maya.pk: "of the copy", twin.pk: "of Riverside"}
    assert not District.objects.filter(pk=copy.pk).exists()


def test_without_the_pair_rule_a_merge_would_hide_answers(
    twice, merge, staff, copy, monkeypatch
):
    """Shows that the test above would fail without the rule for two sets of answers."""
    monkeypatch.setattr(people.Pair, "survivor", lambda pair, keep: pair.target)
    maya, twin = person("00123", copy), person("00123", staff.riverside)
    answer(maya, "of the copy")
    answer(twin, "of Riverside")
    assert merge(copy, staff.riverside).state == "merged"
    maya.refresh_from_db()
    assert maya.withdrawn_at


def test_whoever_starts_after_the_dry_run_keeps_the_answers(twice, merge, staff, copy):
    created = request_merge(copy, staff.riverside, by=staff.state)
    jobs.run(latest_job(created).pk)
    created.refresh_from_db()
    assert created.report["one_started"] == 0
    maya = person("00123", copy)
    answer(maya, "after the dry run")
    merge.go_on(created)
    assert created.state == "merged"
    assert person("00123", staff.riverside) == maya
    assert answers() == {maya.pk: "after the dry run"}


@pytest.mark.sqlite
def test_answers_of_a_withdrawn_record_win(twice, merge, staff, copy):
    maya, twin = person("00123", copy), person("00123", staff.riverside)
    answer(maya, "before I was withdrawn")
    Respondent.objects.filter(pk=maya.pk).update(withdrawn_at=timezone.now())
    merge(copy, staff.riverside)
    maya.refresh_from_db()
    twin.refresh_from_db()
    assert maya.withdrawn_at is None
    assert twin.withdrawn_at


def test_the_dry_run_changes_nothing(twice, staff, copy):
    before = (
        list(Respondent.objects.order_by("pk").values()),
        list(Identity.objects.order_by("pk").values()),
        list(School.objects.values()),
    )
    created = request_merge(copy, staff.riverside, by=staff.state)
    jobs.run(latest_job(created).pk)
    created.refresh_from_db()
    assert created.state == "checked"
    assert before == (
        list(Respondent.objects.order_by("pk").values()),
        list(Identity.objects.order_by("pk").values()),
        list(School.objects.values()),
    )


@pytest.mark.sqlite
def test_the_next_roster_finds_the_places_by_their_old_codes(
    twice, merge, staff, copy, administration
):
    merge(copy, staff.riverside)
    assert DistrictAlias.objects.get().code == "0017"
    assert SchoolAlias.objects.get().school == staff.lincoln
    before = list(Identity.objects.order_by("pk").values())
    enrol(
        administration,
        "0017,0042,00123,Maya,7",
        "0017,0042,00124,Ali,7",
        "riverside,lincoln,00125,Zoe,8",
    )
    assert list(Identity.objects.order_by("pk").values()) == before
    assert District.objects.count() == 2


def test_without_an_alias_the_next_roster_would_double_everybody(
    twice, merge, staff, copy, administration
):
    """Shows that the test above would fail without aliases."""
    merge(copy, staff.riverside)
    DistrictAlias.objects.all().delete()
    SchoolAlias.objects.all().delete()
    enrol(administration, "0017,0042,00123,Maya,7")
    assert District.objects.count() == 3


def test_schools_that_only_the_copy_has_move(twice, merge, staff, copy):
    newton = School.objects.create(district=copy, code="newton", name="Newton")
    merged = merge(copy, staff.riverside)
    newton.refresh_from_db()
    assert newton.district == staff.riverside
    assert merged.report["moved_schools"] == 1


@pytest.mark.sqlite
def test_two_schools_of_a_district_become_one(administration, staff, merge):
    copy = School.objects.create(
        district=staff.riverside, code="LINC", name="Lincoln School"
    )
    enrol(
        administration,
        "riverside,lincoln,00123,Maya,7",
        "riverside,LINC,00124,Ali,7",
    )
    ali = person("00124", staff.riverside)
    answer(ali, "mine")
    merged = merge(copy, staff.lincoln, by=staff.dana)
    assert merged.state == "merged", merged.message
    ali.refresh_from_db()
    assert ali.school == staff.lincoln
    assert answers() == {ali.pk: "mine"}
    assert not School.objects.filter(pk=copy.pk).exists()
    enrol(administration, "riverside,LINC,00124,Ali,7")
    assert not School.objects.filter(code="LINC").exists()


@pytest.mark.sqlite
def test_everything_else_follows(administration, staff, merge, copy, lincoln_copy):
    enrol(administration, "0017,0042,00123,Maya,7")
    enrol(administration, "0017,0042,00123,Maya,8")
    assert CountedGroup.objects.filter(school=lincoln_copy).exists()
    for school in (lincoln_copy, staff.lincoln):
        SchoolCount.objects.create(
            administration=administration, school=school, count=10, by="x"
        )
    Membership.objects.create(user=staff.chen, role="coordinator", school=lincoln_copy)
    Membership.objects.create(user=staff.dana, role="district", district=copy)
    Membership.objects.create(user=staff.sam, role="coordinator", school=lincoln_copy)
    card_set = CardSet.objects.create(
        administration=administration, school=lincoln_copy, by=staff.dana, file_name="x"
    )
    for district in (copy, staff.riverside):
        Wave.objects.create(name="Spring", district=district)
    administration.schools.add(lincoln_copy)
    administration.districts.add(copy)
    administration.district = copy
    administration.save(update_fields=["district"])

    assert merge(copy, staff.riverside).state == "merged"
    administration.refresh_from_db()
    assert administration.district == staff.riverside
    assert list(administration.schools.all()) == [staff.lincoln]
    assert list(administration.districts.all()) == [staff.riverside]
    assert SchoolCount.objects.current().get().school == staff.lincoln
    assert SchoolCount.objects.count() == 2
    current = Membership.objects.current()
    assert current.filter(user=staff.chen).count() == 1
    assert current.filter(user=staff.dana).count() == 1
    assert current.filter(user=staff.sam, school=staff.lincoln).exists()
    card_set.refresh_from_db()
    assert card_set.school == staff.lincoln
    assert {wave.name for wave in Wave.objects.all()} == {"Spring", "Spring (2)"}
    assert {group.school for group in CountedGroup.objects.all()} == {staff.lincoln}
    entry = AuditEntry.objects.get(action="merge of districts")
    assert entry.district_id == staff.riverside.pk


def test_an_open_code_goes_on(administration, staff, merge):
    copy = School.objects.create(district=staff.riverside, code="x", name="Lincoln 2")
    administration.denominator = "count"
    administration.save(update_fields=["denominator"])
    code = create_open_code(
        administration=administration, school=copy, by=staff.dana, label=""
    )
    assert merge(copy, staff.lincoln, by=staff.dana).state == "merged"
    code.refresh_from_db()
    assert (code.school, code.revoked_at) == (staff.lincoln, None)


@pytest.mark.sqlite
def test_a_person_who_starts_with_an_open_code_meanwhile_moves_too(
    administration, staff, merge, monkeypatch
):
    """The start has read the school before the merge, and writes it afterwards."""
    copy = School.objects.create(district=staff.riverside, code="x", name="Lincoln 2")
    moved = places.move_references

    def start_late(duplicate, target):
        moved(duplicate, target)
        if not Respondent.objects.exists():
            Respondent.objects.create(
                administration=administration,
                school_id=duplicate.pk,
                code_digest=b"1",
                code_key_version=1,
            )

    monkeypatch.setattr(places, "move_references", start_late)
    assert merge(copy, staff.lincoln, by=staff.dana).state == "merged"
    assert Respondent.objects.get().school == staff.lincoln


def test_different_schools_with_one_code_are_not_merged(staff, merge, copy):
    School.objects.create(district=copy, code="lincoln", name="Roosevelt")
    merged = merge(copy, staff.riverside)
    assert merged.state == "refused"
    assert "Roosevelt" in merged.message
    assert copy.schools.count() == 1


@pytest.mark.sqlite
def test_an_interrupted_merge_goes_on(
    twice, merge, staff, copy, administration, monkeypatch
):
    monkeypatch.setattr(people, "MOVED_AT_ONCE", 1)
    monkeypatch.setattr(jobs, "DELAYS", replace(jobs.DELAYS, attempts=1))
    write, calls = people.write_batch, []

    def fail_at_the_second(batch):
        calls.append(batch)
        if len(calls) == 2:
            raise RuntimeError("the worker fails")
        return write(batch)

    monkeypatch.setattr(people, "write_batch", fail_at_the_second)
    merged = merge(copy, staff.riverside)
    assert merged.state == "merging"
    assert Identity.objects.filter(district=copy).count() == 2
    merge.go_on(merged)
    assert merged.state == "merged"
    assert Identity.objects.count() == 3
    assert Respondent.objects.filter(withdrawn_at=None).count() == 3


def test_the_name_has_to_be_typed(staff, copy):
    created = request_merge(copy, staff.riverside, by=staff.state)
    jobs.run(latest_job(created).pk)
    created.refresh_from_db()
    with pytest.raises(MergeConflict):
        confirm_merge(created, by=staff.state, typed="Riverside")
    assert PlaceMerge.objects.get().state == "checked"


def test_permission_is_checked_again_by_the_job(staff, copy, merge):
    merged = merge(copy, staff.riverside, by=staff.dana)
    assert merged.state == "checked"
    assert District.objects.filter(pk=copy.pk).exists()


@pytest.fixture
def two_feeds(staff, copy, administration):
    """A feed of each district, both for one administration."""
    feeds = [
        RosterFeed.objects.create(
            district=district, by=staff.state, kind="zip", name=f"Feed of {district}"
        )
        for district in (copy, staff.riverside)
    ]
    for feed in feeds:
        feed.administrations.add(administration)
    return feeds


def test_districts_whose_feeds_bring_one_administration_are_not_merged(
    two_feeds, staff, merge, copy, administration
):
    merged = merge(copy, staff.riverside)
    assert merged.state == "refused"
    for part in (*(feed.name for feed in two_feeds), administration.name):
        assert part in merged.message
    two_feeds[0].administrations.clear()
    assert merge(copy, staff.riverside).state == "merged"
    assert administration.feeds.get() == two_feeds[1]


def test_a_feed_that_comes_while_people_move_refuses_the_merge(
    two_feeds, staff, merge, copy, administration, monkeypatch
):
    monkeypatch.setattr(dry_run, "refuse_two_feeds", lambda *districts: None)
    merged = merge(copy, staff.riverside)
    assert merged.state == "checked" and two_feeds[0].name in merged.message
    assert two_feeds[0].__class__.objects.get(pk=two_feeds[0].pk).district == copy


def test_a_removed_feed_is_no_second_feed(two_feeds, staff, merge, copy):
    RosterFeed.objects.filter(pk=two_feeds[0].pk).update(removed_at=timezone.now())
    assert merge(copy, staff.riverside).state == "merged"
