"""The console pages of administrations and waves."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import (
    AuditEntry,
    District,
    Membership,
    PlaceSettings,
    School,
    User,
)
from accounts.tests.conftest import member
from accounts.tests.logging_in import log_in
from accounts.time_zones import zone_of
from survey.fieldwork.administrations import open_administration
from survey.fieldwork.login_cards.card_text import window_in_words
from survey.models import Administration, CardSet, PublishedSurvey, Role, Wave
from survey.tests.conftest import enrol

pytestmark = pytest.mark.django_db
NEW = "/console/administrations/open/"


@pytest.fixture
def published(publish) -> PublishedSurvey:
    return publish()


@pytest.fixture
def opened(published: PublishedSurvey):
    def opened(name: str = "spring", **fields: Any) -> Administration:
        now = timezone.now()
        return open_administration(
            **{
                "name": name,
                "published": published,
                "role": Role.STUDENT,
                "opens_at": now - timedelta(days=1),
                "closes_at": now + timedelta(days=30),
                **fields,
            }
        )

    return opened


def local(moment: datetime) -> str:
    return timezone.localtime(moment).strftime("%Y-%m-%dT%H:%M")


def form_for(published: PublishedSurvey, **fields: Any) -> dict[str, Any]:
    """Return the answers to all steps of a new survey round."""
    now = timezone.now()
    return {
        "published": published.pk,
        "role": "student",
        "denominator": "roster",
        "scope": "chosen" if fields.get("places") else "everywhere",
        "wave": "",
        "new_wave": "Spring 2027",
        "opens_at": local(now - timedelta(minutes=5)),
        "closes_at": local(now + timedelta(days=20)),
        "privacy": "confidential",
        "subgroups": "lunch: free, paid",
        **fields,
    }


def answer_steps(client: Client, answers: dict[str, Any], until: str = "") -> Any:
    """Send the steps in order, until one is refused, or the step `until` is shown."""
    reply, address = None, NEW
    while reply is None or reply.status_code == 302:
        if reply is not None:
            address = reply["Location"]
            if f"/{until}/" in address or not address.startswith(NEW):
                return reply
        page = client.get(address)
        revision = page.context["draft"].revision
        reply = client.post(address, {**answers, "revision": revision})
    return reply


def search_places(client: Client, answers: dict[str, Any]) -> Any:
    """Press Find in the step of people; the steps before it are answered."""
    address = answer_steps(client, answers, until="people")["Location"]
    revision = client.get(address).context["draft"].revision
    return client.post(address, {**answers, "revision": revision, "again": "find"})


def step_shown(client: Client, answers: dict[str, Any], step: str) -> Any:
    """Return the page of a step, when those before it are answered."""
    return client.get(answer_steps(client, answers, until=step)["Location"])


def current_values(client: Client, pk: int) -> dict[str, Any]:
    """Return the form's current values, as a browser would send them."""
    form = client.get(reverse("administration_change", args=[pk])).context["form"]
    held = {name: form[name].value() for name in form.fields if name != "places"}
    held["places"] = [value for value, _ in form.chosen_places]
    for name in ("opens_at", "closes_at"):
        held[name] = local(getattr(form.administration, name))
    return {
        name: "" if value is None else value
        for name, value in held.items()
        if value is not False
    }


def errors(response: Any) -> str:
    """Return the error messages on the page."""
    assert response.status_code == 200, response
    messages = re.findall(r'<p class="error"[^>]*>(.*?)</p>', response.content.decode())
    return " | ".join(messages)


def test_the_state_opens_changes_closes_and_reopens(client, staff, published):
    log_in(client, staff.state)
    assert "Central Time (America/Chicago)" in client.get(NEW).content.decode()

    reply = answer_steps(
        client, form_for(published, places=[f"school-{staff.lincoln.pk}"])
    )
    administration = Administration.objects.get()
    detail = reverse("administration_detail", args=[administration.pk])
    assert reply["Location"] == reverse("roster_upload", args=[administration.pk])
    assert administration.name == "spring-2027-students"
    assert administration.wave.name == "Spring 2027"
    assert list(administration.schools.all()) == [staff.lincoln]
    shown = client.get(detail).content.decode()
    assert "Lincoln" in shown
    assert f"{administration.title} is open" in shown

    later = timezone.now() + timedelta(days=40)
    held = current_values(client, administration.pk)
    reply = client.post(f"{detail}change/", {**held, "closes_at": local(later)})
    assert reply["Location"] == detail, errors(reply)
    administration.refresh_from_db()
    assert local(administration.closes_at) == local(later)

    enrol(administration, staff.lincoln, started_at=timezone.now())
    page = client.get(f"{detail}close/")
    assert "1 person has started and not finished. They have ten more minutes" in (
        page.content.decode()
    )
    seen = {"seen": page.context["form"]["seen"].value()}
    assert client.post(f"{detail}close/", seen)["Location"] == detail
    administration.refresh_from_db()
    assert administration.state == "closed"

    seen = {"seen": administration.changes, "closes_at": local(later)}
    assert client.post(f"{detail}reopen/", seen)["Location"] == detail
    administration.refresh_from_db()
    assert administration.state == "open"

    actions = AuditEntry.objects.order_by("pk").values_list("action", flat=True)
    assert list(actions) == [
        "create wave",
        "open administration",
        "change administration",
        "close administration",
        "reopen administration",
    ]
    assert set(AuditEntry.objects.values_list("by", flat=True)) == {staff.state.email}


