"""A survey as a respondent sees it: the same bytes, from routes of staff only."""

from __future__ import annotations

import json
import re

import pytest
from django.urls import resolve, reverse
from django.urls.exceptions import Resolver404

from accounts.tests.logging_in import log_in
from survey.instrument.definitions.publishing import publish_survey
from survey.models import Respondent, Response, Survey
from survey.taking.rendering import RENDERER
from survey.tests.conftest import enrol
from survey.tests.console.test_surveys import draft_of, offered
from survey.tests.definitions.test_corrections import CORRECTED_ROWS

pytestmark = pytest.mark.django_db


def content(pk, language="en", n=1, seed=1) -> str:
    return reverse("survey_preview_content", args=[pk, seed, language, n])


def take(pk, seed=1) -> str:
    return reverse("survey_preview_take", args=[pk, seed])


def complete(pk, seed=1) -> str:
    return reverse("survey_preview_complete", args=[pk, seed])


@pytest.mark.parametrize("n", [0, 1])
@pytest.mark.parametrize("language", ["en", "es"])
def test_preview_shows_the_respondents_pages_before_and_after_publishing(
    staff, client, language, n
):
    survey = draft_of()
    log_in(client, staff.state)
    as_draft = client.get(content(survey.pk, language, n))
    digest = publish_survey(survey=survey).digest
    respondents = client.get(
        reverse("survey_content", args=[digest, RENDERER, language, n])
    )
    as_published = client.get(content(survey.pk, language, n))
    assert as_draft.content == as_published.content == respondents.content
    assert respondents.content
    # Respondents' pages are cached for a year, those of a preview never.
    assert "immutable" in respondents["Cache-Control"]
    for response in (as_draft, as_published):
        assert response["Cache-Control"] == "private, no-store"


def test_preview_sends_the_same_data_as_the_respondents_page(staff, client, browser):
    survey = draft_of()
    maya = enrol(offered(publish_survey(survey=survey)), staff.lincoln)
    theirs = browser.log_in(maya).get("/take/").content.decode()
    shell = browser.bootstrap()
    log_in(client, staff.state)
    ours = client.get(take(survey.pk)).content.decode()
    data = client.get(take(survey.pk), headers={"Accept": "application/json"}).json()

    assert data.keys() == shell.keys()
    same = shell.keys() - {"answers", "now", "revision", "seed", "tag"}
    same -= {"closesAt", "acceptedUntil", "csrf", "queueKey", "urls"}
    assert {key: data[key] for key in same} == {key: shell[key] for key in same}

    def body(text):
        text = re.sub(r'<p class="simple-version".*?</p>', "", text)
        return "".join(text[text.index("<body>") :].split())

    assert body(ours) == body(theirs)
    # Staff need no pages without JavaScript.
    assert "/take/plain/" in theirs and "/take/plain/" not in ours
    # Its scripts too, after the one that keeps answers in the browser.
    assert ours.index("js/preview.js") < ours.index("js/take.js")
    assert set(scripts(ours)) - set(scripts(theirs)) == {
        "/static/js/preview.js",
        "/static/js/preview_storage.js",
    }


def scripts(text: str) -> list[str]:
    return [part.partition('"')[0] for part in text.split('src="') if ".js" in part]


def test_preview_has_no_route_that_saves(staff, client):
    survey = draft_of()
    log_in(client, staff.state)
    data = client.get(take(survey.pk), headers={"Accept": "application/json"}).json()
    addresses = [data["urls"]["page"].replace("{n}", "1"), take(survey.pk)]
    addresses += [complete(survey.pk), content(survey.pk)]
    for address in addresses:
        assert client.post(address, {"revision": 1}).status_code in (404, 405)
    with pytest.raises(Resolver404):
        resolve(addresses[0])
    policy = client.get(take(survey.pk))["Content-Security-Policy"]
    place = reverse("survey_preview", args=[survey.pk])
    assert f"connect-src http://testserver{place};" in policy + ";"
    assert "form-action 'none'" in policy
    assert not Respondent.objects.exists() and not Response.objects.exists()


def test_only_preview_pages_may_be_framed_and_only_by_the_console(staff, client):
    survey = draft_of()
    log_in(client, staff.state)
    for address in (take(survey.pk), complete(survey.pk)):
        inside = client.get(address)
        assert inside["X-Frame-Options"] == "SAMEORIGIN"
        assert "frame-ancestors 'self'" in inside["Content-Security-Policy"]
    around = client.get(reverse("survey_preview", args=[survey.pk]))
    assert around["X-Frame-Options"] == "DENY"
    assert "frame-ancestors 'none'" in around["Content-Security-Policy"]
    assert "frame-src 'self'" in around["Content-Security-Policy"]
    assert "Preview: nothing is saved." in around.content.decode()
    detail = client.get(reverse("survey_detail", args=[survey.pk]))
    assert "frame-src" not in detail["Content-Security-Policy"]


def test_preview_leads_back_to_the_editor_of_a_draft(staff, client):
    survey, theirs = draft_of(), draft_of(district=staff.riverside, name="theirs")
    log_in(client, staff.state)
    assert links_to_editor(client, survey)
    published = publish_survey(survey=survey).survey
    assert not links_to_editor(client, published)
    # A correction has its texts for an editor.
    reply = client.post(reverse("survey_correct_here", args=[published.pk]))
    draft = Survey.objects.get(corrects__survey=published)
    assert reply.status_code == 302 and not links_to_editor(client, draft)
    # Dana writes her district's surveys, and may only read those of the state.
    log_in(client, staff.dana)
    assert links_to_editor(client, theirs)
    assert not links_to_editor(client, draft_of(name="of_the_state"))


