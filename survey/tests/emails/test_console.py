"""The console pages of e-mails: from the schedule to the figures."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.core import mail
from django.core.cache import cache
from django.urls import reverse
from django.utils import timezone

from accounts.models import AuditEntry
from accounts.tests.logging_in import log_in
from survey.fieldwork.emails import schedules, suppression
from survey.fieldwork.emails.figures import in_tens
from survey.models import (
    Administration,
    EmailDelivery,
    EmailSchedule,
    EmailTemplate,
    Job,
    Respondent,
    SuppressedAddress,
)
from survey.people.access_codes import code_of, format_code
from survey.tests.people import invite
from survey.work import jobs

pytestmark = pytest.mark.django_db

PLAN = {"reminder_days": "3, 7", "thanks": "on", "rate_per_minute": "600"}


@pytest.fixture
def desk(client, staff, administration, by_hand):
    """Return a function that opens a page of the e-mails as the state's user."""
    log_in(client, staff.state)

    def desk(page="detail", post=None, *, user=None, args=(), query=""):
        if user is not None:
            log_in(client, user)
        address = reverse(f"emails_{page}", args=[administration.pk, *args]) + query
        return client.get(address) if post is None else client.post(address, post)

    desk.client = client
    return desk


def errors(reply) -> str:
    assert reply.status_code == 200, reply
    messages = re.findall(r'<p class="error"[^>]*>(.*?)</p>', reply.content.decode())
    return " | ".join(messages)


def text(reply) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", reply.content.decode()).split())


def run_jobs() -> None:
    for job in Job.objects.filter(ended_at=None):
        jobs.run(job.pk)


def test_an_administrator_plans_writes_tests_and_confirms(
    shown_completion, desk, people, staff, send
):
    assert "No e-mails are planned" in text(desk())
    assert desk("plan", PLAN).status_code == 302
    schedule = EmailSchedule.objects.get()
    page = text(desk())
    assert "Nothing is sent yet" in page and "Reminder after 7 days" in page

    step = schedule.steps.get(kind="invitation")
    reply = desk(
        "text",
        {"subject": "Your survey", "body": "Hello {name},\r\n\r\n{link}"},
        args=[step.pk, "en"],
    )
    assert reply.status_code == 302
    assert step.templates.get(language="en").body == "Hello {name},\n\n{link}"
    page = text(desk("text", args=[step.pk, "en"]))
    assert "Hello Maya," in page and "/#ABCD-EFGH-KLMN" in page

    assert desk("test", {}, args=[step.pk, "en"]).status_code == 302
    run_jobs()
    [message] = mail.outbox
    assert message.to == ["state@example.org"] and message.subject == (
        "[Test] Your survey"
    )
    assert "A test e-mail was sent to state@example.org." in text(
        desk("text", args=[step.pk, "en"])
    )

    page = text(desk("confirm"))
    assert "Send e-mails to 3 people?" in page
    assert desk("confirm", {}).status_code == 302
    mail.outbox.clear()
    schedule.refresh_from_db()
    send(schedule)
    assert [m.subject for m in mail.outbox][0] == "Your survey"
    page = desk("progress").content.decode()
    assert 'hx-trigger="every 10s"' in page
    actions = AuditEntry.objects.order_by("pk").values_list("action", flat=True)
    assert list(actions) == ["plan e-mails", "write an e-mail", "confirm e-mails"]


def test_the_emails_of_others_do_not_exist(desk, confirmed, staff):
    step = confirmed.steps.first()
    for user in (staff.chen, staff.analyst, staff.sam, staff.dana):
        log_in(desk.client, user)
        for page in ("detail", "progress", "plan", "confirm"):
            assert desk(page).status_code == 404
        for page in ("plan", "confirm", "pause", "resume", "cancel"):
            assert desk(page, PLAN).status_code == 404
        for page, args in (("text", [step.pk, "en"]), ("preview", [step.pk])):
            assert desk(page, args=args).status_code == 404
        assert desk("test", {}, args=[step.pk, "en"]).status_code == 404
    confirmed.refresh_from_db()
    assert confirmed.is_active and not Job.objects.exists()


def test_an_impossible_schedule_gets_a_clear_message(desk):
    cases = [
        ({"reminder_days": "soon"}, "Write whole numbers"),
        ({"reminder_days": "-1"}, "Write whole numbers"),
        ({"reminder_days": "٣"}, "Write whole numbers"),
        ({"reminder_days": "0"}, "from 1 to 180"),
        ({"reminder_days": "9" * 40}, "from 1 to 180"),
        ({"reminder_days": "1,2,3,4,5,6,7,8,9,10,11"}, "at most 10"),
        # Of an administration of 31 days.
        ({"reminder_days": "60"}, "later reminders would never be sent"),
        ({"rate_per_minute": "0"}, "from 1 to 60,000"),
        ({"rate_per_minute": ""}, "from 1 to 60,000"),
    ]
    for changes, message in cases:
        assert message in errors(desk("plan", {**PLAN, **changes})), changes
    assert not EmailSchedule.objects.exists()