def test_a_district_opens_only_in_its_own_schools(client, staff, published):
    log_in(client, staff.dana)
    inside = [f"school-{staff.lincoln.pk}", f"district-{staff.riverside.pk}"]
    answer_steps(client, form_for(published, places=inside))
    administration = Administration.objects.get()
    assert administration.district == administration.wave.district == staff.riverside
    # Names of district administrations begin with the district's code.
    assert administration.name == "riverside-spring-2027-students"

    for elsewhere in (
        f"school-{staff.roosevelt.pk}",
        f"district-{staff.lakeside.pk}",
        "school-999999",
    ):
        reply = answer_steps(client, form_for(published, places=[elsewhere]))
        # The message does not reveal that they exist.
        assert "One of the places does not exist" in errors(reply)
        assert b"Roosevelt" not in reply.content
        assert b"Lakeside" not in reply.content
    owner = f"district-{staff.lakeside.pk}"
    for key in (owner, "state"):
        reply = answer_steps(client, form_for(published, owner=key, second="on"))
        assert "Choose one of your districts" in errors(reply)
    assert Administration.objects.count() == 1


def test_an_administrator_of_two_districts_chooses_the_owner(client, staff, published):
    both = member("both@example.org", "district", district=staff.riverside)
    Membership.objects.create(user=both, role="district", district=staff.lakeside)
    log_in(client, both)
    lakes = {"owner": f"district-{staff.lakeside.pk}"}
    refused = [
        ({"owner": "state"}, "Choose one of your districts"),
        ({"owner": "district-999"}, "Choose one of your districts"),
        ({**lakes, "places": [f"school-{staff.lincoln.pk}"]}, "not in Lincoln"),
    ]
    for fields, reason in refused:
        assert reason in errors(answer_steps(client, form_for(published, **fields)))
    assert not Administration.objects.exists()
    answer_steps(client, form_for(published, **lakes))
    assert Administration.objects.get().district == staff.lakeside


def test_places_are_searched_and_stay_ticked(client, staff, published):
    log_in(client, staff.state)
    ticked = f"school-{staff.washington.pk}"
    asked = form_for(published, q="lin riverside", places=[ticked], role="")
    reply = search_places(client, asked)
    form = reply.context["form"]
    assert [value for value, _ in form.found_places] == [f"school-{staff.lincoln.pk}"]
    assert [value for value, _ in form.chosen_places] == [ticked]
    # Nothing is saved, and no errors are shown.
    assert errors(reply) == ""
    assert "people" not in reply.context["draft"].done
    # Enter in the field of the search searches as well.
    address = reply.wsgi_request.path
    revision = reply.context["draft"].revision
    reply = client.post(address, {**asked, "revision": revision, "enter": "1"})
    assert reply.context["form"].found_places
    assert errors(reply) == ""

    log_in(client, staff.dana)
    reply = search_places(client, form_for(published, q="roosevelt"))
    assert reply.context["form"].found_places == []
    assert "No other district or school matches" in reply.content.decode()


def test_searching_among_4000_schools(
    client, staff, published, django_assert_num_queries
):
    School.objects.bulk_create(
        School(district=staff.riverside, code=f"s{n}", name=f"School {n:04}")
        for n in range(4000)
    )
    log_in(client, staff.state)
    ticked = [f"school-{pk}" for pk in School.objects.values_list("pk", flat=True)]
    asked = form_for(published, q="school", places=ticked[:300])
    address = answer_steps(client, asked, until="people")["Location"]
    asked |= {"revision": "1", "again": "find"}
    # 3 for the user, 1 for the ticked schools, 2 for the matches.
    with django_assert_num_queries(6):
        reply = client.post(address, asked)
    form = reply.context["form"]
    assert len(form.chosen_places) == 300
    assert len(reply.content) < 100_000
    assert "There are more matches" in reply.content.decode()
    reply = answer_steps(client, form_for(published, places=ticked[:501]))
    assert "Choose at most 500 places" in errors(reply)


