"""Open a survey round step by step."""

from __future__ import annotations

import itertools
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, connections
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import Membership
from accounts.tests.conftest import member
from accounts.tests.logging_in import log_in
from settings.tests.patience import patience
from survey.console.administrations import open_drafts, open_views
from survey.console.administrations.open_drafts import (
    LASTS,
    LONGEST_TEXT,
    MOST_DRAFTS,
    SESSION_KEY,
)
from survey.fieldwork.administrations.suggestions import suggest_window
from survey.models import (
    Administration,
    DayOff,
    PublishedSurvey,
    Retirement,
    Survey,
    Wave,
)
from survey.tests.conftest import enrol
from survey.tests.console.test_administrations import (
    NEW,
    answer_steps,
    current_values,
    errors,
    form_for,
    local,
    step_shown,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def published(publish) -> PublishedSurvey:
    return publish()


def address(draft: str, step: str) -> str:
    return reverse("administration_open_step", args=[draft, step])


def send(client: Client, page: Any, answers: dict[str, Any]) -> Any:
    """Send a page that is shown, as its form would."""
    revision = page.context["draft"].revision
    return client.post(
        page.wsgi_request.path, {"revision": revision, **answers}, follow=True
    )


def text(response: Any) -> str:
    return " ".join(response.content.decode().split())


def test_the_only_audience_of_a_questionnaire_is_suggested(client, staff, published):
    log_in(client, staff.dana)

    def suggested():
        page = step_shown(client, form_for(published), "people")
        return page.context["form"]["role"].value()

    assert not suggested()
    rounds = [
        Administration.objects.create(
            name=f"{role}-{place}",
            published=published,
            role=role,
            district=place,
            opens_at=timezone.now() - timedelta(days=400),
            closes_at=timezone.now() - timedelta(days=390),
        )
        for role, place in (
            ("parent", None),
            ("teacher", staff.lakeside),
            ("student", staff.riverside),
        )
    ]
    # Several, of which the district does not know the one of another district.
    assert not suggested()
    rounds[2].delete()
    assert suggested() == "parent"


def test_the_summary_names_subgroups_only_where_they_were_changed(
    client, staff, published
):
    log_in(client, staff.state)
    assert "1 subgroup column" in text(
        step_shown(client, form_for(published), "summary")
    )
    page = step_shown(client, form_for(published), "privacy")
    suggested = page.context["form"]["subgroups"].value()
    page = send(client, page, {"privacy": "confidential", "subgroups": suggested})
    assert "Check and open" in text(page)
    assert "subgroup column" not in text(page)


def test_a_survey_round_is_opened_in_five_steps(client, staff, published):
    log_in(client, staff.state)
    page = client.get(NEW)
    assert "Step 1 of 5" in text(page)
    page = send(client, page, {"published": published.pk})
    assert "Step 2 of 5" in text(page)
    places = [f"school-{staff.lincoln.pk}", f"school-{staff.roosevelt.pk}"]
    page = send(
        client,
        page,
        {
            "role": "student",
            "denominator": "roster",
            "scope": "chosen",
            "places": places,
        },
    )
    assert "Step 3 of 5" in text(page)
    suggested = page.context["form"]
    opens_at, closes_at = suggested.initial["opens_at"], suggested.initial["closes_at"]
    assert timezone.now() < opens_at < closes_at
    dates = {"opens_at": local(opens_at), "closes_at": local(closes_at)}
    dates["new_wave"] = "Winter 2026"
    page = send(client, page, dates)
    assert "Step 4 of 5" in text(page)
    privacy = page.context["form"]
    assert privacy["privacy"].value() == "confidential"
    assert "lunch: free, reduced, paid" in privacy["subgroups"].value()
    settings = {"subgroups": privacy["subgroups"].value(), "minimum_group": "8"}
    page = send(client, page, {"privacy": "coordinators", **settings})
    assert "Step 5 of 5" in text(page)
    sentence = page.context["sentence"]
    assert sentence.startswith("Students in 2 schools can answer “")
    assert "coordinators see who has finished, by name" in sentence
    assert "results are shown where at least 8 people answered." in sentence
    assert "Season: Winter 2026" in text(page)
    assert not Administration.objects.exists()
    assert not Wave.objects.exists()

    page = send(client, page, {})
    administration = Administration.objects.get()
    roster = reverse("roster_upload", args=[administration.pk])
    assert page.redirect_chain == [(roster, 302)]
    assert administration.name == "winter-2026-students"
    assert administration.coordinators_see_finished
    assert not administration.requires_consent
    assert administration.minimum_group == 8
    assert set(administration.schools.all()) == {staff.lincoln, staff.roosevelt}
    assert page.wsgi_request.session[SESSION_KEY] == []


@pytest.mark.parametrize("role", ["student", "teacher", "parent"])
def test_suggested_dates_and_privacy_are_what_the_pages_suggest(
    client, staff, published, role
):
    log_in(client, staff.state)
    people = {"role": role, "denominator": "roster", "scope": "everywhere"}
    Wave.objects.create(name="Spring 2027")
    page = send(client, client.get(NEW), {"published": published.pk})
    assert 'name="suggested"' in text(page)
    page = send(client, page, {**people, "suggested": "1"})
    assert page.wsgi_request.path == address(page.context["draft"].key, "summary")
    assert page.context["sentence"]
    quick = page.context["draft"].values

    page = send(client, client.get(NEW), {"published": published.pk})
    page = send(client, page, people)
    while page.context["step"].name != "summary":
        page = send(client, page, typed_in(page))
    assert page.context["draft"].values == quick
    # Nothing is left to suggest.
    back = client.get(address(page.context["draft"].key, "people"))
    assert 'name="suggested"' not in text(back)


@pytest.mark.parametrize(
    ("answers", "are_drawn", "may_be_named"),
    [
        ({"privacy": "confidential"}, True, True),
        ({"privacy": "consent"}, True, True),
        ({"privacy": "confidential", "role": "teacher"}, True, False),
        ({"privacy": "coordinators"}, False, None),
        ({"privacy": "consent", "consent_shows_finished": "on"}, False, None),
        # Without login cards.
        ({"privacy": "confidential", "denominator": "count"}, False, None),
    ],
)
def test_the_summary_says_where_cards_are_drawn(
    client, staff, published, answers, are_drawn, may_be_named
):
    log_in(client, staff.state)
    page = step_shown(client, form_for(published, **answers), "summary")
    assert ("Printed cards have no names" in text(page)) is are_drawn
    if are_drawn:
        names = "Choose cards with names instead"
        assert (names in text(page)) is may_be_named
    send(client, page, {})
    administration = Administration.objects.get()
    # What the summary warns of: they are stored all the same.
    assert administration.subgroups
    if administration.denominator == "roster":
        assert administration.is_completion_confidential is are_drawn


def test_a_round_that_opens_later_is_scheduled(client, staff, published):
    log_in(client, staff.state)
    now = timezone.now()
    later = form_for(published, opens_at=local(now + timedelta(days=2)))
    page = step_shown(client, later, "summary")
    assert "Schedule survey round" in text(page)
    assert "It opens by itself on " in page.context["sentence"]
    at_once = form_for(published, opens_at=local(now - timedelta(hours=1)))
    page = step_shown(client, at_once, "summary")
    assert "Open survey round" in text(page)
    assert "It opens by itself" not in page.context["sentence"]


def test_the_summary_says_what_confidential_means(client, staff, published):
    log_in(client, staff.state)
    page = step_shown(client, form_for(published), "summary")
    assert "Confidential: nobody at school sees who has finished" in text(page)


def typed_in(page: Any) -> dict[str, Any]:
    """Return what a browser sends for the fields of a page, as they are shown."""
    fields = re.findall(
        r'<(?:input|textarea|select)[^>]* name="(\w+)"', page.content.decode()
    )
    form = page.context["form"]
    values = {name: form[name].value() for name in form.fields if name in fields}
    return {
        name: "on" if value is True else form[name].field.widget.format_value(value)
        for name, value in values.items()
        if value
    }


@pytest.mark.parametrize(
    ("answers", "sees_finished", "consent"),
    [
        ({"privacy": "confidential"}, False, False),
        # Left ticked, while another choice was made.
        ({"privacy": "confidential", "consent_shows_finished": "on"}, False, False),
        ({"privacy": "coordinators"}, True, False),
        ({"privacy": "consent"}, False, True),
        ({"privacy": "consent", "consent_shows_finished": "on"}, True, True),
    ],
)
def test_each_choice_of_privacy_is_stored_and_shown_again(
    client, staff, published, answers, sees_finished, consent
):
    log_in(client, staff.state)
    answer_steps(client, form_for(published, **answers))
    administration = Administration.objects.get()
    assert administration.coordinators_see_finished is sees_finished
    assert administration.requires_consent is consent
    change = client.get(reverse("administration_change", args=[administration.pk]))
    assert change.context["form"]["privacy"].value() == answers["privacy"]
    ticked = change.context["form"]["consent_shows_finished"].value()
    assert ticked is (sees_finished and consent)


def test_rare_settings_are_stored(client, staff, published):
    log_in(client, staff.state)
    names = ("replays_answers", "messages_have_names", "messages_have_codes")
    rare = dict.fromkeys((*names, "joins_waves"), "on")
    answers = form_for(published, privacy="coordinators", **rare)
    summary = step_shown(client, answers, "summary")
    assert "Message platforms get links with access codes" in text(summary)
    send(client, summary, {})
    administration = Administration.objects.get()
    assert [getattr(administration, name) for name in rare] == [True] * 4


def test_choices_that_do_not_fit_the_audience_are_disabled(client, staff, published):
    log_in(client, staff.state)
    cases = [
        ({"role": "teacher"}, "coordinators"),
        ({"denominator": "count"}, "consent"),
    ]
    for fields, refused in cases:
        page = step_shown(client, form_for(published, **fields), "privacy")
        radios = page.context["form"]["privacy"].subwidgets
        disabled = {
            radio.data["value"] for radio in radios if "disabled" in radio.data["attrs"]
        }
        assert disabled == {refused}


def test_a_change_of_the_audience_shows_what_no_longer_fits(client, staff, published):
    log_in(client, staff.state)
    answers = form_for(published, privacy="coordinators")
    summary = step_shown(client, answers, "summary")
    key = summary.context["draft"].key
    people = client.get(address(key, "people"))
    assert people.context["form"]["role"].value() == "student"
    # A change from the summary leads back to it.
    page = send(client, people, {**answers, "role": "teacher"})
    assert page.wsgi_request.path == address(key, "summary")
    assert "This is never allowed for teachers" in text(page)
    assert page.context["sentence"] == ""
    assert f'href="{address(key, "privacy")}"' in text(page)
    page = send(client, page, {})
    assert "This is never allowed for teachers" in text(page)
    assert not Administration.objects.exists()
    privacy = client.get(address(key, "privacy"))
    page = send(client, privacy, {**answers, "privacy": "confidential"})
    send(client, page, {})
    assert Administration.objects.get().role == "teacher"


# Back and forth


def test_back_keeps_what_was_typed(client, staff, published):
    log_in(client, staff.state)
    answers = form_for(published)
    page = step_shown(client, answers, "dates")
    key = page.context["draft"].key
    # Without a date: it is not complete, and not checked.
    incomplete = {"opens_at": answers["opens_at"], "new_wave": "Winter", "back": "1"}
    page = send(client, page, incomplete)
    assert page.wsgi_request.path == address(key, "people")
    assert page.context["form"]["role"].value() == "student"
    assert errors(page) == ""
    page = client.get(address(key, "dates"))
    assert page.context["form"]["new_wave"].value() == "Winter"
    assert page.context["form"]["opens_at"].value() == answers["opens_at"]
    assert errors(page) == ""
    # It is not done, so there is no way past it.
    assert client.get(address(key, "privacy"))["Location"] == address(key, "dates")
    # Nor does Back confirm what was only suggested.
    page = send(client, page, answers)
    page = send(client, page, {**answers, "back": "1"})
    page = send(client, page, answers)
    assert page.wsgi_request.path == address(key, "privacy")


def test_back_from_the_summary_opens_nothing(client, staff, published):
    log_in(client, staff.state)
    summary = step_shown(client, form_for(published), "summary")
    page = send(client, summary, {"back": "1"})
    assert page.wsgi_request.path == address(page.context["draft"].key, "privacy")
    assert not Administration.objects.exists()


def test_steps_cannot_be_skipped(client, staff, published):
    log_in(client, staff.state)
    page = step_shown(client, form_for(published), "people")
    key = page.context["draft"].key
    for step in ("dates", "privacy", "summary"):
        assert client.get(address(key, step))["Location"] == address(key, "people")
        reply = client.post(address(key, step), {"revision": 1, **form_for(published)})
        assert reply["Location"] == address(key, "people")
    assert client.get(address(key, "questions")).status_code == 200
    assert client.get(address(key, "nothing")).status_code == 404
    assert not Administration.objects.exists()


def test_a_page_of_another_tab_does_not_overwrite_a_newer_answer(
    client, staff, published
):
    log_in(client, staff.state)
    answers = form_for(published)
    stale = step_shown(client, answers, "people")
    key = stale.context["draft"].key
    send(client, client.get(address(key, "people")), {**answers, "role": "parent"})
    page = send(client, stale, {**answers, "role": "teacher"})
    assert "was changed in another tab" in text(page)
    assert page.context["form"]["role"].value() == "parent"
    # The same with the last button.
    summary = step_shown(client, answers, "summary")
    key = summary.context["draft"].key
    send(client, client.get(address(key, "people")), {**answers, "role": "parent"})
    page = send(client, summary, {})
    assert "was changed in another tab" in text(page)
    assert not Administration.objects.exists()
    send(client, page, {})
    assert Administration.objects.get().role == "parent"
    # And once more, after it is open.
    opened = Administration.objects.get()
    reply = client.post(summary.wsgi_request.path, {"revision": 5})
    assert reply["Location"] == reverse("roster_upload", args=[opened.pk])
    assert Administration.objects.count() == 1
    # Until it is removed.
    opened.delete()
    page = client.get(summary.wsgi_request.path, follow=True)
    assert "finished or too old" in text(page)


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor != "postgresql", reason="needs two writers")
@pytest.mark.parametrize("is_locked", [True, False])
def test_two_requests_at_once_open_one_survey_round(
    client, staff, published, monkeypatch, is_locked
):
    """Without the lock, both find the draft and no round like it, and open one."""
    log_in(client, staff.state)
    summary = step_shown(client, form_for(published, new_wave=""), "summary")
    both_read_draft = threading.Barrier(2)
    has_first_opened, is_second_checked = threading.Event(), threading.Event()
    callers = itertools.count()

    def find_together(*args: Any) -> Any:
        draft = find_draft(*args)
        both_read_draft.wait(patience(10))
        return draft

    def open_in_turn(*args: Any) -> Any:
        if next(callers):
            is_second_checked.set()
            assert has_first_opened.wait(patience(10))
        else:
            is_second_checked.wait(0.5 if is_locked else patience(10))
        return open_round(*args)

    find_draft, open_round = open_views.find_draft, open_views._open
    monkeypatch.setattr(open_views, "find_draft", find_together)
    monkeypatch.setattr(open_views, "_open", open_in_turn)
    if not is_locked:
        monkeypatch.setattr(open_views, "lock_draft", lambda *_: True)

    def press(_: int) -> str:
        same_browser = Client()
        same_browser.cookies = client.cookies.copy()
        try:
            reply = same_browser.post(summary.wsgi_request.path, {"revision": 4})
            has_first_opened.set()
            return reply["Location"]
        finally:
            connections.close_all()

    with ThreadPoolExecutor(2) as threads:
        addresses = list(threads.map(press, range(2)))
    assert Administration.objects.count() == (1 if is_locked else 2)
    # The second click leads to what the first one has opened.
    assert len(set(addresses)) == (1 if is_locked else 2)
    page = client.get(NEW)
    assert page.wsgi_request.session[SESSION_KEY] == []