def links_to_editor(client, survey) -> bool:
    page = client.get(reverse("survey_preview", args=[survey.pk]))
    assert page.status_code == 200
    return f'href="{reverse("survey_edit", args=[survey.pk])}"' in page.content.decode()


def test_preview_needs_permission_to_see_the_survey(staff, client):
    theirs = draft_of(district=staff.lakeside)
    addresses = [take(theirs.pk), complete(theirs.pk), content(theirs.pk)]
    addresses.append(reverse("survey_preview", args=[theirs.pk]))
    assert {client.get(url).status_code for url in addresses} == {302}
    for user, status in ((staff.dana, 404), (staff.sam, 404), (staff.state, 200)):
        log_in(client, user)
        assert {client.get(url).status_code for url in addresses} == {status}


@pytest.mark.parametrize(
    "query",
    [
        {"seed": "-1"},
        {"seed": "x"},
        {"seed": "9" * 40},
        {"seed": "²"},
        {"language": "xx"},
        {"language": "<script>"},
        {"language": "\x00", "seed": ""},
    ],
)
def test_invalid_parameters_select_the_first_person_and_language(staff, client, query):
    survey = draft_of()
    log_in(client, staff.state)
    response = client.get(reverse("survey_preview", args=[survey.pk]), query)
    assert response.status_code == 200
    text = response.content.decode()
    assert "?language=en" in text and "<script>" not in text


@pytest.mark.parametrize(
    "address",
    [
        content(1, "xx").replace("/1/", "/{pk}/", 1),
        content(1, "en", 2).replace("/1/", "/{pk}/", 1),
        content(1, "en", 10**12).replace("/1/", "/{pk}/", 1),
        take(1, 10**12).replace("/1/", "/{pk}/", 1),
    ],
)
def test_unknown_language_or_page_is_not_found(staff, client, address):
    survey = draft_of()
    log_in(client, staff.state)
    assert client.get(address.format(pk=survey.pk)).status_code == 404


def test_languages_are_chosen_in_the_frame_alone(staff, client):
    survey = draft_of()
    log_in(client, staff.state)
    preview = reverse("survey_preview", args=[survey.pk])
    text = client.get(preview, {"language": "es"}).content.decode()
    assert "<select" not in text
    assert '<input type="hidden" name="language" value="es">' in text


def test_review_lists_missing_answers_and_then_thanks(staff, client):
    survey = draft_of()
    log_in(client, staff.state)
    address = complete(survey.pk)
    assert "preview_review.js" in client.get(address).content.decode()

    asked = {"language": "es", "pages": "1", "missing": ["pet", "nothing", "<b>"]}
    text = client.get(address, asked).content.decode()
    assert "¿Qué mascota?" in text and "Mascotas" in text
    assert f'href="{take(survey.pk)}?language=es#page-1/pet"' in text
    assert 'href="/take/' not in text and 'action="/take/' not in text
    assert "finish-button" not in text

    text = client.get(address, {"pages": "1"}).content.decode()
    assert "finish-button" in text
    text = client.get(address, {"pages": "1", "finished": "yes"}).content.decode()
    assert "Thank you" in text and f'href="{take(survey.pk)}?language=en"' in text


def test_survey_without_a_language_cannot_be_previewed(staff, client):
    survey = Survey.objects.create(name="bare", version="1")
    log_in(client, staff.state)
    assert client.get(reverse("survey_detail", args=[survey.pk])).status_code == 200
    text = client.get(reverse("survey_preview", args=[survey.pk])).content.decode()
    assert "This survey cannot be previewed yet: It has no language." in text
    assert client.get(take(survey.pk)).status_code == 404


@pytest.mark.parametrize("pages", ["", "x", "-3", "9" * 50])
def test_review_with_invalid_parameters_still_works(staff, client, pages):
    survey = draft_of()
    log_in(client, staff.state)
    response = client.get(complete(survey.pk), {"pages": pages, "finished": ""})
    assert response.status_code == 200


def test_invalid_draft_says_why_it_cannot_be_previewed(staff, client):
    survey = draft_of()
    survey.items.filter(name="pet").update(rules={"required": ["$", "gone"]})
    log_in(client, staff.state)
    text = client.get(reverse("survey_preview", args=[survey.pk])).content.decode()
    assert "This survey cannot be previewed yet: pet: required reads gone" in text
    assert "<iframe" not in text
    assert client.get(take(survey.pk)).status_code == 404


def test_preview_page_costs_few_queries(staff, client, django_assert_num_queries):
    survey = draft_of()
    log_in(client, staff.state)
    # The survey, and at first all its rows.
    with django_assert_num_queries(9):
        client.get(content(survey.pk))
    with django_assert_num_queries(4):
        client.get(content(survey.pk))
    publish_survey(survey=survey)
    client.get(content(survey.pk))
    with django_assert_num_queries(5):
        client.get(content(survey.pk))


def test_draft_uploaded_again_is_previewed_at_once(staff, client):
    log_in(client, staff.state)
    old = client.get(content(draft_of().pk)).content.decode()
    new = client.get(content(draft_of(rows=CORRECTED_ROWS).pk)).content.decode()
    assert "Which pet?" in old and "Which animal?" in new


def test_seed_in_the_address_selects_the_person(staff, client):
    survey = draft_of()
    log_in(client, staff.state)
    for seed in (0, 7, 2**32 - 1):
        response = client.get(
            take(survey.pk, seed), headers={"Accept": "application/json"}
        )
        assert json.loads(response.content)["seed"] == seed