def test_short_names_are_made_and_unique(client, staff, published):
    log_in(client, staff.state)
    wave = Wave.objects.create(name="Fall 2026")
    answers = form_for(published, new_wave="", wave=wave.pk, role="parent")
    answer_steps(client, answers)
    answer_steps(client, {**answers, "second": "on"})
    answer_steps(client, form_for(published, role="teacher"))
    assert set(Administration.objects.values_list("name", flat=True)) == {
        "fall-2026-parents",
        "fall-2026-parents-2",
        "spring-2027-teachers",
    }


# Visibility


def test_lists_show_only_visible_administrations(client, staff, opened):
    opened("state-wide")
    opened("riversides", district=staff.riverside)
    opened("lakesides", district=staff.lakeside)
    opened("for-lincoln", schools=[staff.lincoln])
    opened("for-lakeside", districts=[staff.lakeside])
    shown = {
        staff.state: {
            "state-wide",
            "riversides",
            "lakesides",
            "for-lincoln",
            "for-lakeside",
        },
        staff.dana: {"state-wide", "riversides", "for-lincoln"},
        staff.chen: {"state-wide", "riversides", "for-lincoln"},
        staff.analyst: {"state-wide", "riversides", "for-lincoln"},
        staff.sam: {"state-wide", "lakesides", "for-lakeside"},
    }
    for user, expected in shown.items():
        page = log_in(client, user).get("/console/administrations/")
        assert {row.name for row in page.context["rows"]} == expected, user
        for row in Administration.objects.all():
            status = client.get(reverse("administration_detail", args=[row.pk]))
            assert (status.status_code == 200) is (row.name in expected), (user, row)


@pytest.mark.parametrize("page", ["change", "close", "reopen"])
def test_only_the_owners_administrators_can_edit(client, staff, opened, page):
    everywhere = opened("state-wide")
    of_riverside = opened("riversides", district=staff.riverside)
    foreign = opened("lakesides", district=staff.lakeside)
    allowed_for = {
        staff.state: {everywhere, of_riverside, foreign},
        staff.dana: {of_riverside},
        staff.chen: set(),
        staff.analyst: set(),
        staff.sam: set(),
    }
    before = list(Administration.objects.order_by("pk").values())
    for user, allowed in allowed_for.items():
        log_in(client, user)
        for row in (everywhere, of_riverside, foreign):
            address = reverse(f"administration_{page}", args=[row.pk])
            expected = 200 if row in allowed else 404
            assert client.get(address).status_code == expected, (user, row)
            if row not in allowed:
                seen = {"seen": row.changes, "closes_at": local(timezone.now())}
                assert client.post(address, seen).status_code == 404, (user, row)
    assert list(Administration.objects.order_by("pk").values()) == before
    assert not AuditEntry.objects.exists()


def test_opening_requires_survey_management(client, staff, published):
    for user in (staff.chen, staff.analyst, staff.sam):
        log_in(client, user)
        assert client.get(NEW).status_code == 404
        assert client.post(NEW, form_for(published)).status_code == 404
        step = reverse("administration_open_step", args=["x", "people"])
        assert client.post(step, form_for(published)).status_code == 404
    assert not Administration.objects.exists()


def test_places_of_other_districts_are_only_counted(client, staff, opened):
    places = {"districts": [staff.lakeside], "schools": [staff.lincoln]}
    some = opened("some", **places)
    page = log_in(client, staff.chen).get(
        reverse("administration_detail", args=[some.pk])
    )
    text = page.content.decode()
    assert "Lincoln" in text
    assert "1 more in other districts" in " ".join(text.split())
    assert "Lakeside" not in text
    page = log_in(client, staff.state).get(
        reverse("administration_detail", args=[some.pk])
    )
    assert "Lakeside" in page.content.decode()


def test_a_list_costs_the_same_with_one_row_and_three(
    client, staff, opened, django_assert_num_queries
):
    log_in(client, staff.state)
    for count in (1, 3):
        while Administration.objects.count() < count:
            number = Administration.objects.count()
            opened(
                f"a{number}",
                wave=Wave.objects.create(name=f"wave {number}"),
                schools=[staff.lincoln, staff.roosevelt],
            )
        # 2 for the user, 3 for the list, 6 for rates and next steps.
        with django_assert_num_queries(11):
            page = client.get("/console/administrations/")
        assert len(page.context["rows"]) == count
        with django_assert_num_queries(5):
            client.get("/console/waves/")


def test_a_list_is_searched_sorted_and_filtered(client, staff, opened):
    now = timezone.now()
    opened("planned", opens_at=now + timedelta(days=1))
    opened("open", wave=Wave.objects.create(name="Spring"))
    opened("soon", closes_at=now + timedelta(days=1))
    opened(
        "closed", opens_at=now - timedelta(days=9), closes_at=now - timedelta(days=1)
    )
    log_in(client, staff.state)

    def names(query: str) -> list[str]:
        page = client.get(f"/console/administrations/?{query}")
        return [row.name for row in page.context["rows"]]

    for row in Administration.objects.all():
        expected = "closes soon" if row.name == "soon" else row.name
        assert row.state == expected
        assert names(f"state={expected}") == [row.name]
    assert names("q=spr") == ["open"]
    assert names("sort=closes")[0] == "closed"
    assert names("state=nonsense&sort=-name") == ["soon", "planned", "open", "closed"]
    assert names("q=nothing+like+it") == []
    assert names("q=%00&page=99999999999999999999") != []


