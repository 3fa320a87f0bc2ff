from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone

from accounts.models import AuditEntry, Membership, User
from accounts.permissions import Permissions
from survey.fieldwork.open_codes.codes import (
    CodeRevoked,
    code_of,
    create_open_code,
    publish_open_code,
    replace_open_code,
    revoke_open_code,
)
from survey.models import OpenCode, OpenCodeSeat
from survey.people.access_codes import code_for, digest_for
from survey.tests.open_codes.cast import open_code, open_to_parents

pytestmark = pytest.mark.django_db


@pytest.fixture
def ms_chen(lincoln):
    user = User.objects.create_user("chen@lincoln.example")
    Membership.objects.create(user=user, role="coordinator", school=lincoln)
    return user


def test_a_coordinator_creates_replaces_and_revokes_a_code(parents, lincoln, ms_chen):
    code = create_open_code(
        administration=parents, school=lincoln, by=ms_chen, label="Newsletter", limit=3
    )
    first = code_of(code)
    assert OpenCodeSeat.objects.filter(open_code=code).count() == 3
    replaced = replace_open_code(code=code, by=ms_chen)
    assert code_of(replaced) != first
    revoked = revoke_open_code(code=code, by=ms_chen)
    assert revoked.revoked_at is not None
    with pytest.raises(CodeRevoked):
        replace_open_code(code=code, by=ms_chen)
    entries = AuditEntry.objects.filter(by=ms_chen.email).order_by("pk")
    assert [entry.action for entry in entries] == [
        "create open code",
        "replace open code",
        "revoke open code",
    ]
    assert not any(first in str(entry.after) for entry in entries)
    # Revoking it again changes nothing.
    assert revoke_open_code(code=code, by=ms_chen).revoked_at == revoked.revoked_at
    assert entries.count() == 3


def test_a_published_code_stays_published_until_it_is_unpublished_or_revoked(
    code, ms_chen
):
    assert not code.published
    assert code_of(code) not in str(OpenCode.objects.values().get())
    published = publish_open_code(code=code, by=ms_chen)
    assert published.published_code == code_of(code)
    replaced = replace_open_code(code=code, by=ms_chen)
    assert replaced.published_code == code_of(replaced) != code_of(code)
    assert publish_open_code(code=code, by=ms_chen, published=False).published is False
    assert replace_open_code(code=code, by=ms_chen).published is False

    publish_open_code(code=code, by=ms_chen)
    # Publishing it again changes nothing.
    publish_open_code(code=code, by=ms_chen)
    assert revoke_open_code(code=code, by=ms_chen).published is False
    with pytest.raises(CodeRevoked):
        publish_open_code(code=code, by=ms_chen)
    assert not OpenCode.objects.get().published
    entries = AuditEntry.objects.filter(by=ms_chen.email, action__contains="publish")
    assert [entry.action for entry in entries.order_by("pk")] == [
        "publish open code",
        "unpublish open code",
        "publish open code",
    ]


def test_the_database_has_a_digest_and_not_the_code(code):
    stored = OpenCode.objects.get()
    assert bytes(stored.code_digest) == digest_for(
        code_of(code), stored.code_key_version
    )
    # A person's code with the same numbers is another one.
    assert code_of(code) != code_for(code.pk, code.issue)


def test_nobody_makes_a_code_for_another_school(parents, code, roosevelt, ms_chen):
    with pytest.raises(PermissionDenied):
        create_open_code(administration=parents, school=roosevelt, by=ms_chen)
    foreign = open_code(parents, roosevelt)
    for act in (revoke_open_code, replace_open_code, publish_open_code):
        with pytest.raises(PermissionDenied):
            act(code=foreign, by=ms_chen)
    assert list(OpenCode.objects.visible_to(Permissions(ms_chen))) == [code]


def test_an_administration_by_roster_has_no_open_codes(administration, lincoln):
    with pytest.raises(ValidationError, match="people on a roster"):
        open_code(administration, lincoln)


def test_a_code_is_for_a_school_in_which_the_survey_is_offered(lincoln, roosevelt):
    parents = open_to_parents(schools=[lincoln])
    assert open_code(parents, lincoln)
    with pytest.raises(ValidationError, match="not offered at Roosevelt"):
        open_code(parents, roosevelt)


@pytest.mark.parametrize(
    "fields",
    [
        {"language": "xx"},
        {"limit": 0},
        {"limit": 10_001},
        {"hourly_limit": 0},
        {"hourly_limit": 100_001},
        {"label": "x" * 101},
        {
            "opens_at": timezone.now(),
            "closes_at": timezone.now() - timedelta(hours=1),
        },
    ],
)
def test_a_code_that_makes_no_sense_is_refused(parents, lincoln, fields):
    with pytest.raises(ValidationError):
        open_code(parents, lincoln, **fields)
    assert not OpenCode.objects.exists()


@pytest.mark.parametrize(
    ("fields", "constraint"),
    [
        ({"limit": 0}, "a_limited_code_admits_somebody"),
        ({"hourly_limit": 0}, "a_code_admits_somebody_each_hour"),
        (
            {
                "opens_at": timezone.now(),
                "closes_at": timezone.now() - timedelta(hours=1),
            },
            "an_open_code_ends_after_it_begins",
        ),
        (
            {"published_code": "ABCDEFGHKLMN", "revoked_at": timezone.now()},
            "a_revoked_code_is_not_published",
        ),
    ],
)
def test_the_database_refuses_it_too(code, fields, constraint):
    with (
        pytest.raises(IntegrityError, match=constraint),
        transaction.atomic(),
    ):
        OpenCode.objects.update(**fields)
