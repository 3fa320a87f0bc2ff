"""Colleagues comment on the questions of a draft."""

from __future__ import annotations

import pytest
from django.db import IntegrityError
from django.test import Client
from django.utils import timezone

from accounts.tests.logging_in import log_in
from survey.console.surveys.comments import LONGEST_COMMENT
from survey.instrument.drafts.commands import delete_rows, move_rows
from survey.instrument.drafts.store import change_draft, load_book
from survey.models import DraftComment, Survey
from survey.tests.console.test_surveys import draft_of

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}


@pytest.fixture
def draft(staff):
    return draft_of()


@pytest.fixture
def client(staff):
    return log_in(Client(), staff.state)


def at(draft, rest="") -> str:
    return f"/console/surveys/{draft.pk}/edit/comments/{rest}"


def key_of(draft, name="pet") -> str:
    sheet = load_book(draft).sheet("survey")
    return next(row.key for row in sheet.rows if sheet.value(row, "name") == name)


def place_of(draft, name="pet") -> str:
    return at(draft, f"at/{key_of(draft, name)}/")


def comment_on(client, draft, text="Shorter?", name="pet", **form):
    return client.post(place_of(draft, name), {"text": text, **form}, headers=HTMX)


def test_a_question_is_discussed_until_its_comment_is_resolved(client, draft, staff):
    dana = log_in(Client(), staff.dana)
    reply = comment_on(dana, draft, "Is “pet” clear to\nchildren?")
    assert reply["HX-Trigger"] == "comments"
    assert "Is “pet” clear to<br>children?" in reply.content.decode()
    comment = DraftComment.objects.get()

    # At the question in the editor, in its head, and in the list.
    fragment = client.get(place_of(draft)).content.decode()
    assert "Comments (1)" in fragment and str(staff.dana) in fragment
    assert "1 comment<" in client.get(at(draft, "count/")).content.decode()
    page = client.get(at(draft)).content.decode()
    assert f"/edit/?at={key_of(draft)}" in page and "Page 1: Which pet?" in page

    reply = comment_on(client, draft, "We say “animal”.", replies_to=comment.pk)
    assert "We say “animal”." in reply.content.decode()
    client.post(at(draft, f"{comment.pk}/resolve/"))
    assert "There are no open comments." in client.get(at(draft)).content.decode()
    page = client.get(at(draft), {"show": "resolved"}).content.decode()
    assert f"resolved by {staff.state}" in page and "We say “animal”." in page
    # A reply opens it again.
    comment_on(dana, draft, "And fish?", replies_to=comment.pk)
    assert "And fish?" in client.get(at(draft)).content.decode()


def test_without_scripts_the_same_forms_lead_to_the_list(client, draft):
    form = {"key": key_of(draft), "text": "Shorter?"}
    reply = client.post(at(draft, "add/"), form, follow=True)
    assert reply.redirect_chain == [(at(draft), 302)]
    assert "The comment was added." in reply.content.decode()
    reply = client.post(at(draft, "add/"), {"key": "", "text": " "}, follow=True)
    assert "Enter a comment." in reply.content.decode()
    client.post(at(draft, "at/survey/"), {"text": "Too long"})
    page = client.get(at(draft)).content.decode()
    assert "The survey as a whole" in page.partition("Too long")[0]
    comment = DraftComment.objects.get(key="")
    client.post(at(draft, f"{comment.pk}/resolve/"))
    client.post(at(draft, f"{comment.pk}/resolve/"), {"open": "1"})
    comment.refresh_from_db()
    assert comment.resolved_at is None and comment.resolved_by is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (" \n ", "Enter a comment."),
        ("x" * (LONGEST_COMMENT + 1), "at most 2,000 characters|at most 2000"),
        ("a\0b", "Null characters"),
    ],
    ids=["blank", "long", "null"],
)
def test_comments_that_cannot_be_used_stay_in_the_form(client, draft, text, reason):
    content = comment_on(client, draft, text).content.decode()
    assert any(words in content for words in reason.split("|"))
    assert text.strip().replace("\0", "")[:1] in content
    assert not DraftComment.objects.exists()


def test_a_comment_is_plain_text(client, draft):
    content = comment_on(client, draft, "<img src=x onerror=alert(1)>").content.decode()
    assert "<img" not in content and "&lt;img src=x" in content