def test_empty_pages_show_the_next_step(client, staff):
    page = log_in(client, staff.state).get("/console/administrations/")
    assert "New survey round" in page.content.decode()
    assert "Write one and publish it" in client.get(NEW).content.decode()
    page = log_in(client, staff.chen).get("/console/administrations/")
    assert "When the state or your district opens a survey" in page.content.decode()


# Refused values


INVALID = [
    ({"opens_at": "0001-01-01T00:00"}, "Use a date between"),
    ({"closes_at": "9999-12-31T23:59"}, "Use a date between"),
    ({"closes_at": "275760-01-01T00:00"}, "Enter a date"),
    ({"opens_at": "soon"}, "Enter a date"),
    ({"opens_at": "\x00"}, "Enter a date"),
    ({"opens_at": "1" * 10_000}, "Use a date between"),
    # In Chicago, in 2027: 02:30 is left out, 01:30 comes twice.
    ({"opens_at": "2027-03-14T02:30"}, "clocks change"),
    ({"closes_at": "2027-11-07T01:30"}, "clocks change"),
    ({"closes_at": "2026-11-01T08:00"}, "has passed"),
    ({"opens_at": "2027-03-02T08:00", "closes_at": "2027-03-01T08:00"}, "close after"),
    ({"role": "pupil"}, "students, teachers or parents"),
    (
        {"role": "teacher", "privacy": "coordinators"},
        "allowed for teachers",
    ),
    (
        {"role": "teacher", "privacy": "consent", "consent_shows_finished": "on"},
        "allowed for teachers",
    ),
    ({"privacy": "consent", "denominator": "count"}, "people on a roster"),
    ({"messages_have_codes": "on"}, "confidential who has"),
    ({"privacy": "public"}, "Choose one of the three"),
    ({"privacy": ""}, "Choose who sees"),
    ({"role": ""}, "Choose the audience"),
    ({"denominator": "x"}, "Choose a roster or school links"),
    ({"scope": "chosen"}, "Find and select"),
    ({"scope": ""}, "Choose all schools"),
    ({"published": ""}, "Choose a questionnaire"),
    ({"minimum_group": "0"}, "from 1 to 100"),
    ({"subgroups": "x" * 30_000}, "at most 20000 characters"),
    ({"published": "x" * 10_000}, "Choose one of the published"),
    ({"published": "\x00"}, "Null characters"),
    ({"wave": "-1"}, "Choose one of the seasons"),
    ({"wave": "9" * 30}, "Choose one of the seasons"),
    ({"new_wave": "x" * 10_000}, "at most 200 characters"),
    ({"new_wave": "a\x00b"}, "Null characters"),
    ({"new_wave": "a\u202eb"}, "invisible (U+202E)"),
    ({"new_wave": "a\u200bb"}, "one line"),
    ({"scope": "chosen", "places": ["school--1"]}, "does not exist"),
    ({"scope": "chosen", "places": ["school-" + "9" * 30]}, "does not exist"),
    ({"scope": "chosen", "places": ["\x00", "x" * 10_000]}, "does not exist"),
]


def test_invalid_values_are_reported_and_nothing_is_opened(client, staff, published):
    log_in(client, staff.state)
    valid = form_for(published)
    for fields, reason in INVALID:
        assert reason in errors(answer_steps(client, {**valid, **fields})), fields
    assert not Administration.objects.exists()
    assert not Wave.objects.exists()
    assert not AuditEntry.objects.exists()


def test_places_are_searched_whatever_the_other_fields_hold(client, staff, published):
    log_in(client, staff.state)
    valid = form_for(published)
    address = answer_steps(client, valid, until="people")["Location"]
    first, last = {}, {}
    for fields, _ in INVALID:
        first, last = {**fields, **first}, {**last, **fields}
    search = {"again": "find", "q": "\x00" + "x" * 10_000, "revision": "1"}
    for fields in (first, last):
        reply = client.post(address, {**valid, **fields, **search})
        assert reply.status_code == 200
        assert errors(reply) == ""


