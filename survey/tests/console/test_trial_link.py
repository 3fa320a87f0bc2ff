"""Try a survey like a respondent, without a trace."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import parse_qs

import pytest
from django.core import signing
from django.test import Client
from django.urls import resolve, reverse
from django.urls.exceptions import Resolver404
from django.utils import timezone

from accounts.models import AuditEntry, User
from accounts.tests.logging_in import log_in
from settings.tests.matrix.snapshot import table_digests
from survey.console.surveys import trial_link
from survey.instrument.drafts.store import load_book
from survey.instrument.drafts.texts import save_text, texts_in
from survey.instrument.xlsform.languages import ENGLISH
from survey.models import PublishedSurvey
from survey.taking import messages
from survey.taking.rendering import RENDERER
from survey.tests.console.test_surveys import draft_of

pytestmark = pytest.mark.django_db


def link_of(client, administration) -> str:
    address = reverse("administration_test_link", args=[administration.pk])
    return client.get(address).context["link"].removeprefix("http://testserver")


def rename_first_question(draft, text, by):
    row = next(row for row in texts_in(load_book(draft), ENGLISH) if row.name == "pet")
    save_text(
        survey=draft,
        sheet=row.sheet,
        key=row.key,
        field="label",
        code="en",
        text=text,
        seen=row.text,
        by=by,
    )


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


def test_the_link_can_be_read_copied_and_sent(client, staff):
    survey = draft_of()
    log_in(client, staff.state)
    response = client.get(reverse("survey_test_link", args=[survey.pk]))
    link, page = response.context["link"], response.content.decode()
    assert f'value="{link}" readonly' in page and "Copy link" in page
    mail = parse_qs(response.context["mail"].removeprefix("mailto:?"))
    assert mail["body"] == [f"{link}\r\n"] and survey.full_title in mail["subject"][0]
    assert "+" not in response.context["mail"]


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


def test_colleagues_try_a_draft_as_it_is_now(client, staff):
    draft = draft_of()
    log_in(client, staff.state)
    page = client.get(reverse("survey_test_link", args=[draft.pk]))
    take = page.context["link"].removeprefix("http://testserver")
    phone = Client()
    content = take.replace("/take/", "/content/en/1/")
    before = table_digests()
    assert phone.get(take).status_code == 200
    assert "Which pet?" in phone.get(content).content.decode()
    assert table_digests() == before
    rename_first_question(draft, "Which animal?", staff.state)
    assert "Which animal?" in phone.get(content).content.decode()
    draft.delete()
    assert phone.get(take).status_code == 404


def test_a_link_to_a_draft_lasts_for_a_week(client, staff, monkeypatch):
    draft = draft_of()
    log_in(client, staff.state)
    page = client.get(reverse("survey_test_link", args=[draft.pk]))
    take = page.context["link"].removeprefix("http://testserver")
    for days, status in ((6.9, 200), (7.1, 404)):
        later = (timezone.now() + timedelta(days=days)).timestamp()
        monkeypatch.setattr(signing.time, "time", lambda later=later: later)
        assert Client().get(take).status_code == status


def test_a_link_to_a_draft_ends_with_the_rights_of_who_made_it(client, staff):
    draft = draft_of(district=staff.riverside)
    log_in(client, staff.dana)
    page = client.get(reverse("survey_test_link", args=[draft.pk]))
    take = page.context["link"].removeprefix("http://testserver")
    assert Client().get(take).status_code == 200
    [entry] = AuditEntry.objects.filter(action="make test link")
    assert (entry.by, entry.subject_id) == (staff.dana.email, draft.pk)
    User.objects.filter(pk=staff.dana.pk).update(is_active=False)
    assert Client().get(take).status_code == 404
    User.objects.filter(pk=staff.dana.pk).update(is_active=True)
    staff.dana.memberships.all().delete()
    for address in ("/take/", "/content/en/1/", "/complete/"):
        assert Client().get(take.replace("/take/", address)).status_code == 404
    # A colleague's link to the same draft still works.
    log_in(client, staff.state)
    page = client.get(reverse("survey_test_link", args=[draft.pk]))
    take = page.context["link"].removeprefix("http://testserver")
    assert Client().get(take).status_code == 200


def test_others_get_no_link_to_a_draft(client, staff):
    draft = draft_of(district=staff.riverside)
    log_in(client, staff.sam)
    address = reverse("survey_test_link", args=[draft.pk])
    assert client.get(address).status_code == 404


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


def test_each_page_of_the_link_says_that_nothing_is_saved(
    client, staff, administration, monkeypatch
):
    log_in(client, staff.chen)
    take = link_of(client, administration)
    complete = Client().get(take, headers={"Accept": "application/json"}).json()
    address = complete["urls"]["complete"]
    assert complete["messages"]["test_banner"] == "Test: nothing is saved."
    spanish = dict(messages.MESSAGES["es"], test_banner="Prueba: nada se guarda.")
    words = {**messages.MESSAGES, "es": spanish}
    monkeypatch.setattr(messages, "MESSAGES", words)
    pages = [
        {"pages": "1"},
        {"pages": "1", "finished": "yes"},
        {"stopped": "yes"},
        {},
    ]
    for query in pages:
        page = Client().get(address, {**query, "language": "es"}).content.decode()
        assert "Prueba: nada se guarda." in page, query
    for query in pages[1:3]:
        page = Client().get(address, {**query, "language": "en"}).content.decode()
        assert "That was the end of the test" in page
        assert "Nothing was saved." in page
        assert "data-finished" not in page and ">Your answers are saved<" not in page
