"""E-mails to siblings with one address say for whom they are."""

from __future__ import annotations

import pytest
from django.core import mail
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from survey.fieldwork.emails import messages, samples
from survey.fieldwork.emails.claims import candidates
from survey.fieldwork.emails.templates import split_before_code
from survey.models import EmailTemplate, Respondent
from survey.people.access_codes import code_of, format_code
from survey.tests.people import invite

pytestmark = pytest.mark.django_db

# Of an author, without {name}.
OWN_TEXT = "Dear family,\n\nopen {link} until {closes}.\n\nThank you!\n"


@pytest.fixture
def siblings(people, administration, staff) -> list[Respondent]:
    """Return three people with one address; one of them reads Spanish."""
    return [
        invite(administration, staff.lincoln, pk, name, email, **fields)
        for pk, name, email, fields in (
            ("21", "Ana Ruiz", "home@example.org", {"classroom": "7A"}),
            ("22", "Leo Ruiz", "Home@example.org", {"language": "es"}),
            ("23", "Eva Ruiz", "home@example.org", {"grade": "09"}),
        )
    ]


@pytest.fixture
def own_texts(confirmed) -> None:
    EmailTemplate.objects.exclude(step__kind="thanks").update(
        subject="Our survey", body=OWN_TEXT
    )


def bodies(address: str = "home@example.org") -> list[str]:
    return [m.body for m in mail.outbox if m.to[0].lower() == address]


@pytest.mark.sqlite
def test_a_text_without_names_says_for_whom_it_is(
    shown_completion, siblings, confirmed, own_texts, send
):
    send(confirmed)
    ana, leo, eva = bodies()
    code = format_code(code_of(siblings[0]))
    assert ana.startswith(
        f"Dear family,\n\nFor Ana\n\nopen https://survey.example.org/#{code}"
    )
    assert "\n\nPara Leo\n\nopen " in leo
    assert "\n\nFor Eva\n\nopen " in eva
    # Nobody else shares an address.
    [maya] = bodies("maya@example.org")
    assert maya.startswith("Dear family,\n\nopen https://")


def test_without_the_line_the_emails_of_siblings_differ_in_the_code_only(
    shown_completion, siblings, confirmed, own_texts, send, monkeypatch
):
    """The twin."""
    monkeypatch.setattr(messages, "_for_whom", lambda *arguments: "")
    send(confirmed)
    without_codes = {
        body.partition("\n-- \n")[0].replace(format_code(code_of(person)), "")
        for body, person in zip(bodies(), siblings, strict=True)
        if not person.language
    }
    assert len(without_codes) == 1


@pytest.mark.parametrize(
    ("subject", "body"), [("Survey", "{name}: {link}"), ("For {name}", "{link}")]
)
def test_a_text_with_names_stays_as_its_author_wrote_it(
    shown_completion, siblings, confirmed, send, subject, body
):
    EmailTemplate.objects.update(subject=subject, body=body)
    send(confirmed)
    assert len(bodies()) == 3 and "For Ana" not in "".join(bodies())
    assert "Ana" in bodies()[0] + mail.outbox[3].subject


def test_siblings_without_names_are_told_apart_by_class_and_number(
    shown_completion, siblings, confirmed, send
):
    for person in siblings:
        person.identity.given_name = ""
        person.identity.save(update_fields=["given_name"])
    send(confirmed)
    assert "Lincoln · Class 7A\nCode 1 of 3 for this address\n\n" in bodies()[0]


# Who has finished is confidential --------------------------------------------


@pytest.mark.sqlite
def test_no_name_is_next_to_a_code_where_completion_is_confidential(
    siblings, confirmed, send
):
    send(confirmed)
    ana, leo, eva = bodies()
    assert ana.startswith(
        "Hello,\n\nLincoln invites you to take this survey: Our school."
    )
    assert (
        "\n\nLincoln · Class 7A\nCode 1 of 3 for this address\n\n"
        "Open this link to begin:\n" in ana
    )
    assert leo.startswith("Hola:\n") and "Lincoln\nCódigo 2 de 3" in leo
    assert "Lincoln · Grade 9\nCode 3 of 3 for this address\n\n" in eva
    sent = "".join(message.subject + message.body for message in mail.outbox)
    names = ("Ana", "Leo", "Eva", "Maya", "Noor", "Ruiz")
    assert not [name for name in names if name in sent]
    [maya] = bodies("maya@example.org")
    assert "Lincoln ·" not in maya and "for this address" not in maya


def test_the_same_emails_have_names_where_completion_is_shown(
    shown_completion, siblings, confirmed, send
):
    """The twin."""
    send(confirmed)
    assert [body.partition("\n")[0] for body in bodies()] == [
        "Hello Ana,",
        "Hola, Leo:",
        "Hello Eva,",
    ]
    assert "for this address" not in "".join(bodies())


def test_an_authors_name_in_a_text_is_left_out_too(siblings, confirmed, send):
    EmailTemplate.objects.update(subject="{name}, hello", body="Hello {name}: {link}")
    send(confirmed)
    assert "Ana" not in bodies()[0] and "Hello: https://" in bodies()[0]
    assert mail.outbox[0].subject == "hello"


def test_numbers_stay_when_a_sibling_finishes(siblings, confirmed, send):
    step = confirmed.steps.get(kind="invitation")
    before = {
        p.pk: p.shared_address.number for p in candidates(step) if p.shared_address
    }
    assert list(before.values()) == [1, 2, 3]
    now = timezone.now()
    Respondent.objects.filter(pk=siblings[0].pk).update(
        started_at=now, completed_at=now
    )
    after = {
        p.pk: p.shared_address.number for p in candidates(step) if p.shared_address
    }
    del before[siblings[0].pk]
    assert after == before
    # A person who is no longer invited has no number.
    Respondent.objects.filter(pk=siblings[0].pk).update(withdrawn_at=now)
    assert [
        (p.shared_address.number, p.shared_address.total)
        for p in candidates(step)
        if p.shared_address
    ] == [(1, 2), (2, 2)]


def test_the_thanks_have_names_and_no_code(siblings, confirmed):
    step = confirmed.steps.get(kind="thanks")
    person = samples.person_of(siblings[0])
    sample = samples.write_sample(step, confirmed.administration, person)
    assert sample.body.startswith("Hello Ana,") and "Code 1" not in sample.body


def test_a_preview_says_for_whom_it_is(siblings, confirmed, own_texts):
    step = confirmed.steps.get(kind="reminder")
    person = samples.person_of(siblings[1])
    sample = samples.write_sample(step, confirmed.administration, person)
    assert "Código 2 de 3" in sample.body


def test_shared_addresses_cost_one_statement_for_each_batch(siblings, confirmed):
    step = confirmed.steps.select_related("schedule").get(kind="invitation")
    with CaptureQueriesContext(connection) as captured:
        assert len(list(candidates(step))) == 6
    assert len(captured) == 2


@pytest.mark.parametrize(
    ("text", "before"),
    [
        ("{link}", ""),
        ("Hello,\nopen {link}", ""),
        ("Hello,\n\nhere:\n{link}", "Hello,\n\n"),
        ("A\n\nB\n\n{code}\n\n{link}", "A\n\nB\n\n"),
        ("A\n\nno code", ""),
    ],
)
def test_the_line_is_above_the_paragraph_of_the_code(text, before):
    assert split_before_code(text) == (before, text.removeprefix(before))
