"""Free text: reviewers release sentences, and nothing else is shown."""

from __future__ import annotations

import re
import time
from datetime import timedelta
from itertools import product

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from accounts.models import AuditEntry
from accounts.permissions import Role
from accounts.tests.conftest import member
from accounts.tests.logging_in import log_in
from reports.models import ReleasedSentence, ResultsRollUp
from reports.releases.apply_suppression import hide_small_groups
from reports.releases.rollup import roll_up_results
from reports.results import comments
from reports.results.comments import highlight, sentence_digest, sentences_of
from reports.tests.exports.conftest import answer
from survey.models import Identity, Respondent

pytestmark = pytest.mark.django_db

TEXT = "I like it here. Our teacher Daniel Ortiz helps me, room 12!"


@pytest.fixture
def closed(staff, fall, enrol):
    for n in range(12):
        person = enrol(fall, staff.lincoln)
        answers = {"safe": "1"} | ({"comment": TEXT} if n == 0 else {})
        answer(person, answers | ({"comment": "<b>More</b> trees"} if n == 1 else {}))
        if n < 2:
            Identity.objects.update_or_create(
                respondent=person,
                defaults={
                    "administration": fall,
                    "district": staff.lincoln.district,
                    "external_id": f"x{n}",
                    "given_name": ("Rosa", "Daniel")[n],
                    "family_name": ("Trees", "Ortiz")[n],
                },
            )
    fall.minimum_group = 3
    fall.closes_at = timezone.now() - timedelta(hours=1)
    fall.save()
    roll_up_results(fall)
    hide_small_groups(fall)
    return fall


@pytest.fixture
def reviewer(staff):
    return member("reviewer@example.org", Role.ANALYST)


def address(administration) -> str:
    return reverse("results_comments", args=[administration.pk])


def release(client, administration, *texts):
    form = {"question": "comment", "sentence": texts}
    return client.post(address(administration), form, follow=True)


def test_a_reviewer_releases_one_sentence(
    client, reviewer, closed, django_assert_num_queries
):
    log_in(client, reviewer)
    results = reverse("results_page", args=[closed.pk])
    assert "I like it here." not in client.get(results).text
    # One function of PostgreSQL reads the comments, and four statements on SQLite.
    reads = 1 if connection.vendor == "postgresql" else 4
    with django_assert_num_queries(7 + reads):
        page = client.get(address(closed))
    assert "Our teacher <mark>Daniel</mark> <mark>Ortiz</mark> helps" in page.text
    assert "room <mark>12</mark>" in page.text
    assert "&lt;b&gt;" in page.text and "<b>More" not in page.text
    assert "<mark>trees</mark>" in page.text, "a family name"
    done = release(client, closed, "I like it here.")
    assert "1 sentence is released" in done.text
    shown = client.get(results).text
    assert "I like it here." in shown and "Ortiz" not in shown
    # Again: nothing is doubled.
    release(client, closed, "I like it here.")
    released = ReleasedSentence.objects.get()
    client.post(address(closed), {"question": "comment", "withdraw": released.pk})
    assert "I like it here." not in client.get(results).text


def test_the_audit_log_has_no_text_of_a_sentence(client, staff, reviewer, closed):
    log_in(client, reviewer)
    release(client, closed, "I like it here.")
    number = ReleasedSentence.objects.get().pk
    client.post(address(closed), {"question": "comment", "withdraw": number})
    digest = sentence_digest(closed.pk, "comment", "I like it here.")
    for action in ("release sentence", "withdraw sentence"):
        assert AuditEntry.objects.get(action=action).after == {
            "question": "comment",
            "released_sentence": number,
            "sentence_digest": digest,
        }
    assert not AuditEntry.objects.filter(after__icontains="I like it").exists()
    log_in(client, staff.state)
    page = client.get("/console/audit/").text
    assert f"number of the sentence: <ins>{number}</ins>" in page
    assert "I like it" not in page


def test_a_digest_needs_the_installations_key(closed, settings):
    """Somebody who reads the log tries short answers until one fits."""
    text = "I like it here."
    digest = sentence_digest(closed.pk, "comment", text)
    assert digest != sentence_digest(closed.pk, "other", text)
    settings.SECRET_KEY = "guessed"
    assert digest != sentence_digest(closed.pk, "comment", text)


def test_only_what_somebody_wrote_is_released(client, reviewer, closed):
    log_in(client, reviewer)
    done = release(client, closed, "Nobody wrote this.")
    assert "Choose the sentences" in done.text
    assert not ReleasedSentence.objects.exists()


def test_no_sentence_is_withdrawn_by_a_wrong_key(client, reviewer, closed):
    log_in(client, reviewer)
    release(client, closed, "I like it here.")
    for key in ("²", "x", "", "-1", "9" * 19, "9" * 5000):
        client.post(address(closed), {"question": "comment", "withdraw": key})
        assert ReleasedSentence.objects.count() == 1, key


@pytest.mark.sqlite
def test_people_who_opted_out_are_not_quoted(client, reviewer, closed):
    log_in(client, reviewer)
    Respondent.objects.filter(identity__external_id="x0").update(
        withdrawn_at=timezone.now(), opted_out_at=timezone.now()
    )
    assert "I like it here." not in client.get(address(closed)).text
    release(client, closed, "I like it here.")
    assert not ReleasedSentence.objects.exists()


def test_others_do_not_read_comments(client, staff, closed):
    ResultsRollUp.objects.update(shared_at=timezone.now())
    for user in (staff.analyst, staff.chen):
        log_in(client, user)
        assert client.get(address(closed)).status_code == 404, user


