"""A code starts a survey, and reveals none on a new device."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.tests.conftest import staff  # noqa: F401
from accounts.tests.logging_in import log_in
from survey.models import Administration, DeviceLogin, Respondent, Response
from survey.taking import devices
from survey.tests.conftest import (
    FIRST_PAGE,
    SECOND_PAGE,
    Browser,
    code_of,
    enrol,
)

pytestmark = pytest.mark.django_db

# What Maya wrote and nobody else knows.
SECRETS = ("colours", "2014-02-28", "bye")


@pytest.fixture
def device(browser, maya) -> Browser:
    """Return Maya's own device, on which she has answered everything."""
    browser.log_in(maya)
    base = browser.bootstrap()["revision"]
    for n, answers in enumerate((FIRST_PAGE, SECOND_PAGE, {"last": "bye"}), start=1):
        assert browser.save(n, answers, base + n).status_code == 200
    return browser


@pytest.fixture
def replayed(administration):
    Administration.objects.update(replays_answers=True)


def finish(browser: Browser) -> None:
    reviewed = browser.get("/take/complete/").context["reviewed"]
    browser.post("/take/complete/", {"reviewed": reviewed})
    assert Respondent.objects.filter(completed_at__isnull=False).exists()


def shown_on(browser: Browser) -> str:
    """Return everything that this device is told after the login."""
    pages = [browser.get("/take/", follow=True), browser.get("/take/complete/")]
    shell = browser.get("/take/", headers={"Accept": "application/json"})
    return "".join(page.content.decode() for page in (*pages, shell))


@pytest.mark.sqlite
def test_the_own_device_shows_the_answers_again(device, maya):
    device.log_in(maya)
    assert device.bootstrap()["answers"]["why_art"] == "colours"
    assert device.bootstrap()["earlier"] == []


@pytest.mark.sqlite
def test_a_new_device_is_told_no_answers(device, maya):
    second = Browser().log_in(maya)
    shell = second.bootstrap()
    assert shell["answers"] == {}
    assert set(shell["earlier"]) == {*FIRST_PAGE, *SECOND_PAGE, "last"}
    assert not any(secret in shown_on(second) for secret in SECRETS)


@pytest.mark.sqlite
def test_an_administration_may_allow_replay(device, maya, replayed):
    """The twin: without the protection there are answers to read."""
    second = Browser().log_in(maya)
    assert second.bootstrap()["answers"]["why_art"] == "colours"
    assert all(secret in shown_on(second) for secret in SECRETS)


@pytest.mark.sqlite
def test_a_device_that_was_there_first_learns_nothing_later(maya):
    """Staff try a card before its owner does, and reload the page afterwards."""
    staff_device = Browser().log_in(maya)
    later = Browser().log_in(maya)
    later.save(1, FIRST_PAGE, later.bootstrap()["revision"])
    staff_device.log_in(maya)
    for browser in (staff_device, later):
        assert browser.bootstrap()["answers"] == {}
        assert "colours" not in shown_on(browser)


@pytest.mark.sqlite
def test_answers_from_before_devices_were_known_are_not_shown(device, maya):
    DeviceLogin.objects.all().delete()
    assert Browser().log_in(maya).bootstrap()["answers"] == {}
    assert device.bootstrap()["answers"] == {}


@pytest.mark.parametrize("value", ["", "x", "0" * 32, "0" * 32 + ":forged"])
def test_a_forged_device_cookie_is_a_new_device(device, maya, value):
    second = Browser()
    second.cookies[devices.COOKIE] = value
    second.log_in(maya)
    assert second.bootstrap()["answers"] == {}


def test_the_cookie_does_not_follow_from_the_database(device, maya):
    stored = DeviceLogin.objects.get().device
    assert stored not in device.cookies[devices.COOKIE].value
    second = Browser()
    second.cookies[devices.COOKIE] = devices.Signer(salt=devices.SALT).sign(stored)
    second.log_in(maya)
    assert second.bootstrap()["answers"] == {}


def test_a_device_without_its_cookie_is_told_nothing(device):
    del device.cookies[devices.COOKIE]
    assert device.bootstrap()["answers"] == {}