def test_two_drafts_do_not_mix(client, staff, published):
    log_in(client, staff.state)
    first = step_shown(client, form_for(published), "summary")
    second = step_shown(client, form_for(published, role="parent"), "summary")
    assert first.context["draft"].key != second.context["draft"].key
    send(client, first, {})
    assert Administration.objects.get().role == "student"
    send(client, second, {})
    assert Administration.objects.filter(role="parent").exists()


def test_drafts_are_few_small_and_expire(client, staff, published, monkeypatch):
    log_in(client, staff.state)
    keys = [
        step_shown(client, form_for(published), "people").context["draft"].key
        for _ in range(MOST_DRAFTS + 1)
    ]
    page = client.get(NEW)
    held = [row["key"] for row in page.wsgi_request.session[SESSION_KEY]]
    assert held == list(reversed(keys[1:]))
    assert "You have a draft of a survey round" in text(page)
    gone = client.get(address(keys[0], "people"), follow=True)
    assert "finished or too old" in text(gone)
    assert gone.wsgi_request.path == NEW

    page = step_shown(client, form_for(published), "privacy")
    page = send(client, page, {"subgroups": "x" * 100_000, "back": "1"})
    [stored] = page.wsgi_request.session[SESSION_KEY][0]["values"]["subgroups"]
    assert len(stored) == LONGEST_TEXT

    now = time.time()
    monkeypatch.setattr(open_drafts.time, "time", lambda: now + LASTS + 1)
    assert client.get(address(keys[-1], "people"))["Location"] == NEW
    assert "You have begun" not in text(client.get(NEW))