def test_running_administrations_and_unknown_questions_are_not_there(
    client, reviewer, closed
):
    log_in(client, reviewer)
    for query in ({"question": "safe"}, {"question": "nothing"}):
        assert client.get(address(closed), query).status_code == 404
    for start in ("x", "-1", "²", "1.5", "9" * 5000):
        assert client.get(address(closed), {"start": start}).status_code == 404
    closed.closes_at = timezone.now() + timedelta(hours=1)
    closed.save()
    assert client.get(address(closed)).status_code == 404


@pytest.mark.sqlite
def test_comments_come_in_parts_of_whole_blocks_of_people(
    client, reviewer, closed, staff, enrol, monkeypatch
):
    """A part of one person would tell who wrote it, to those who may read names."""
    monkeypatch.setattr(comments, "COMMENTS_ON_A_PAGE", 1)
    near = (Respondent.objects.latest("pk").pk // 128 + 2) * 128 + 3
    far = near + 5 * 128
    for pk in (near, near + 1, far, far + 1):
        answer(enrol(closed, staff.lincoln, pk=pk), {"comment": f"From person {pk}"})
    log_in(client, reviewer)

    def read(start: int):
        query = {"question": "comment", "start": str(start)}
        return client.get(address(closed), query)

    # It cannot begin or end between two people of a block.
    first = read(near // 128)
    assert len(first.context["page"].comments) == 2
    assert first.context["page"].following == str(far // 128)
    second = read(far // 128)
    for pk in (far, far + 1):
        assert f"From person <mark>{pk}</mark>" in second.text
    assert second.context["page"].following == ""

    for start in (far // 128 + 1, int("9" * 19)):
        assert read(start).context["page"].comments == []


@pytest.mark.sqlite
def test_long_comments_with_many_words_are_readable(
    client, reviewer, closed, staff, enrol
):
    """Anybody may write them with an open code. SQLite takes 250,000 parameters."""
    first = (Respondent.objects.latest("pk").pk // 128 + 2) * 128
    letters = product("abcdefghijklmnopqrstuvwxyz", repeat=4)
    for n in range(75):
        words = " ".join("".join(next(letters)) for _ in range(990))
        text = {"comment": f"{words} trees and ortiz"}
        answer(enrol(closed, staff.lincoln, pk=first + n), text)
    log_in(client, reviewer)
    query = {"question": "comment", "start": str(first // 128)}
    with CaptureQueriesContext(connection) as queries:
        page = client.get(address(closed), query)
    assert len(page.context["page"].comments) == 75
    assert page.text.count("<mark>") == 150, "no name is missed in them"
    assert page.text.count("<mark>trees</mark> and <mark>ortiz</mark>") == 75
    # No statement grows with what was written.
    assert max(len(statement["sql"]) for statement in queries) < 5_000


@pytest.mark.parametrize(
    "text",
    [
        "a" + " " * 100_000 + "b",
        "a" + "\n " * 50_000 + "b",
        "a." * 50_000,
        "a. " * 33_000,
        "@" * 100_000,
        "a@" + " a@" * 33_000,
        "http:" * 20_000,
        "www." * 25_000,
    ],
)
def test_no_comment_takes_longer_than_its_length(text):
    """With a pattern that goes back, they took ten seconds to minutes."""
    began = time.perf_counter()
    for sentence in sentences_of(text):
        highlight(sentence, set())
    assert time.perf_counter() - began < 2


def test_a_pattern_that_goes_back_takes_longer():
    """The other half of the test above."""
    began = time.perf_counter()
    re.split(r"(?<=[.!?…])\s+|\s*\n\s*", "a" + " " * 40_000 + "b")
    assert time.perf_counter() - began > 20 * fastest_split(" " * 40_000)


def fastest_split(text: str) -> float:
    began = time.perf_counter()
    sentences_of(text)
    return time.perf_counter() - began


def test_a_comment_of_countless_sentences_has_few_checkboxes():
    sentences = sentences_of("a. " * 1_600 + "The end.")
    assert len(sentences) == comments.MOST_SENTENCES + 1
    assert sentences[-1].endswith("The end.")


@pytest.mark.sqlite
@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("José", "jose"),
        ("JOSE", "josé"),
        ("McDonald", "mcdonald"),
        ("O'Brien", "o’brien"),
        ("O'Brien", "obrien"),
        ("Smith-Jones", "jones"),
        ("de la Cruz", "cruz"),
        ("Maria José", "maria"),
        ("Li", "li"),
    ],
)
def test_names_are_marked_however_they_are_written(closed, name, written):
    Identity.objects.filter(external_id="x0").update(family_name=name)
    school = Respondent.objects.get(identity__external_id="x0").school_id
    names = comments._names_in([f"my {written} says"], closed, {school})
    html = highlight(f"my {written} says", names)
    assert html.count("<mark>") == 1
    assert not comments._names_in([f"my {written} says"], closed, {school + 9999})


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two!  Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("First line\nsecond  line", ["First line", "second line"]),
        ("At 3.5 points", ["At 3.5 points"]),
        ("  ", []),
    ],
)
def test_comments_are_split_into_sentences(text, sentences):
    assert sentences_of(text) == sentences


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("maria helps", "<mark>maria</mark> helps"),
        ("Maria helps", "<mark>Maria</mark> helps"),
        ("Then Bob & I", "Then <mark>Bob</mark> &amp; I"),
        ("ask me@example.org", "ask <mark>me@example.org</mark>"),
        ("<script>", "&lt;script&gt;"),
    ],
)
def test_names_numbers_and_addresses_are_marked(text, html):
    assert highlight(text, {"maria"}) == html
