"""Administrators add a platform, rotate its API keys and download keys of people."""

from __future__ import annotations

import csv
import io
import re

import pytest
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import IntegrityError, transaction

from accounts.models import AuditEntry
from accounts.tests.logging_in import log_in
from survey.fieldwork.message_platforms.directory import forget_directory
from survey.fieldwork.message_platforms.person_keys import respondent_of
from survey.fieldwork.message_platforms.platforms import (
    create_key,
    create_platform,
    revoke_key,
)
from survey.models import MessagePlatform, MessagePlatformKey
from survey.tests.conftest import enrol
from survey.tests.message_platforms.cast import identify

# Changes reach Redis after the commit.
pytestmark = pytest.mark.django_db(transaction=True)
KEY = re.compile(r"gsmp_[\w-]{43}")


def test_an_administrator_connects_a_platform(client, dana, maya, administration):
    log_in(client, dana)
    added = client.post("/console/platforms/new/", {"name": "Braze"}, follow=True)
    page = added.redirect_chain[-1][0]
    platform = MessagePlatform.objects.get()
    assert platform.district == maya.school.district
    made = client.post(f"{page}keys/").content.decode()
    [key] = set(KEY.findall(made))
    # Shown once, and stored nowhere.
    assert key not in client.get(page).content.decode()
    assert key not in str(list(AuditEntry.objects.values()))
    file = client.get(f"{page}people/{administration.pk}.csv")
    text = b"".join(file.streaming_content).decode("utf-8-sig")
    [row] = csv.DictReader(io.StringIO(text))
    assert respondent_of(bytes(platform.person_secret), row["survey_key"]) == maya.pk
    assert (row["ID"], row["school"]) == (f"S{maya.pk}", "Lincoln")
    forget_directory()
    address = f"/messages/{platform.pk}/{row['survey_key']}.json"
    reply = client.get(address, headers={"Authorization": f"Bearer {key}"})
    assert reply.json()["send"] is True
    actions = set(AuditEntry.objects.values_list("action", flat=True))
    assert actions >= {
        "add message platform",
        "create API key",
        "download keys of people",
    }


def test_two_keys_are_valid_while_one_replaces_the_other(braze, dana, maya):
    platform = braze.platform
    second, text = create_key(platform=platform, by=dana)
    with pytest.raises(ValidationError, match="two valid API keys"):
        create_key(platform=platform, by=dana)
    forget_directory()
    assert braze.ask(maya).status_code == 200
    assert braze.ask(maya, api_key=text).status_code == 200
    first = platform.keys.exclude(pk=second.pk).get()
    revoke_key(key=first, by=dana)
    forget_directory()
    assert braze.ask(maya).status_code == 401
    assert braze.ask(maya, api_key=text).status_code == 200


def test_the_database_admits_two_keys(braze):
    fields = {"platform": braze.platform, "digest": b"x" * 32, "ending": "abcd"}
    for slot in (1, 3):
        with pytest.raises(IntegrityError), transaction.atomic():
            MessagePlatformKey.objects.create(slot=slot, **fields)


def test_a_removed_platform_asks_for_nothing(client, braze, dana, maya):
    log_in(client, dana)
    client.post(f"/console/platforms/{braze.platform.pk}/remove/")
    forget_directory()
    assert braze.ask(maya).status_code == 401
    assert client.get(f"/console/platforms/{braze.platform.pk}/").status_code == 404


def test_a_district_can_not_add_platforms_elsewhere(dana, roosevelt):
    for district in (None, roosevelt.district):
        with pytest.raises(PermissionDenied):
            create_platform(name="Braze", district=district, by=dana)


def test_the_file_has_only_people_of_the_platforms_district(
    client, state, braze, maya, noor, administration
):
    log_in(client, state)
    address = f"/console/platforms/{braze.platform.pk}/people/{administration.pk}.csv"
    text = b"".join(client.get(address).streaming_content).decode()
    assert f"S{maya.pk}" in text
    assert f"S{noor.pk}" not in text


def test_no_cell_of_the_file_is_a_formula(client, dana, braze, administration, lincoln):
    person = enrol(administration, lincoln, grade="09")
    identify(person).identity.__class__.objects.update(external_id="=1+1")
    log_in(client, dana)
    address = f"/console/platforms/{braze.platform.pk}/people/{administration.pk}.csv"
    text = b"".join(client.get(address).streaming_content).decode()
    assert "'=1+1" in text