def test_a_draft_is_of_one_user(client, staff, published):
    log_in(client, staff.state)
    key = step_shown(client, form_for(published), "people").context["draft"].key
    foreign = log_in(Client(), staff.dana)
    assert foreign.get(address(key, "people"))["Location"] == NEW
    for user in (staff.chen, staff.analyst, staff.sam):
        curious = log_in(Client(), user)
        assert curious.get(address(key, "people")).status_code == 404


# The end checks everything again


def test_a_survey_that_was_retired_meanwhile_is_refused(client, staff, published):
    log_in(client, staff.state)
    summary = step_shown(client, form_for(published), "summary")
    Retirement.objects.create(survey=published.survey)
    page = send(client, summary, {})
    assert "Choose one of the published questionnaires" in text(page)
    assert address(summary.context["draft"].key, "questions") in text(page)
    assert not Administration.objects.exists()


def test_rights_that_were_lost_meanwhile_are_missing(client, staff, published):
    both = member("both@example.org", "district", district=staff.riverside)
    lakeside = Membership.objects.create(
        user=both, role="district", district=staff.lakeside
    )
    log_in(client, both)
    answers = form_for(published, owner=f"district-{staff.lakeside.pk}")
    summary = step_shown(client, answers, "summary")
    lakeside.delete()
    page = send(client, summary, {})
    # Nor is it opened for the other district, which nobody has chosen.
    assert "Choose one of your districts" in text(page)
    assert not Administration.objects.exists()
    Membership.objects.filter(user=both).delete()
    path = summary.wsgi_request.path
    assert client.post(path, {"revision": "4"}).status_code == 404
    assert not Administration.objects.exists()


