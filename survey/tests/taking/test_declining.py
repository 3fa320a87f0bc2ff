"""*I do not want to take part*: the code ends, and nothing that was said is used."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from survey.models import Administration, Respondent, Response
from survey.people import new_codes
from survey.people.new_codes import let_in_again, reissue, reissue_all
from survey.taking.login import LoginRefused, log_in_respondent
from survey.taking.messages import messages_in
from survey.tests.conftest import FIRST_PAGE, SECOND_PAGE, Browser, code_of
from survey.tests.open_codes.cast import begin, open_code, open_to_parents
from survey.tests.taking.test_plain_forms import start
from survey.tests.taking.test_resume_cookie import JSON, is_asked_for_a_code, tag_of

pytestmark = pytest.mark.django_db

DECLINE = "/take/decline/"
LINK = '<p class="stop" id="decline" hidden>'


@pytest.fixture
def administration(administration) -> Administration:
    administration.allows_declining = True
    administration.save()
    return administration


def decline(browser: Browser, respondent, **fields: str):
    return browser.post(DECLINE, {"for": tag_of(respondent), **fields})


def assert_not_recorded(reply) -> None:
    assert reply.status_code == 409
    page = reply.content.decode()
    [language] = re.findall('<html lang="(..)"', page)
    assert messages_in(language, role="")["declining_failed"] in page
    # Trying once more would change nothing, so there is no button for it.
    assert 'type="submit"' not in page.partition("<main")[2].partition("</main>")[0]


def has_declined(respondent) -> bool:
    respondent.refresh_from_db()
    return respondent.declined_at is not None


@pytest.mark.sqlite
def test_a_person_declines_on_the_first_page_and_the_code_ends(browser, maya):
    browser.log_in(maya)
    assert LINK in browser.get("/take/").content.decode()
    page = browser.get(DECLINE, {"for": tag_of(maya), "language": "es"})
    assert "Nuestra escuela" in page.content.decode()
    assert not has_declined(maya)

    reply = decline(browser, maya, language="es")
    assert reply["Location"] == "/take/decline/?declined&language=es"
    assert has_declined(maya) and maya.completed_at == maya.declined_at
    shown = browser.get(reply["Location"]).content.decode()
    # Never the code, nor anything else about her.
    assert 'lang="es"' in shown and tag_of(maya) not in shown

    assert is_asked_for_a_code(browser)
    refused = Browser().post("/", {"code": code_of(maya), "language": "en"})
    assert refused.status_code == 422
    assert "You decided not to take part" in refused.content.decode()


@pytest.mark.sqlite
def test_another_device_is_told_and_saves_nothing_more(browser, maya):
    """In whatever order the two are used; what it had saved stays stored."""
    other_device = Browser().log_in(maya)
    base = other_device.bootstrap()["revision"]
    assert other_device.save(1, FIRST_PAGE, base).status_code == 200
    browser.log_in(maya)
    decline(browser, maya)

    late = other_device.save(2, SECOND_PAGE, base + 1, tag=tag_of(maya))
    assert (late.status_code, late.json()["error"]) == (409, "declined")
    assert late.json()["from"] == "groundswell"
    assert Response.objects.count() == len(FIRST_PAGE)
    renewed = other_device.get("/take/", headers=JSON)
    assert (renewed.status_code, renewed.json()["error"]) == (409, "declined")
    reloaded = other_device.get("/take/")
    assert reloaded["Location"].startswith("/take/decline/?declined")
    # A page that was acknowledged before is acknowledged again.
    assert other_device.save(1, FIRST_PAGE, base, tag=tag_of(maya)).status_code == 200


@pytest.mark.sqlite
def test_without_the_end_of_the_code_the_other_device_would_go_on(browser, maya):
    other_device = Browser().log_in(maya)
    base = other_device.bootstrap()["revision"]
    browser.log_in(maya)
    decline(browser, maya)
    Respondent.objects.filter(pk=maya.pk).update(declined_at=None, completed_at=None)
    assert other_device.save(1, FIRST_PAGE, base, tag=tag_of(maya)).status_code == 200


def test_a_plain_page_offers_it_first_and_says_so_later(browser, maya):
    browser.log_in(maya)
    first = start(browser)
    assert f"{DECLINE}?language=" in first.html
    second = first.send(safe="3", subjects=["sport"], age="9")
    assert second.html != first.html and DECLINE not in second.html

    decline(Browser().log_in(maya), maya)
    reply = second.post(born="2014-02-28")
    assert reply.status_code == 409
    text = reply.content.decode()
    assert messages_in("es", role="")["declined_while_help"] in text
    assert "2014-02-28" not in text
    assert not Response.objects.filter(value="2014-02-28").exists()


def test_it_is_offered_only_where_the_administration_says_so(browser, maya):
    Administration.objects.update(allows_declining=False)
    browser.log_in(maya)
    assert LINK not in browser.get("/take/").content.decode()
    assert DECLINE not in start(browser).html
    assert browser.get(DECLINE)["Location"] == "/take/"
    assert_not_recorded(decline(browser, maya))
    assert not has_declined(maya)


def test_people_of_an_open_code_decline_before_they_begin(browser, lincoln):
    administration = open_to_parents()
    Administration.objects.update(allows_declining=True)
    code = open_code(administration, lincoln)
    begin(browser, code)
    [person] = Respondent.objects.all()
    assert LINK not in browser.get("/take/").content.decode()
    assert_not_recorded(decline(browser, person))
    assert not has_declined(person)


def test_a_person_who_has_finished_does_not_decline(browser, maya):
    browser.log_in(maya)
    now = timezone.now()
    Respondent.objects.filter(pk=maya.pk).update(completed_at=now)
    assert browser.get(DECLINE)["Location"] == "/take/"
    assert decline(browser, maya)["Location"] == "/take/"
    assert not has_declined(maya)


@pytest.mark.sqlite
def test_a_device_that_may_not_know_of_the_end_is_told_that_nothing_changed(
    browser, maya
):
    """In the words that somebody gets who may not decline any more."""
    Administration.objects.update(replays_answers=False)
    other_device = Browser().log_in(maya)
    browser.log_in(maya)
    people = Respondent.objects.filter(pk=maya.pk)
    people.update(completed_at=timezone.now())
    # Nothing that is shown says that she has finished.
    assert browser.get(DECLINE, {"for": tag_of(maya)}).status_code == 200
    assert_not_recorded(decline(browser, maya))
    assert not has_declined(maya)
    people.update(completed_at=None)
    Administration.objects.update(allows_declining=False)
    assert_not_recorded(decline(other_device, maya))


@pytest.mark.parametrize(
    "change",
    [
        {"withdrawn_at": timezone.now()},
        {"issue": 2},
    ],
)
def test_a_code_that_has_ended_declines_nothing(browser, maya, change):
    browser.log_in(maya)
    Respondent.objects.filter(pk=maya.pk).update(**change)
    assert browser.get(DECLINE)["Location"] == "/"
    assert decline(browser, maya)["Location"] == "/"
    assert not has_declined(maya)


def test_after_the_closing_there_is_nothing_to_decline(browser, maya):
    browser.log_in(maya)
    Administration.objects.update(closes_at=timezone.now() - timedelta(minutes=11))
    assert decline(browser, maya)["Location"] == "/take/complete/"
    assert not has_declined(maya)


@pytest.mark.sqlite
def test_declining_again_changes_nothing(browser, maya):
    """As after a reply that was lost: another device still has its page."""
    other_device = Browser().log_in(maya)
    browser.log_in(maya)
    decline(browser, maya)
    maya.refresh_from_db()
    before = maya.declined_at
    assert "?declined" in decline(other_device, maya)["Location"]
    maya.refresh_from_db()
    assert maya.declined_at == before


def test_a_tab_declines_for_nobody_else(browser, maya, noor):
    browser.log_in(maya)
    browser.log_in(noor)
    assert decline(browser, maya).status_code == 403
    assert not has_declined(maya) and not has_declined(noor)


def test_another_site_declines_for_nobody(maya):
    strict = Browser(enforce_csrf_checks=True)
    page = strict.get("/").content.decode()
    token = page.partition('name="csrfmiddlewaretoken" value="')[2].partition('"')[0]
    strict.post("/", {"code": code_of(maya), "csrfmiddlewaretoken": token})
    assert decline(strict, maya).status_code == 403
    assert not has_declined(maya)


def test_a_new_code_lets_the_person_in_again(browser, maya):
    browser.log_in(maya)
    decline(browser, maya)
    # New cards for a whole school are no answer to a person's decision.
    reissue_all(Respondent.objects.all())
    maya.refresh_from_db()
    with pytest.raises(LoginRefused, match="declined"):
        log_in_respondent(code_of(maya))
    code = reissue(respondent=maya)
    assert log_in_respondent(code).respondent_id == maya.pk
    assert not has_declined(maya) and maya.completed_at is None


def test_a_person_who_declines_while_a_new_code_is_made_is_let_in(
    browser, maya, monkeypatch
):
    """The page had loaded her before; message platforms are told all the same."""
    removed = []
    monkeypatch.setattr(new_codes, "people_removed", removed.extend)
    loaded_before = Respondent.objects.get(pk=maya.pk)
    browser.log_in(maya)
    decline(browser, maya)
    reissue(respondent=loaded_before)
    assert not has_declined(maya)
    assert removed == [maya.pk]


def test_who_finishes_meanwhile_stays_finished(browser, maya, monkeypatch):
    browser.log_in(maya)
    decline(browser, maya)
    finished = timezone.now()

    class Read(list):
        """Her key, once it is read: somebody else's new code has let her finish."""

        def __init__(self, keys) -> None:
            super().__init__(keys)
            people = Respondent.objects.filter(pk=maya.pk)
            people.update(declined_at=None, completed_at=finished)

    monkeypatch.setattr(new_codes, "list", Read, raising=False)
    let_in_again(Respondent.objects.filter(pk=maya.pk))
    assert not has_declined(maya)
    assert maya.completed_at == finished


def test_a_new_code_of_a_person_who_finished_leaves_them_finished(maya):
    now = timezone.now()
    Respondent.objects.filter(pk=maya.pk).update(started_at=now, completed_at=now)
    maya.refresh_from_db()
    reissue(respondent=maya)
    maya.refresh_from_db()
    assert maya.completed_at == now