def test_a_second_one_at_the_same_time_is_opened_only_on_purpose(
    client, staff, published, opened
):
    log_in(client, staff.state)
    given = form_for(published)
    summary = step_shown(client, given, "summary").content.decode()
    assert "Open a second one" not in summary
    # In the same month, whatever day it is: titles name it.
    opened(opens_at=timezone.now())
    # The page asks before the button is pressed.
    shown = step_shown(client, given, "summary")
    assert "Open a second one" in shown.content.decode()
    assert errors(shown) == ""
    # The button was pressed twice, or after Back.
    assert "is already open for students until" in errors(answer_steps(client, given))
    assert Administration.objects.count() == 1
    answer_steps(client, {**given, "second": "on"})
    assert Administration.objects.count() == 2
    # Later in the same season, it is asked about too; another title is not the same.
    next_month = timezone.now() + timedelta(days=60)
    season = {
        "opens_at": local(next_month),
        "closes_at": local(next_month + timedelta(days=9)),
    }
    refusal = errors(answer_steps(client, {**given, **season}))
    assert "is already open for students until" in refusal
    assert "Both would be called" not in refusal
    assert "Both would be called “climate, students," in errors(
        answer_steps(client, given)
    )
    # Other people, and other days in another season, are no second one.
    answer_steps(client, {**given, "role": "teacher"})
    later = timezone.now() + timedelta(days=40)
    dates = {
        "opens_at": local(later),
        "closes_at": local(later + timedelta(days=9)),
    }
    answer_steps(client, {**given, **dates, "new_wave": "Fall 2027"})
    assert Administration.objects.count() == 4
    assert "will open for students on" in errors(
        answer_steps(client, {**given, **dates})
    )


def test_conflicting_changes_show_the_other_change(client, staff, opened):
    spring = opened("spring", district=staff.riverside)
    dana = current_values(log_in(client, staff.dana), spring.pk)
    log_in(client, staff.state)
    state = current_values(client, spring.pk)
    address = reverse("administration_change", args=[spring.pk])
    later = timezone.now() + timedelta(days=60)
    assert client.post(address, {**state, "closes_at": local(later)}).status_code == 302
    log_in(client, staff.dana)
    sooner = timezone.now() + timedelta(days=3)
    reply = client.post(address, {**dana, "closes_at": local(sooner)})
    message = errors(reply)
    assert "state@example.org changed it" in message
    assert "closes:" in message
    spring.refresh_from_db()
    assert local(spring.closes_at) == local(later)
    close = reverse("administration_close", args=[spring.pk])
    assert "changed it" in errors(client.post(close, {"seen": dana["seen"]}))
    assert client.post(close, {"seen": spring.changes}).status_code == 302


def test_untouched_dates_keep_their_seconds(client, staff, opened):
    spring = opened("spring")
    enrol(spring, staff.lincoln, started_at=timezone.now())
    log_in(client, staff.state)
    address = reverse("administration_change", args=[spring.pk])
    held = current_values(client, spring.pk)
    assert client.post(address, held).status_code == 302
    assert not AuditEntry.objects.exists()
    wave = Wave.objects.create(name="Spring")
    assert client.post(address, {**held, "wave": wave.pk}).status_code == 302
    changed = Administration.objects.get()
    assert (changed.opens_at, changed.closes_at) == (spring.opens_at, spring.closes_at)
    assert changed.wave == wave


def test_closing_within_ten_minutes_needs_confirmation(client, staff, opened):
    spring = opened("spring")
    log_in(client, staff.state)
    address = reverse("administration_change", args=[spring.pk])
    held = current_values(client, spring.pk)
    soon = {**held, "closes_at": local(timezone.now() + timedelta(minutes=5))}
    reply = client.post(address, soon)
    assert "type its short name: spring" in errors(reply)
    assert b'name="confirmed"' in reply.content
    assert "its short name" in errors(client.post(address, {**soon, "confirmed": "x"}))
    assert client.post(address, {**soon, "confirmed": " spring "}).status_code == 302


def test_close_and_reopen_pages_explain_when_they_do_not_apply(client, staff, opened):
    now = timezone.now()
    log_in(client, staff.state)
    planned = opened("planned", opens_at=now + timedelta(days=1))
    running = opened("running")
    for row, page, sentence in (
        (planned, "close", "It has not opened yet"),
        (running, "reopen", "It is not closed"),
    ):
        address = reverse(f"administration_{page}", args=[row.pk])
        shown = client.get(address).content.decode()
        assert sentence in shown
        assert "<form class" not in shown.partition("<main")[2]
        sent = {"seen": row.changes, "closes_at": local(now + timedelta(days=50))}
        assert sentence in errors(client.post(address, sent))


def cards_made(administration, by, **fields):
    return CardSet.objects.create(
        administration=administration, by=by, made_at=timezone.now(), people=2,
        file_name=f"cards/{CardSet.objects.count()}.pdf", **fields,
    )  # fmt: skip


def form_of(response):
    """Return the page below the steps of the survey round."""
    return response.text.partition('class="console-head"')[2]