def test_a_wrong_text_gets_a_clear_message_and_is_not_stored(desk, plan):
    cases = [
        ({"body": "{link} {phone}"}, "{phone} is not a variable."),
        ({"body": "{link} {name.__class__}"}, "{name.__class__} is not a variable."),
        ({"subject": "{grade}"}, "{grade} is not a variable."),
        ({"subject": "Hello {code}"}, "others can see a subject"),
        ({"subject": "Now\r\nBcc: all@example.org"}, "in one line"),
        ({"subject": "Now\nBcc: all@example.org"}, "in one line"),
        ({"subject": ""}, "Write a subject."),
        ({"body": "Come now"}, "Add {link}"),
        ({"body": "{link} {"}, "only around variables"),
    ]
    step = plan().steps.get(kind="invitation")
    before = list(EmailTemplate.objects.values())
    valid = {"subject": "Now", "body": "{link}"}
    for fields, message in cases:
        reply = desk("text", {**valid, **fields}, args=[step.pk, "en"])
        assert message in errors(reply), fields
        # The text that was typed is still in the form.
        assert fields.get("body", "{link}") == reply.context["form"]["body"].value()
        assert list(EmailTemplate.objects.values()) == before


def test_a_text_is_written_in_a_known_language_only(desk, plan):
    step = plan().steps.get(kind="invitation")
    assert desk("text", args=[step.pk, "xx"]).status_code == 404
    assert desk("text", args=[step.pk + 99, "en"]).status_code == 404


def test_confirming_twice_confirms_once(desk, plan, people, staff):
    plan()
    assert desk("confirm", {}).status_code == 302
    first = EmailSchedule.objects.get().confirmed_at
    reply = desk("confirm", {})
    assert reply["Location"] == reverse(
        "emails_detail", args=[Administration.objects.get().pk]
    )
    assert EmailSchedule.objects.get().confirmed_at == first
    assert AuditEntry.objects.filter(action="confirm e-mails").count() == 1


def test_many_recipients_are_typed(desk, plan, people, monkeypatch):
    monkeypatch.setattr(schedules, "MANY", 2)
    plan()
    assert "How many people will get e-mails?" in text(desk("confirm"))
    for typed in ("", "4", "<b>"):
        assert "Type 3 to confirm" in errors(desk("confirm", {"typed": typed}))
        assert EmailSchedule.objects.get().confirmed_at is None
    assert desk("confirm", {"typed": "3"}).status_code == 302


def test_a_closed_administration_is_not_confirmed(desk, plan, people):
    plan()
    Administration.objects.update(closes_at=timezone.now())
    assert "This survey is closed" in errors(desk("confirm", {}))
    assert EmailSchedule.objects.get().confirmed_at is None


def test_emails_are_paused_resumed_and_cancelled(desk, confirmed, people, send):
    desk("pause", {})
    send(confirmed)
    assert mail.outbox == []
    desk("resume", {})
    send(confirmed)
    assert len(mail.outbox) == 3
    desk("cancel", {})
    confirmed.refresh_from_db()
    assert confirmed.confirmed_at is None and "not confirmed" in text(desk())
    # Confirmed again, nobody gets the invitation again.
    assert desk("confirm", {}).status_code == 302
    send(confirmed)
    assert len(mail.outbox) == 3


def test_nothing_is_sent_after_cancelling(desk, confirmed, people, send):
    desk("cancel", {})
    send(confirmed)
    assert mail.outbox == [] and not EmailDelivery.objects.exists()


# Preview ---------------------------------------------------------------------


def test_a_preview_is_as_the_person_gets_it_without_the_code(
    shown_completion, desk, confirmed, people
):
    args = [confirmed.steps.get(kind="invitation").pk]
    ana = people[1]
    assert "Search" in text(desk("preview", args=args))
    page = text(desk("preview", args=args, query="?q=Ana"))
    assert "Ana López" in page and "Maya Robinson" not in page
    page = text(desk("preview", args=args, query=f"?person={ana.pk}"))
    assert "Hola, Ana:" in page and "ana@example.org" in page
    assert format_code(code_of(ana)) not in page and "ABCD-EFGH-KLMN" in page
    actions = AuditEntry.objects.order_by("pk").values_list("action", flat=True)
    assert list(actions)[-2:] == ["look at people", "preview an e-mail"]


