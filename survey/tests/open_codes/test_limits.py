"""A program can't begin without end, and a school behind one address always can."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.conf import settings
from django.core.cache import caches
from django.utils import timezone

from survey.fieldwork.open_codes import limits, lookup, starts
from survey.fieldwork.open_codes.codes import code_of
from survey.fieldwork.open_codes.lookup import find_open_code
from survey.models import Respondent, Role, SchoolCount
from survey.taking.devices import digest_of, new_device_id
from survey.taking.login import LoginRefused
from survey.tests.conftest import Browser
from survey.tests.open_codes.cast import form_of, open_code, open_to_parents

pytestmark = pytest.mark.django_db
SCHOOL = "198.51.100.7"
ELSEWHERE = ["203.0.113.5", "192.0.2.9", "2001:db8::1"]


@pytest.fixture
def small(monkeypatch):
    """Three people are a large school."""
    monkeypatch.setattr(limits, "SMALLEST_SIZE", 3)
    monkeypatch.setattr(limits, "UNKNOWN_SIZE", 3)


def begin_on_new_device(code, address: str = SCHOOL) -> bool:
    """Begin as a program does that throws its cookies away."""
    known, digests = find_open_code(code_of(code))
    device = digest_of(new_device_id())
    try:
        starts.begin(
            known, digests, key=device, device=device, language="en", address=address
        )
    except LoginRefused as refused:
        assert refused.key == "start_code_busy"
        return False
    return True


@pytest.mark.parametrize("supplied", [None, 600])
def test_600_pupils_begin_within_minutes_from_one_address(parents, lincoln, supplied):
    if supplied:
        SchoolCount.objects.create(
            administration=parents, school=lincoln, count=supplied, by="a test"
        )
    code = open_code(parents, lincoln)
    assert all(begin_on_new_device(code) for _ in range(600))
    assert Respondent.objects.count() == 600


@pytest.mark.sqlite
def test_a_program_at_one_address_keeps_nobody_else_out(code, small):
    begun = [begin_on_new_device(code) for _ in range(20)]
    assert begun.count(True) == 3
    # The network of the same school has other addresses.
    assert not begin_on_new_device(code, "198.51.100.8")
    assert [begin_on_new_device(code, address) for address in ELSEWHERE] == [True] * 3
    # So many may begin with this code in an hour, from everywhere.
    assert not begin_on_new_device(code, "192.0.2.200")
    assert Respondent.objects.count() == 6


def test_without_the_limits_a_program_begins_without_end(code, small, monkeypatch):
    monkeypatch.setattr(starts, "_limit_starts", lambda *arguments: None)
    assert all(begin_on_new_device(code) for _ in range(20))


def test_other_codes_and_the_next_hour_are_not_affected(
    code, parents, roosevelt, small, monkeypatch
):
    assert [begin_on_new_device(code) for _ in range(4)] == [True] * 3 + [False]
    assert begin_on_new_device(open_code(parents, roosevelt))
    later = timezone.now() + timedelta(hours=1)
    monkeypatch.setattr(starts.timezone, "now", lambda: later)
    assert begin_on_new_device(code)


def test_a_person_who_has_to_wait_goes_on_with_the_same_page(code, small, monkeypatch):
    for _ in range(3):
        begin_on_new_device(code, "127.0.0.1")
    browser = Browser()
    late = browser.post("/open/begin/", form_of(browser, code))
    assert late.status_code == 422
    assert "Wait until the next full hour" in late.content.decode()
    assert "taking" not in browser.session
    monkeypatch.setattr(limits, "UNKNOWN_SIZE", 4)
    lookup.forget_open_codes()
    caches["default"].clear()
    form = dict(re.findall(r'name="(\w+)" value="([^"]*)"', late.content.decode()))
    caches[settings.SESSION_CACHE_ALIAS].clear()
    assert browser.post("/open/begin/", form).status_code == 302


def test_the_administrator_chooses_the_number(parents, lincoln):
    code = open_code(parents, lincoln, hourly_limit=2)
    assert [begin_on_new_device(code) for _ in range(3)] == [True, True, False]
    assert lookup.read_hourly_limit(code) == 2


@pytest.mark.parametrize(
    ("unit", "count", "per_address", "per_hour"),
    [
        ("students", 200, 1_000, 2_000),
        ("students", 4_000, 4_000, 8_000),
        ("families", 4_000, 8_000, 16_000),
        (None, None, 3_000, 6_000),
    ],
)
def test_the_limits_follow_from_the_size_of_the_school(
    parents, lincoln, unit, count, per_address, per_hour
):
    if count:
        SchoolCount.objects.create(
            administration=parents,
            school=lincoln,
            unit=unit,
            count=99_999,
            by="a test",
            replaced_at=timezone.now(),
        )
        SchoolCount.objects.create(
            administration=parents, school=lincoln, unit=unit, count=count, by="a test"
        )
    code = open_code(parents, lincoln)
    known, _ = find_open_code(code_of(code))
    assert (known.most_per_address, known.most_per_hour) == (per_address, per_hour)
    assert lookup.read_hourly_limit(code) == per_hour


@pytest.mark.parametrize(
    ("role", "students", "unusual"),
    [
        (Role.PARENT, 600, 150),
        (Role.PARENT, None, 150),
        (Role.PARENT, 40, 50),
        (Role.STUDENT, 600, 600),
        (Role.TEACHER, None, 600),
    ],
)
def test_classes_begin_together_and_parents_do_not(role, students, unusual):
    assert limits.unusual_number(role, students) == unusual


def test_starts_go_on_while_the_counts_cannot_be_reached(code, small, monkeypatch):
    def fail(*arguments):
        raise ConnectionError

    sessions = caches[settings.SESSION_CACHE_ALIAS]
    monkeypatch.setattr(sessions, "add", fail)
    monkeypatch.setattr(sessions, "incr", fail)
    assert all(begin_on_new_device(code) for _ in range(7))


def test_a_code_that_another_release_cached_is_read_again(browser, lincoln):
    """Without the numbers of this release."""
    code = open_code(open_to_parents(), lincoln)
    known, [digest, *_] = find_open_code(code_of(code))
    fields = {name: getattr(known, name) for name in known.__dataclass_fields__}
    del fields["most_per_hour"]
    lookup.forget_open_codes()
    caches["default"].set(f"open_code.{digest.hex()}", fields)
    assert find_open_code(code_of(code))[0] == known
