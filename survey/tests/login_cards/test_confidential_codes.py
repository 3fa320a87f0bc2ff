"""Where completion is confidential, no one sees codes next to names."""

from __future__ import annotations

import re

import pytest
from django.core import mail
from django.utils import timezone

from accounts import email_outbox
from accounts.models import AuditEntry, QueuedEmail
from accounts.tests.logging_in import log_in
from survey.fieldwork.emails.suppression import digest_of, suppress
from survey.fieldwork.login_cards import card_sets, layout
from survey.fieldwork.login_cards.code_emails import send_codes
from survey.models import Administration, CardSet, Respondent, SuppressedAddress
from survey.people.access_codes import code_of, format_code
from survey.taking.login import log_in_respondent
from survey.tests.card_readers import read_pages
from survey.tests.people import invite

pytestmark = pytest.mark.django_db


@pytest.fixture
def people(administration, staff) -> list[Respondent]:
    """Return six students of 7B, of whom the first has an e-mail address."""
    return [
        invite(
            administration,
            staff.lincoln,
            f"4000{n}",
            f"Maya{n} López{n}",
            "" if n else "maya@example.org",
            grade="07",
            classroom="7B",
            language="" if n else "ar",
        )
        for n in range(6)
    ]


@pytest.fixture
def post(client, administration, django_capture_on_commit_callbacks):
    def post(path, **data):
        with django_capture_on_commit_callbacks(execute=True):
            response = client.post(
                f"/console/administrations/{administration.pk}/{path}",
                data,
                follow=True,
            )
        # The job has run by now.
        at = response.request["PATH_INFO"]
        return client.get(at) if re.search(r"/cards/\d+/$", at) else response

    return post


def show_completion(administration) -> None:
    Administration.objects.filter(pk=administration.pk).update(
        coordinators_see_finished=True
    )


def download(client, card_set) -> bytes:
    response = client.get(
        f"/console/administrations/{card_set.administration_id}"
        f"/cards/{card_set.pk}/file/"
    )
    assert response.status_code == 200, response
    return b"".join(response.streaming_content)


def test_cards_to_draw_from_have_no_names_and_no_order(
    client, staff, post, people, monkeypatch
):
    def backwards(self, members, count):
        return members[::-1]

    monkeypatch.setattr(layout.SystemRandom, "sample", backwards)
    log_in(client, staff.chen)
    post("cards/", format="pdf", shown="id")
    card_set = CardSet.objects.get()
    [page] = read_pages(download(client, card_set))
    codes = [link.partition("#")[2] for link in page.links]
    assert codes == [format_code(code_of(person)) for person in people[::-1]]
    assert page.text.count("Draw any card") == 6
    assert "Class 7B" in page.text
    for hidden in ("Maya", "López", "4000"):
        assert hidden not in page.text
    # The one who reads Arabic would be known by it.
    assert "رمز" not in page.text
    assert log_in_respondent(codes[0]).respondent_id == people[5].pk


def test_cards_of_completion_that_is_shown_have_names(
    client, staff, administration, post, people
):
    """The twin: with the setting the other way, there are names to leak."""
    show_completion(administration)
    log_in(client, staff.chen)
    post("cards/", format="pdf")
    [page] = read_pages(download(client, CardSet.objects.get()))
    assert "Maya0 López0" in page.text and "رمز" in page.text
    assert "Draw" not in page.text


@pytest.mark.parametrize("login", ["chen", "dana", "state"])
@pytest.mark.parametrize("format", ["csv", "excel"])
def test_no_role_can_list_codes_next_to_names(
    client, staff, administration, post, people, login, format
):
    log_in(client, getattr(staff, login))
    post(f"cards/?school={staff.lincoln.pk}", format=format)
    if login != "chen":
        post("cards/", format=format)
    assert not CardSet.objects.exists()


def test_a_list_ordered_before_the_setting_changed_cannot_be_made_or_downloaded(
    client, staff, administration, post, people
):
    show_completion(administration)
    log_in(client, staff.chen)
    post("cards/", format="csv")
    card_set = CardSet.objects.get()
    assert b"Maya0" in download(client, card_set)
    Administration.objects.update(coordinators_see_finished=False)
    page = client.get(
        f"/console/administrations/{administration.pk}/cards/{card_set.pk}/file/",
        follow=True,
    ).content.decode()
    assert "listed next to names" in page and "Maya0" not in page
    CardSet.objects.update(made_at=None)
    page = post(f"cards/{card_set.pk}/again/").content.decode()
    assert "listed next to names" in page
    card_set.refresh_from_db()
    assert card_set.made_at is None