def test_a_comment_follows_its_question_until_that_is_deleted(client, draft, staff):
    comment_on(client, draft, "Shorter?", "pet")
    comment_on(client, draft, "Needed?", "age")
    key, last = key_of(draft), key_of(draft, "age")
    change_draft(
        draft,
        lambda book: move_rows(book, key, after=last),
        action="move",
        by=staff.state,
    )
    text = client.get(at(draft)).content.decode()
    assert text.index("Needed?") < text.index("Shorter?")
    change_draft(
        draft, lambda book: delete_rows(book, key), action="delete", by=staff.state
    )
    text = client.get(at(draft)).content.decode()
    assert "A question that was deleted" in text.partition("Shorter?")[0]
    assert client.get(at(draft, f"at/{key}/")).status_code == 404
    # What is written there meanwhile is not lost in silence.
    assert client.post(at(draft, f"at/{key}/"), {"text": "?"}).status_code == 404


@pytest.mark.parametrize("number", ["9" * 30, "x", "-1", "0"])
def test_a_reply_needs_a_comment_at_the_same_question(client, draft, number):
    assert comment_on(client, draft, replies_to=number).status_code == 404
    comment_on(client, draft)
    first = DraftComment.objects.get()
    assert comment_on(client, draft, name="age", replies_to=first.pk).status_code == 404
    comment_on(client, draft, replies_to=first.pk)
    reply = DraftComment.objects.get(replies_to=first)
    # Replies are flat, and only first comments are resolved.
    assert comment_on(client, draft, replies_to=reply.pk).status_code == 404
    assert client.post(at(draft, f"{reply.pk}/resolve/")).status_code == 404


def test_the_database_refuses_a_resolved_reply(draft, staff):
    first = DraftComment.objects.create(survey=draft, text="?", by=staff.state)
    with pytest.raises(IntegrityError, match="only_a_first_comment_is_resolved"):
        DraftComment.objects.create(
            survey=draft,
            text="!",
            by=staff.state,
            replies_to=first,
            resolved_at=timezone.now(),
        )


def test_only_those_who_see_the_draft_comment_on_it(draft, staff):
    Survey.objects.filter(pk=draft.pk).update(district=staff.riverside)
    for user, status in ((staff.dana, 200), (staff.state, 200), (staff.chen, 404)):
        person = log_in(Client(), user)
        assert comment_on(person, draft).status_code == status
        for rest in ("", "count/", f"at/{key_of(draft)}/"):
            assert person.get(at(draft, rest)).status_code == status
    Survey.objects.filter(pk=draft.pk).update(district=staff.lakeside)
    comment = DraftComment.objects.first()
    dana = log_in(Client(), staff.dana)
    assert dana.post(at(draft, f"{comment.pk}/resolve/")).status_code == 404
    assert dana.get(at(draft)).status_code == 404


def test_those_who_may_not_change_a_draft_get_no_link_to_the_editor(draft, staff):
    dana = log_in(Client(), staff.dana)
    comment_on(dana, draft)
    text = dana.get(at(draft)).content.decode()
    assert "Page 1: Which pet?" in text and "/edit/?at=" not in text


def test_a_published_survey_has_no_comments(client, draft):
    comment_on(client, draft)
    address = place_of(draft)
    Survey.objects.filter(pk=draft.pk).update(published_at=timezone.now())
    for place in (at(draft), at(draft, "count/"), address):
        assert client.get(place).status_code == 404
    assert client.post(address, {"text": "Late"}).status_code == 404


@pytest.mark.parametrize("comments", [1, 3])
def test_one_and_three_comments_cost_the_same(
    client,
    draft,
    comments,
    django_assert_num_queries,
    django_capture_on_commit_callbacks,
):
    for number in range(comments):
        comment_on(client, draft, f"Comment {number}")
        first = DraftComment.objects.filter(replies_to=None).first()
        comment_on(client, draft, "Reply", replies_to=first.pk)
    with django_capture_on_commit_callbacks(execute=True):
        client.get(at(draft))
    with django_assert_num_queries(7):
        client.get(at(draft))
    address = place_of(draft)
    with django_assert_num_queries(7):
        client.get(address)
    with django_assert_num_queries(5):
        client.get(at(draft, "count/"))