def test_a_date_that_passed_meanwhile_is_refused(client, staff, published, monkeypatch):
    log_in(client, staff.state)
    summary = step_shown(client, form_for(published), "summary")
    assert summary.context["sentence"]
    # The session and the draft go on.
    later = timezone.now() + timedelta(hours=2)
    soon = {"closes_at": local(timezone.now() + timedelta(hours=1))}
    summary = step_shown(client, form_for(published, **soon), "summary")
    monkeypatch.setattr(timezone, "now", lambda: later)
    page = send(client, summary, {})
    assert "This time has passed" in text(page)
    assert address(summary.context["draft"].key, "dates") in text(page)
    assert not Administration.objects.exists()


# Questionnaires


def test_only_the_newest_version_is_listed_unless_another_is_chosen(
    client, staff, publish
):
    older, newer = publish(), publish(name="next")
    Survey.objects.filter(name="next").update(name=older.survey.name, version="2")
    log_in(client, staff.state)

    def listed(query: str = "") -> list[str]:
        page = client.get(NEW + query)
        return [value for value, _ in page.context["form"].survey_choices]

    assert listed() == [newer.pk]
    assert listed(f"?published={older.pk}") == [older.pk, newer.pk]
    assert listed("?published=%00x") == [newer.pk]
    page = client.get(f"{NEW}?published={older.pk}")
    assert page.context["form"]["published"].value() == older.pk
    assert "Version 2" in text(page)
    answer_steps(client, form_for(older))
    assert Administration.objects.get().published == older