def test_printed_cards_are_mentioned_where_the_dates_are_changed(client, staff, opened):
    spring = opened("spring")
    enrol(spring, staff.lincoln)
    enrol(spring, staff.lincoln, started_at=timezone.now(), completed_at=timezone.now())
    log_in(client, staff.state)
    address = reverse("administration_change", args=[spring.pk])
    cards = reverse("cards_list", args=[spring.pk])
    # An order that is not made yet was not handed out.
    cards_made(spring, staff.state, school=staff.lincoln)
    CardSet.objects.update(made_at=None)
    assert cards not in form_of(client.get(address))
    cards_made(spring, staff.state, school=staff.lincoln)
    assert cards in form_of(client.get(address))

    # So does a file of all schools.
    CardSet.objects.all().delete()
    cards_made(spring, staff.state, format="zip")
    assert cards in form_of(client.get(address))

    held = current_values(client, spring.pk)
    same_day = spring.closes_at + timedelta(seconds=1)
    later = spring.closes_at + timedelta(days=7)
    for closes_at, warned in ((same_day, False), (later, True)):
        held |= {"closes_at": local(closes_at)}
        page = client.post(address, held, follow=True).content.decode()
        assert ("Print cards again" in page) == warned
        held = current_values(client, spring.pk)
    assert "1 person has not finished" in page
    assert (
        window_in_words("en", spring.opens_at, spring.closes_at, zone_of(None)) in page
    )
    Administration.objects.update(closes_at=timezone.now() - timedelta(minutes=1))
    spring.refresh_from_db()
    reopen = reverse("administration_reopen", args=[spring.pk])
    assert cards in form_of(client.get(reopen))
    seen = {"seen": spring.changes, "closes_at": local(later)}
    page = client.post(reopen, seen, follow=True).content.decode()
    assert "Print cards again" in page


@pytest.mark.parametrize("files", [0, 1, 3])
def test_mentioning_printed_cards_takes_one_statement(
    client, staff, opened, files, django_assert_num_queries
):
    spring = opened("spring")
    for _ in range(files):
        cards_made(spring, staff.state, school=staff.lincoln)
    log_in(client, staff.state)
    with django_assert_num_queries(10):
        client.get(reverse("administration_change", args=[spring.pk]))


# Removing


def test_removing_says_what_is_lost_and_asks_for_the_short_name(client, staff, opened):
    spring = opened("spring")
    enrol(spring, staff.lincoln)
    enrol(spring, staff.lincoln, issue=2)
    cards_made(spring, staff.state, school=staff.lincoln)
    log_in(client, staff.state)
    detail = client.get(reverse("administration_detail", args=[spring.pk]))
    address = reverse("administration_remove", args=[spring.pk])
    assert address in detail.content.decode()
    page = client.get(address).content.decode()
    assert "2 invited people" in page
    assert "2 login cards were made" in page
    # Asking changes nothing, and neither does a name that is another one.
    seen = {"seen": spring.changes}
    assert "Type the short name" in errors(client.post(address, seen))
    wrong = errors(client.post(address, {**seen, "confirmed": "fall"}))
    assert "type its short name: spring" in wrong
    assert Administration.objects.exists()
    reply = client.post(address, {**seen, "confirmed": " spring "}, follow=True)
    assert f"{spring.title} was removed." in reply.content.decode()
    assert not Administration.objects.exists()
    assert client.get(address).status_code == 404
    assert client.post(address, seen).status_code == 404


def test_an_administration_with_a_start_offers_no_removal(client, staff, opened):
    spring = opened("spring")
    enrol(spring, staff.lincoln, started_at=timezone.now())
    log_in(client, staff.state)
    address = reverse("administration_remove", args=[spring.pk])
    page = client.get(address).content.decode()
    assert "People have started, so it can&#x27;t be removed" in page
    assert "<form class" not in page.partition("<main")[2]
    sent = {"seen": spring.changes, "confirmed": "spring"}
    assert "People have started" in errors(client.post(address, sent))


def test_a_district_removes_its_own_administrations_only(client, staff, opened):
    states, of_district = opened("states"), opened("own", district=staff.riverside)
    of_lakeside = opened("others", district=staff.lakeside)
    log_in(client, staff.dana)
    for row, status in ((states, 404), (of_lakeside, 404), (of_district, 302)):
        address = reverse("administration_remove", args=[row.pk])
        sent = {"seen": row.changes, "confirmed": row.name}
        assert client.post(address, sent).status_code == status
    log_in(client, staff.chen)
    address = reverse("administration_remove", args=[states.pk])
    assert client.post(address, {"confirmed": "states"}).status_code in (403, 404)
    assert Administration.objects.count() == 2


def test_the_audit_log_keeps_the_title_of_a_removed_administration(
    client, staff, opened
):
    spring = opened("spring", by=staff.state)
    log_in(client, staff.state)
    address = reverse("administration_remove", args=[spring.pk])
    client.post(address, {"seen": spring.changes, "confirmed": "spring"})
    page = client.get("/console/audit/").content.decode()
    for act in ("planned", "removed"):
        assert f"{act} {spring.title}" in re.sub(r"<[^>]+>", "", page)