def test_a_code_next_to_a_name_is_neither_shown_nor_printed(
    client, staff, administration, post, people
):
    log_in(client, staff.chen)
    person = people[1]
    page = client.get(
        f"/console/administrations/{administration.pk}/people/{person.pk}/"
    ).content.decode()
    assert "Show code" not in page and "Print card" not in page
    assert "Issue new code" not in page
    for action in ("code", "card", "reissue"):
        response = post(f"people/{person.pk}/{action}/")
        assert response.status_code == 404, action
    person.refresh_from_db()
    assert person.issue == 1
    assert not CardSet.objects.exists()


def test_a_code_is_sent_to_the_persons_own_address(client, staff, post, people):
    log_in(client, staff.chen)
    page = post(f"people/{people[0].pk}/card/").content.decode()
    assert "1 person gets an e-mail" in page
    code = format_code(code_of(people[0]))
    assert code not in page
    # Nothing that waits to be sent holds the code.
    assert code not in str(list(QueuedEmail.objects.values()))
    email_outbox.send_waiting()
    [email] = mail.outbox
    assert email.to == ["maya@example.org"]
    assert f"https://survey.example.org/#{code}" in email.body
    assert "رمز الدخول" in email.body
    entry = AuditEntry.objects.get(action="e-mail access codes")
    assert entry.school_id == staff.lincoln.pk
    assert code not in str(list(AuditEntry.objects.values()))


def test_a_new_code_is_sent_to_the_person_and_not_shown(client, staff, post, people):
    log_in(client, staff.chen)
    page = post(f"people/{people[0].pk}/reissue/").content.decode()
    people[0].refresh_from_db()
    assert people[0].issue == 2
    code = format_code(code_of(people[0]))
    assert code not in page and "sent by e-mail" in page
    email_outbox.send_waiting()
    assert code in mail.outbox[0].body


def test_codes_of_a_district_are_sent_to_everyone_with_an_address(
    client, staff, administration, post, people
):
    invite(administration, staff.roosevelt, "9", "Noor Hassan", "noor@example.org")
    gone = invite(administration, staff.lincoln, "8", "Ben Adams", "ben@example.org")
    Respondent.objects.filter(pk=gone.pk).update(withdrawn_at=timezone.now())
    log_in(client, staff.dana)
    post("cards/", format="email")
    assert list(QueuedEmail.objects.values_list("to", flat=True)) == [
        "maya@example.org"
    ]
    assert CardSet.objects.get().people == 1


@pytest.fixture
def siblings(administration, staff) -> list[Respondent]:
    """Three people with one address, two of them in the same class."""
    return [
        invite(administration, staff.lincoln, pk, name, email, classroom=room)
        for pk, name, email, room in (
            ("21", "Ana Ruiz", "home@example.org", "7A"),
            ("22", "Leo Ruiz", "Home@example.org", "7A"),
            ("23", "Eva Ruiz", "home@example.org", "9B"),
        )
    ]


def texts_to_home() -> list[str]:
    email_outbox.send_waiting()
    return [m.body for m in mail.outbox if m.to[0].lower() == "home@example.org"]


def test_siblings_with_one_address_can_tell_their_codes_apart(
    client, staff, administration, post, siblings
):
    log_in(client, staff.chen)
    post("cards/", format="email")
    texts = texts_to_home()
    for n, (text, room) in enumerate(zip(texts, ("7A", "7A", "9B"), strict=True), 1):
        assert f"Class {room}" in text and f"Code {n} of 3 for this address" in text
        assert format_code(code_of(siblings[n - 1])) in text
    # No name: who has finished is confidential here.
    assert "Ruiz" not in "".join(texts)


def test_siblings_are_named_where_cards_have_names(
    client, staff, administration, post, siblings
):
    show_completion(administration)
    log_in(client, staff.chen)
    post("cards/", format="email")
    for text, name in zip(texts_to_home(), ("Ana", "Leo", "Eva"), strict=True):
        assert f"For {name} Ruiz" in text


def test_a_repeated_job_sends_each_code_once(staff, administration, people):
    card_set = CardSet.objects.create(
        administration=administration,
        school=staff.lincoln,
        format=CardSet.Format.EMAIL,
        by=staff.chen,
    )
    everyone = card_sets.people_in(card_set)
    send_codes(card_set, everyone)
    send_codes(card_set, everyone)
    assert QueuedEmail.objects.count() == 1
    # The twin: without the mark, the code would be sent again.
    CardSet.objects.update(made_at=None)
    send_codes(card_set, everyone)
    assert QueuedEmail.objects.count() == 2