@pytest.mark.parametrize("count", [1, 3])
def test_listing_questionnaires_takes_a_fixed_number_of_statements(
    client, staff, publish, count, django_assert_num_queries
):
    for number in range(count):
        publish(name=f"survey-{number}")
    log_in(client, staff.state)
    # 3 for the user, 1 whether there is any, 1 for the list, 2 for numbers of pages
    # and questions.
    with django_assert_num_queries(7):
        page = client.get(NEW)
    assert len(page.context["form"].survey_choices) == count


def test_many_questionnaires_are_searched(client, staff, publish):
    for number in range(14):
        publish(name=f"survey-{number}")
    log_in(client, staff.state)
    page = client.get(NEW)
    assert len(page.context["form"].survey_choices) == 12
    assert "There are more: type a part of the title" in text(page)
    page = client.post(NEW, {"q": "survey-13", "again": "find"})
    [(digest, _label)] = page.context["form"].survey_choices
    assert PublishedSurvey.objects.get(pk=digest).survey.name == "survey-13"
    assert errors(page) == ""
    page = client.post(NEW, {"q": "nothing", "enter": "1"})
    assert "No questionnaire matches “nothing”" in text(page)


def test_a_district_sees_no_survey_of_another(client, staff, publish):
    publish(name="secret")
    hers = publish(name="hers")
    Survey.objects.filter(name="secret").update(district=staff.lakeside)
    Survey.objects.filter(name="hers").update(district=staff.riverside)
    log_in(client, staff.dana)
    page = client.get(NEW)
    assert [value for value, _ in page.context["form"].survey_choices] == [hers.pk]
    log_in(client, staff.state)
    assert len(client.get(NEW).context["form"].survey_choices) == 2