@pytest.mark.parametrize("people", [1, 3])
def test_the_page_that_asks_takes_a_fixed_number_of_statements(
    client, staff, opened, people, django_assert_num_queries
):
    spring = opened("spring")
    for number in range(people):
        enrol(spring, staff.lincoln, issue=number + 1)
    log_in(client, staff.state)
    with django_assert_num_queries(17):
        client.get(reverse("administration_remove", args=[spring.pk]))


# Waves


def test_waves_are_added_renamed_and_deleted(client, staff, opened):
    log_in(client, staff.state)
    client.post("/console/waves/new/", {"name": "  Spring   2027 "})
    wave = Wave.objects.get()
    assert (wave.name, wave.district) == ("Spring 2027", None)
    reply = client.post("/console/waves/new/", {"name": "spring 2027"})
    assert "A season named spring 2027 already exists" in errors(reply)
    client.post(f"/console/waves/{wave.pk}/rename/", {"name": "Spring 2028"})
    wave.refresh_from_db()
    assert wave.name == "Spring 2028"

    spring = opened("spring", wave=wave)
    reply = client.post(f"/console/waves/{wave.pk}/delete/")
    assert "Move them to another season" in errors(reply)
    Administration.objects.filter(pk=spring.pk).update(wave=None)
    assert client.get(f"/console/waves/{wave.pk}/delete/").status_code == 200
    assert Wave.objects.exists()
    client.post(f"/console/waves/{wave.pk}/delete/")
    assert not Wave.objects.exists()
    actions = AuditEntry.objects.order_by("pk").values_list("action", flat=True)
    assert list(actions) == ["create wave", "rename wave", "delete wave"]


def test_waves_of_other_districts_are_hidden(client, staff, opened, published):
    states = Wave.objects.create(name="Spring 2027")
    lakesides = Wave.objects.create(name="Secret", district=staff.lakeside)
    log_in(client, staff.dana)
    # Names are unique per owner, so another district's name is not revealed.
    client.post("/console/waves/new/", {"name": "Secret"})
    of_district = Wave.objects.get(district=staff.riverside)
    page = client.get("/console/waves/")
    assert {row.pk for row in page.context["rows"]} == {states.pk, of_district.pk}
    assert b"Lakeside" not in page.content
    for wave in (states, lakesides):
        for act in ("rename", "delete"):
            address = f"/console/waves/{wave.pk}/{act}/"
            assert client.get(address).status_code == 404
            assert client.post(address, {"name": "x"}).status_code == 404
    assert client.post(f"/console/waves/{of_district.pk}/delete/").status_code == 302

    # The state's wave may be used; another district's may not.
    answer_steps(client, form_for(published, new_wave="", wave=states.pk))
    assert Administration.objects.get().wave == states
    reply = answer_steps(client, form_for(published, new_wave="", wave=lakesides.pk))
    assert "Choose one of the seasons" in errors(reply)
    # Other districts' administrations are not counted.
    opened("lakes", wave=states, district=staff.lakeside)
    (shown,) = client.get("/console/waves/").context["rows"]
    assert shown.used == 1
    for user in (staff.chen, staff.analyst):
        for address in ("/console/waves/", "/console/waves/new/"):
            assert log_in(client, user).get(address).status_code == 404


@pytest.mark.parametrize("name", ["", "  ", "x" * 10_000, "a\x00b", "a\u2028b\u200f"])
def test_wave_names_are_one_line(client, staff, name):
    log_in(client, staff.state)
    assert errors(client.post("/console/waves/new/", {"name": name}))
    assert not Wave.objects.exists()


def test_the_list_may_be_empty(client, staff):
    assert District.objects.count() == 2
    page = log_in(client, staff.sam).get("/console/administrations/")
    assert list(page.context["rows"]) == []


def test_the_admin_site_is_read_only_for_administrations(client, opened):
    spring = opened("spring")
    engineer = User.objects.create_superuser("engineer@example.org", "calm-harbour-42")
    log_in(client, engineer)
    address = f"/engineers/survey/administration/{spring.pk}/change/"
    assert client.get(address).status_code == 200
    assert client.post(address, {"role": "teacher"}).status_code == 403
    assert Administration.objects.get().role == "student"


