"""Try a survey like a respondent, without a trace."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core import signing
from django.test import Client
from django.urls import resolve, reverse
from django.urls.exceptions import Resolver404
from django.utils import timezone

from accounts.models import AuditEntry
from accounts.tests.logging_in import log_in
from settings.tests.matrix.snapshot import table_digests
from survey.console.surveys import trial_link
from survey.models import PublishedSurvey
from survey.taking.rendering import RENDERER

pytestmark = pytest.mark.django_db


def link_of(client, administration) -> str:
    address = reverse("administration_test_link", args=[administration.pk])
    return client.get(address).context["link"].removeprefix("http://testserver")


@pytest.mark.parametrize("login", ["state", "dana", "chen", "analyst"])
def test_a_phone_opens_the_survey_without_logging_in(
    client, staff, administration, login
):
    log_in(client, getattr(staff, login))
    take = link_of(client, administration)
    before = table_digests()

    phone = Client()
    page = phone.get(take)
    assert page.status_code == 200
    assert "Test: nothing is saved." in page.content.decode()
    data = phone.get(take, headers={"Accept": "application/json"}).json()
    content = data["urls"]["content"].format(language="en", n=1)
    digest = PublishedSurvey.objects.get().digest
    respondents = phone.get(reverse("survey_content", args=[digest, RENDERER, "en", 1]))
    assert phone.get(content).content == respondents.content
    assert phone.get(data["urls"]["complete"]).status_code == 200
    assert table_digests() == before
    assert not AuditEntry.objects.filter(action="log in", by="").exists()


def test_no_route_of_the_link_saves(client, staff, administration):
    log_in(client, staff.chen)
    take = link_of(client, administration)
    data = client.get(take, headers={"Accept": "application/json"}).json()
    save = data["urls"]["page"].replace("{n}", "1")
    with pytest.raises(Resolver404):
        resolve(save)
    for address in (save, take, data["urls"]["complete"]):
        assert client.post(address, {"revision": 1}).status_code in (404, 405)
    policy = client.get(take)["Content-Security-Policy"]
    base = take.removesuffix("take/")
    assert f"connect-src http://testserver{base};" in policy + ";"
    assert "form-action 'none'" in policy


def test_a_link_expires_and_cannot_be_changed(
    client, staff, administration, monkeypatch
):
    log_in(client, staff.chen)
    take = link_of(client, administration)
    phone = Client()
    wrong = [
        take.replace("/take/", "x/take/"),
        reverse("trial_take", args=["1:2:3"]),
        reverse("trial_take", args=[signing.dumps(administration.pk, salt="x")]),
        reverse("trial_take", args=[signing.dumps(0, salt=trial_link.SALT)]),
    ]
    for address in wrong:
        assert phone.get(address).status_code == 404
        assert "has expired" in phone.get(address).content.decode()
    assert phone.get(take).status_code == 200
    later = (timezone.now() + timedelta(hours=2, minutes=1)).timestamp()
    monkeypatch.setattr(signing.time, "time", lambda: later)
    assert phone.get(take).status_code == 404
    assert phone.get(take.replace("/take/", "/content/en/1/")).status_code == 404
    assert phone.get(take.replace("/take/", "/complete/")).status_code == 404


def test_only_who_sees_the_administration_gets_a_link(client, staff, administration):
    administration.district = staff.riverside
    administration.save()
    log_in(client, staff.sam)
    address = reverse("administration_test_link", args=[administration.pk])
    assert client.get(address).status_code == 404


def test_the_qr_code_holds_the_link(client, staff, administration):
    log_in(client, staff.chen)
    address = reverse("administration_test_link", args=[administration.pk])
    page = client.get(address)
    drawn = trial_link.qr_path(page.context["link"])
    assert drawn["path"] in page.content.decode()
    assert len(page.context["link"]) < 120