@pytest.mark.sqlite
def test_a_page_answered_again_replaces_only_what_was_answered(device, maya):
    second = Browser().log_in(maya)
    shell = second.bootstrap()
    save = {"revision": shell["revision"], "seen": shell["seen"][0]}
    body = {**save, "answers": {"safe": "1"}}
    assert second.send(1, json.dumps(body)).status_code == 200
    values = dict(Response.objects.values_list("value", "saved_at"))
    assert "1" in values and "colours" in values


@pytest.mark.sqlite
def test_a_new_device_can_finish(device, maya):
    second = Browser().log_in(maya)
    review = second.get("/take/complete/")
    assert review.context["reviewed"]
    assert not review.context["finished_at"]
    reviewed = {"reviewed": review.context["reviewed"]}
    assert second.post("/take/complete/", reviewed).status_code == 302
    maya.refresh_from_db()
    assert maya.completed_at is not None
    assert second.get("/take/complete/").context["finished_at"]
    # Another device that presses Finish is told the same.
    third = Browser().log_in(maya)
    forged = third.post("/take/complete/", {"reviewed": "x"})
    assert (forged.status_code, forged.context["finished_at"]) == (200, None)
    assert not third.get("/take/complete/").context["finished_at"]
    assert third.post("/take/complete/", reviewed).status_code == 302
    assert third.get("/take/complete/").context["finished_at"] > maya.completed_at


@pytest.mark.sqlite
def test_a_finished_code_tells_a_new_device_what_an_unfinished_one_tells(
    device, maya, administration, lincoln
):
    noor = enrol(administration, lincoln, grade="07", language="es", classroom="x")
    hers = Browser().log_in(noor)
    base = hers.bootstrap()["revision"]
    for n, answers in enumerate((FIRST_PAGE, SECOND_PAGE, {"last": "bye"}), start=1):
        hers.save(n, answers, base + n)
    finish(device)
    shown = []
    for respondent in (maya, noor):
        second = Browser()
        reply = second.post("/", {"code": code_of(respondent)})
        shell = second.bootstrap()
        pages = [second.get(address) for address in ("/take/", "/take/complete/")]
        shown.append(
            (
                reply.status_code,
                reply["Location"],
                sorted(second.cookies),
                sorted(shell),
                shell["answers"],
                shell["earlier"],
                [page.status_code for page in pages],
                pages[1].context["finished_at"],
                bool(pages[1].context["reviewed"]),
                len(pages[1].content),
            )
        )
    assert shown[0] == shown[1]


def test_a_finished_code_is_refused_like_others_once_it_is_closed(
    device, maya, administration
):
    finish(device)
    Administration.objects.update(closes_at=timezone.now() - timedelta(hours=1))
    assert Browser().post("/", {"code": code_of(maya)}).status_code == 422
    # The own device is thanked.
    assert device.post("/", {"code": code_of(maya)})["Location"] == "/take/complete/"


def test_the_own_device_is_thanked_although_another_one_tried_the_code(device, maya):
    finish(device)
    Browser().log_in(maya)
    device.post("/", {"code": code_of(maya)})
    assert device.get("/take/complete/").context["finished_at"]


@pytest.mark.sqlite
def test_a_login_is_counted_once_for_a_device(maya, noor):
    shared = Browser()
    for respondent in (maya, noor, maya):
        shared.log_in(respondent)
    Browser().log_in(maya)
    counts = DeviceLogin.objects.values_list("respondent", flat=True)
    assert sorted(counts) == sorted([maya.pk, maya.pk, noor.pk])
    assert DeviceLogin.objects.values("device").distinct().count() == 2


@pytest.mark.sqlite
def test_the_district_sees_a_device_that_uses_many_codes(
    client,
    staff,  # noqa: F811
    administration,
):
    device = Browser()
    for n in range(7):
        device.log_in(enrol(administration, staff.lincoln, classroom=str(n)))
    few = Browser()
    for n in range(3):
        few.log_in(enrol(administration, staff.roosevelt, classroom=str(n)))
    address = f"/console/administrations/{administration.pk}/devices/"
    log_in(client, staff.dana)
    page = client.get(address)
    [row] = page.context["devices"]
    assert (row["codes"], row["school"]) == (7, "Lincoln")
    assert row["device"] not in page.content.decode()
    # A coordinator could tell by it who has logged in.
    log_in(client, staff.chen)
    assert client.get(address).status_code == 404