def test_subgroups_are_declared_line_by_line(client, staff, published):
    log_in(client, staff.state)
    page = step_shown(client, form_for(published), "privacy")
    shown = page.context["form"]["subgroups"].value()
    assert "lunch: free, reduced, paid" in shown
    lines = "House: Red, Blue\r\n\r\nPupil name: Maya"
    refused = errors(answer_steps(client, form_for(published, subgroups=lines)))
    assert "&#x27;Pupil name&#x27; can&#x27;t be a subgroup" in refused
    answer_steps(client, form_for(published, subgroups=lines.split("\r")[0]))
    administration = Administration.objects.get()
    assert administration.subgroups == {"House": ["Red", "Blue"]}

    detail = reverse("administration_detail", args=[administration.pk])
    assert "Grade, Language, House" in client.get(detail).content.decode()
    held = current_values(client, administration.pk)
    assert held["subgroups"] == "House: Red, Blue"
    client.post(f"{detail}change/", {**held, "subgroups": "House: Red, Blue, Green"})
    administration.refresh_from_db()
    assert administration.subgroups == {"House": ["Red", "Blue", "Green"]}
    entry = AuditEntry.objects.filter(action="change administration").first()
    assert entry.after == {"subgroups": "House: Red, Blue, Green"}


def test_no_administration_has_a_smaller_group_than_the_settings_require(
    client, staff, published
):
    PlaceSettings.objects.create(minimum_group=10)
    log_in(client, staff.state)
    page = step_shown(client, form_for(published), "privacy")
    assert page.context["form"]["minimum_group"].value() == 10
    refused = errors(answer_steps(client, form_for(published, minimum_group="9")))
    assert "The settings require at least 10." in refused
    answer_steps(client, form_for(published, minimum_group=""))
    administration = Administration.objects.get()
    assert administration.minimum_group == 10

    # A later requirement holds for later administrations.
    PlaceSettings.objects.update(minimum_group=20)
    change = f"{reverse('administration_detail', args=[administration.pk])}change/"
    held = current_values(client, administration.pk)
    client.post(change, {**held, "privacy": "coordinators"})
    administration.refresh_from_db()
    assert administration.coordinators_see_finished
    assert administration.minimum_group == 10
    held = current_values(client, administration.pk)
    refused = errors(client.post(change, {**held, "minimum_group": "9"}))
    assert "The settings require at least 20." in refused


def test_the_minimum_group_of_exports_is_a_setting(client, staff, published):
    log_in(client, staff.state)
    page = step_shown(client, form_for(published), "privacy")
    assert page.context["form"]["minimum_group"].value() == 10
    refused = errors(answer_steps(client, form_for(published, minimum_group="0")))
    assert "Enter a whole number from 1 to 100." in refused
    answer_steps(client, form_for(published, minimum_group="8"))
    administration = Administration.objects.get()
    assert administration.minimum_group == 8

    detail = reverse("administration_detail", args=[administration.pk])
    text = client.get(detail).content.decode()
    assert "Results are shown where at least 8 people answered." in text
    assert "at least 8 of the people who were counted share" in text
    held = current_values(client, administration.pk)
    client.post(f"{detail}change/", {**held, "minimum_group": ""})
    client.post(f"{detail}change/", {**held, "minimum_group": "10"})
    administration.refresh_from_db()
    assert administration.minimum_group == 10
    [entry] = AuditEntry.objects.filter(action="change administration")
    assert entry.before == {"minimum group in exports": 8}
    assert entry.after == {"minimum group in exports": 10}


def test_joining_waves_is_a_setting_that_people_are_promised(client, staff, published):
    log_in(client, staff.state)
    answer_steps(client, form_for(published))
    administration = Administration.objects.get()
    assert not administration.joins_waves
    detail = reverse("administration_detail", args=[administration.pk])
    assert "have different random IDs" in client.get(detail).content.decode()
    held = current_values(client, administration.pk)
    client.post(f"{detail}change/", {**held, "joins_waves": "on"})
    administration.refresh_from_db()
    assert administration.joins_waves
    assert "can be joined by a random ID" in client.get(detail).content.decode()
    [entry] = AuditEntry.objects.filter(action="change administration")
    assert entry.after == {"answers can be joined with other waves": True}

    Administration.objects.update(joins_waves=False)
    enrol(administration, staff.lincoln, started_at=timezone.now())
    held = current_values(client, administration.pk)
    client.post(f"{detail}change/", {**held, "joins_waves": "on"})
    administration.refresh_from_db()
    assert not administration.joins_waves


def test_who_takes_part_is_a_setting(client, staff, published):
    log_in(client, staff.state)
    answer_steps(client, form_for(published))
    administration = Administration.objects.get()
    assert administration.denominator == "roster"
    detail = reverse("administration_detail", args=[administration.pk])
    assert "People on a roster" in client.get(detail).content.decode()
    held = current_values(client, administration.pk)
    refused = errors(client.post(f"{detail}change/", {**held, "denominator": "x"}))
    assert "Choose a roster or school links." in refused
    client.post(f"{detail}change/", {**held, "denominator": "count"})
    administration.refresh_from_db()
    assert administration.denominator == "count"
    [entry] = AuditEntry.objects.filter(action="change administration")
    assert entry.after == {"response rates by": "count"}
    assert "school's link" in client.get(detail).content.decode()
    enrol(administration, staff.lincoln)
    form = client.get(f"{detail}change/").context["form"]
    assert form.fields["denominator"].disabled