def test_no_code_is_sent_to_a_person_withdrawn_meanwhile(client, staff, post, people):
    log_in(client, staff.chen)
    post(f"people/{people[0].pk}/card/")
    Respondent.objects.update(withdrawn_at=timezone.now())
    email_outbox.send_waiting()
    assert not mail.outbox and not QueuedEmail.objects.exists()


def test_fewer_than_five_cards_to_draw_from_are_refused(
    client, staff, administration, post, people
):
    Respondent.objects.filter(pk__in=[person.pk for person in people[4:]]).update(
        classroom="7C"
    )
    log_in(client, staff.chen)
    page = post("cards/", format="pdf", classroom="7B").content.decode()
    assert "need at least 5 people" in page
    # Both classes together: which class a card belongs to is not printed.
    post("cards/", format="pdf")
    [page] = read_pages(download(client, CardSet.objects.latest("pk")))
    assert len(page.links) == 6
    # As a word: a code may have these characters.
    assert not re.search(r"\b7[BC]\b", page.text)


def test_a_school_with_fewer_than_five_is_not_told_to_print_all_classes(
    client, staff, post, people
):
    Respondent.objects.filter(pk__in=[person.pk for person in people[3:]]).update(
        withdrawn_at=timezone.now()
    )
    log_in(client, staff.chen)
    page = post("cards/", format="pdf").text
    assert "1 school has fewer than 5 people" in page and "Lincoln" in page
    assert "for all classes" not in page and "Try again" not in page


def test_small_classes_are_merged_until_there_are_enough_to_draw_from():
    groups = {"7A": [*range(9)], "7B": [1, 2], "7C": [*range(7)], "8": [3]}
    merged = layout.merge_small(groups, "Lincoln")
    assert merged == {"7A": [*range(9)], "Lincoln": [3, 1, 2, *range(7)]}
    alone = {"7A": [*range(9)]}
    assert layout.merge_small(alone, "Lincoln") == alone


@pytest.mark.parametrize("action", ["code", "card"])
def test_showing_the_code_of_a_person_who_has_started_replaces_it(
    client, staff, administration, post, people, action
):
    show_completion(administration)
    Respondent.objects.filter(pk=people[1].pk).update(started_at=timezone.now())
    log_in(client, staff.chen)
    for person, issue in ((people[1], 2), (people[2], 1)):
        page = post(f"people/{person.pk}/{action}/").content.decode()
        person.refresh_from_db()
        assert person.issue == issue
        if action == "code":
            assert format_code(code_of(person)) in page
        else:
            [sheet] = read_pages(download(client, CardSet.objects.latest("pk")))
            assert format_code(code_of(person)) in sheet.text
    actions = set(AuditEntry.objects.values_list("action", flat=True))
    assert {name for name in actions if re.match("reissue", name)}


# People who opted out of e-mails


@pytest.fixture
def opted_out(people) -> Respondent:
    suppress(digest_of("Maya@example.org"), SuppressedAddress.Reason.OPTED_OUT)
    return people[0]


def test_a_person_who_opted_out_gets_a_code_only_if_they_asked(
    client, staff, post, opted_out
):
    log_in(client, staff.chen)
    person = f"people/{opted_out.pk}/"
    page = client.get(
        f"/console/administrations/{opted_out.administration_id}/{person}"
    )
    assert "gets no e-mails" in page.content.decode()
    for act in (f"{person}card/", f"{person}reissue/"):
        reply = post(act, format="email")
        assert "this person gets no e-mails" in reply.content.decode()
    opted_out.refresh_from_db()
    assert opted_out.issue == 1
    assert not QueuedEmail.objects.exists() and mail.outbox == []
    post(f"{person}card/", format="email", asked="yes")
    email_outbox.send_waiting()
    assert [message.to for message in mail.outbox] == [["maya@example.org"]]


def test_codes_for_a_school_leave_out_people_who_opted_out(
    client, staff, post, opted_out, administration
):
    invite(administration, staff.lincoln, "5", "Ana López", "ana@example.org")
    log_in(client, staff.chen)
    post("cards/", format="email")
    card_set = CardSet.objects.get()
    assert card_set.people == 1
    assert "get no e-mails: 1." in card_set.job.message
    email_outbox.send_waiting()
    assert [message.to for message in mail.outbox] == [["ana@example.org"]]


def test_e_mails_have_no_file_to_download(client, staff, post, people):
    log_in(client, staff.chen)
    post("cards/", format="email")
    card_set = CardSet.objects.get()
    assert card_set.is_ready and not card_set.file_name
    response = client.get(
        f"/console/administrations/{card_set.administration_id}"
        f"/cards/{card_set.pk}/file/",
        follow=True,
    )
    assert "no longer exists" in response.content.decode()