# Suggestions


def test_school_days_are_suggested(monkeypatch):
    # Friday, before a week of holidays.
    friday = timezone.make_aware(timezone.datetime(2026, 11, 20, 12))
    monkeypatch.setattr(timezone, "now", lambda: friday)
    opens_at, closes_at = suggest_window(None)
    assert local(opens_at) == "2026-11-23T08:00"
    assert local(closes_at) == "2026-12-14T16:00"
    DayOff.objects.create(name="Thanksgiving", first="2026-11-23", last="2026-11-29")
    DayOff.objects.create(name="Snow", first="2026-12-21", last="2027-09-01")
    opens_at, closes_at = suggest_window(None)
    assert local(opens_at) == "2026-11-30T08:00"
    # No school day is left, so it is simply three weeks later.
    assert local(closes_at) == "2026-12-21T16:00"


def test_the_season_of_rounds_that_are_open_is_suggested(client, staff, published):
    log_in(client, staff.state)
    answer_steps(client, form_for(published))
    Wave.objects.create(name="Fall 2030")
    page = step_shown(client, form_for(published, role="parent"), "dates")
    wave = Wave.objects.get(name="Spring 2027")
    assert f'<option value="{wave.pk}" selected>' in page.content.decode()


# The same choices when a survey round is changed


@pytest.mark.parametrize(
    ("before", "disabled"),
    [("confidential", {"consent"}), ("consent", {"confidential", "coordinators"})],
)
def test_consent_is_fixed_once_people_are_invited(
    client, staff, published, before, disabled
):
    log_in(client, staff.state)
    answer_steps(client, form_for(published, privacy=before))
    administration = Administration.objects.get()
    enrol(administration, staff.lincoln)
    change = reverse("administration_change", args=[administration.pk])
    radios = client.get(change).context["form"]["privacy"].subwidgets
    assert disabled == {
        radio.data["value"] for radio in radios if "disabled" in radio.data["attrs"]
    }
    held = current_values(client, administration.pk)
    for choice in disabled:
        refused = errors(client.post(change, {**held, "privacy": choice}))
        assert "People are already invited, so this can&#x27;t be changed" in refused
    # Whether coordinators see who has finished stays open.
    shown = {"privacy": "coordinators"}
    if before == "consent":
        shown = {"privacy": "consent", "consent_shows_finished": "on"}
    assert client.post(change, {**held, **shown}).status_code == 302
    administration.refresh_from_db()
    assert administration.coordinators_see_finished
    assert administration.requires_consent is (before == "consent")
