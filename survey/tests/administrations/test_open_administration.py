from __future__ import annotations

import io

import pytest
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction
from django.utils import timezone

from accounts.models import AuditEntry
from survey.fieldwork.administrations import default_subgroups, open_administration
from survey.models import Administration, Wave

pytestmark = pytest.mark.django_db


def opened(*arguments: str) -> str:
    out = io.StringIO()
    call_command(
        "open_administration",
        *("students-2027", "--survey=climate", "--role=student"),
        *("--opens=2027-03-01", "--closes=2027-04-01T16:00", *arguments),
        stdout=out,
    )
    return out.getvalue()


def test_an_administration_is_opened(publish):
    published = publish()
    text = opened("--wave=Spring 2027")
    administration = Administration.objects.get(name="students-2027")
    assert administration.published == published
    assert administration.wave.name == "Spring 2027"
    # Midnight and four in the afternoon where the survey is taken.
    opens, closes = administration.opens_at, administration.closes_at
    assert timezone.localtime(opens).isoformat() == "2027-03-01T00:00:00-06:00"
    assert timezone.localtime(closes).isoformat() == "2027-04-01T16:00:00-05:00"
    assert "students-2027" in text


@pytest.mark.parametrize(
    ("argument", "reason"),
    [
        ("--closes=2027-02-01", "close after it opens"),
        ("--survey=nowhere", "No published survey"),
        ("--version=99", "No published survey"),
        ("--opens=soon", "soon"),
        ("--role=pupil", "pupil"),
    ],
)
def test_invalid_arguments_are_reported(publish, argument, reason):
    publish()
    with pytest.raises(CommandError, match=reason):
        opened(argument)
    assert not Administration.objects.exists()


def test_short_names_are_unique(publish):
    publish()
    opened()
    with pytest.raises(CommandError, match="Choose another name"):
        opened()


def test_the_database_refuses_to_close_before_opening(publish):
    now = timezone.now()
    row = {"name": "x", "published": publish(), "role": "student"}
    with pytest.raises(ValidationError):
        open_administration(**row, opens_at=now, closes_at=now)
    with pytest.raises(IntegrityError), transaction.atomic():
        Administration.objects.create(**row, opens_at=now, closes_at=now)


def test_a_district_offers_in_chosen_places(publish, lincoln):
    publish()
    opened(
        "--wave=Spring 2027",
        "--district=riverside",
        "--for-district=riverside",
        "--for-school=riverside/lincoln",
        "--coordinators-see-finished",
    )
    administration = Administration.objects.get()
    assert administration.district == administration.wave.district == lincoln.district
    assert list(administration.districts.all()) == [lincoln.district]
    assert list(administration.schools.all()) == [lincoln]
    assert administration.coordinators_see_finished
    # Commands are audited under their name.
    assert set(AuditEntry.objects.values_list("by", flat=True)) == {
        "open_administration"
    }


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--district=nowhere"], "No district has the code nowhere"),
        (["--for-school=riverside/nowhere"], "No school has the codes"),
        (["--for-school=lincoln"], "Write DISTRICT/SCHOOL"),
        (["--district=lakeshore", "--for-district=riverside"], "not in Riverside"),
        (
            ["--role=teacher", "--coordinators-see-finished"],
            "allowed for teachers",
        ),
    ],
)
def test_invalid_places_are_reported_and_nothing_is_saved(
    publish, lincoln, roosevelt, arguments, reason
):
    publish()
    with pytest.raises(CommandError, match=reason):
        opened("--wave=Spring 2027", *arguments)
    assert not Administration.objects.exists()
    assert not Wave.objects.exists()
    assert not AuditEntry.objects.exists()


def test_a_district_uses_the_states_wave_of_the_same_name(publish, lincoln):
    publish()
    Wave.objects.create(name="Spring 2027")
    opened("--wave=spring 2027", "--district=riverside")
    assert Administration.objects.get().wave == Wave.objects.get()


def test_subgroups_are_the_standard_ones_or_those_declared(publish):
    publish()
    opened()
    administration = Administration.objects.get()
    assert administration.subgroups == default_subgroups()
    administration.delete()
    opened("--subgroup=House: Red, Blue", "--subgroup=lunch: free, paid")
    declared = {"House": ["Red", "Blue"], "lunch": ["free", "paid"]}
    assert Administration.objects.get().subgroups == declared


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("Pupil name: Maya", "'Pupil name' can't be a subgroup: it identifies people"),
        ("grade: 7, 8", "'grade' can't be a subgroup: another column holds the same"),
        ("House", "List the values of 'House' after a colon"),
        (f"Seat: {', '.join(map(str, range(51)))}", "'Seat' has 51 values"),
        ("House: " + "x" * 65, "A value of 'House' is longer than 64 characters"),
    ],
)
def test_subgroups_that_could_identify_people_cannot_be_declared(publish, line, reason):
    publish()
    with pytest.raises(CommandError) as refused:
        opened("--subgroup", line)
    assert reason in str(refused.value)
    assert not Administration.objects.exists()