@pytest.mark.parametrize("person", ["0", "x", "9" * 40, "²"])
def test_a_preview_of_nobody_is_not_found(desk, confirmed, person):
    args = [confirmed.steps.first().pk]
    reply = desk("preview", args=args, query=f"?person={person}")
    assert reply.status_code == 404


def test_nobody_is_previewed_from_another_district(
    desk, administration, people, staff, plan
):
    """Dana owns the administration; its roster has a person of another district."""
    Administration.objects.update(district=staff.riverside)
    step = plan().steps.first()
    noor = invite(administration, staff.roosevelt, "8", "Noor Aziz", "noor@example.com")
    for person, status in ((people[0], 200), (noor, 404)):
        query = f"?person={person.pk}"
        reply = desk("preview", user=staff.dana, args=[step.pk], query=query)
        assert reply.status_code == status
    page = text(desk("preview", args=[step.pk], query="?q=noor"))
    assert "Noor Haddad" in page and "Noor Aziz" not in page


def test_a_preview_is_the_same_after_the_person_finished(desk, confirmed, people):
    args, query = [confirmed.steps.get(days=3).pk], f"?person={people[0].pk}"
    before = desk("preview", args=args, query=query).context["sample"]
    now = timezone.now()
    Respondent.objects.update(started_at=now, completed_at=now)
    assert desk("preview", args=args, query=query).context["sample"] == before


# Figures ---------------------------------------------------------------------


def finish(*people: Respondent) -> None:
    later = timezone.now() + timedelta(minutes=1)
    keys = [person.pk for person in people]
    Respondent.objects.filter(pk__in=keys).update(started_at=later, completed_at=later)


def figures(desk) -> dict[str, str]:
    cache.clear()
    return desk("progress").context["total"]._asdict()


def test_the_figures_say_what_became_of_the_emails(desk, confirmed, people, send):
    Administration.objects.update(coordinators_see_finished=True)
    send(confirmed)
    maya, ana, noor = people
    finish(maya)
    suppression.suppress(
        suppression.digest_of("ana@example.org"), SuppressedAddress.Reason.OPTED_OUT
    )
    EmailDelivery.objects.filter(respondent=noor).update(
        state="failed", reason="unconfirmed", repeated=True
    )
    assert figures(desk) == {
        "sent": "2",
        "bounced": "0",
        "failed": "1",
        "unconfirmed": "1",
        "waiting": "0",
        "repeated": "1",
        "finished_since": "1",
        "opted_out": "1",
    }
    page = reverse("administration_detail", args=[confirmed.administration_id])
    assert "2 sent, 0 bounced, 1 opted out, 1 finished since" in text(
        desk.client.get(page)
    )


def test_people_who_finished_before_their_email_are_not_counted(
    desk, confirmed, people, send
):
    Administration.objects.update(coordinators_see_finished=True)
    earlier = timezone.now() - timedelta(days=1)
    send(confirmed)
    Respondent.objects.update(started_at=earlier, completed_at=earlier)
    assert figures(desk)["finished_since"] == "0"


def test_confidential_figures_do_not_show_single_people(
    desk, confirmed, people, send, administration
):
    assert administration.is_completion_confidential
    nobody = figures(desk)
    assert set(nobody.values()) == {"under 10"}
    send(confirmed)
    finish(people[0])
    assert figures(desk) == nobody
    rows = desk("progress").context["rows"]
    assert {value for row in rows for value in row.figures} == {"under 10"}


def test_figures_in_tens_change_at_each_tenth_person():
    words = [in_tens(count) for count in (0, 9, 10, 19, 20, 12_345)]
    assert words == [
        *("under 10", "under 10", "10+", "10+"),
        *("20+", "12,340+"),
    ]


def test_figures_and_pages_cost_a_few_statements(
    desk, confirmed, people, send, django_assert_num_queries
):
    send(confirmed)
    desk()
    cache.clear()
    with django_assert_num_queries(9):
        desk("progress")
    # Within ten seconds nothing is counted again.
    with django_assert_num_queries(8):
        desk("progress")


def test_the_recipients_of_the_page_do_not_depend_on_answers(desk, confirmed, people):
    before = desk("progress").context["recipients"]
    finish(*people)
    assert desk("progress").context["recipients"] == before == 3


def test_the_page_of_a_text_says_where_names_are_left_out(desk, plan, administration):
    step = plan().steps.get(kind="invitation")
    page = text(desk("text", args=[step.pk, "en"]))
    assert "so {name} is left out" in page and "Hello," in page
    assert "Hello Maya" not in page
    Administration.objects.update(coordinators_see_finished=True)
    page = text(desk("text", args=[step.pk, "en"]))
    assert "a text without {name} gets a line" in page and "Hello Maya," in page
