"""GET /messages/<platform>/<person>.json, as platforms see it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.conf import settings
from django.utils import timezone

from survey.fieldwork.emails.suppression import digest_of, suppress
from survey.fieldwork.message_platforms.directory import forget_directory, write_windows
from survey.fieldwork.message_platforms.person_keys import person_key, respondent_of
from survey.fieldwork.message_platforms.store import ALIAS, message_store
from survey.models import Administration, SuppressedAddress
from survey.tests.message_platforms.cast import (
    counting_commands,
    needs_servers,
    write_hashes,
)

pytestmark = pytest.mark.django_db


@pytest.mark.sqlite
def test_a_platform_learns_what_to_write_to_a_person(braze, maya):
    reply = braze.ask(maya)
    assert reply.status_code == 200
    assert reply.json() == {
        "send": True,
        "language": "es",
        "days_left": 30,
        "school": "Lincoln",
        "link": "https://survey.example.org/",
    }
    assert reply["Cache-Control"] == "no-store"
    assert reply["Content-Type"] == "application/json"


@pytest.mark.sqlite
def test_people_without_a_language_get_the_first_one_of_the_survey(braze, maya):
    maya.language = ""
    maya.save(update_fields=["language"])
    assert braze.ask(maya).json()["language"] == "en"


@pytest.mark.sqlite
@pytest.mark.parametrize("is_written", [True, False])
def test_nothing_is_sent_to_people_who_were_withdrawn(braze, maya, is_written):
    maya.withdrawn_at = timezone.now()
    maya.save(update_fields=["withdrawn_at"])
    if is_written and ALIAS in settings.CACHES:
        write_hashes(maya)
    assert braze.ask(maya).json()["send"] is False


@pytest.mark.sqlite
@pytest.mark.parametrize("is_written", [True, False])
@pytest.mark.parametrize(
    "reason, sends",
    [("opted out", False), ("complained", False), ("bounced", True)],
)
def test_nothing_is_sent_to_people_who_opted_out(
    braze, maya, reason, sends, is_written
):
    suppress(digest_of(maya.identity.email), SuppressedAddress.Reason(reason))
    if is_written and ALIAS in settings.CACHES:
        write_hashes(maya)
    assert braze.ask(maya).json()["send"] is sends


@pytest.mark.sqlite
@pytest.mark.parametrize(
    "opens, closes, days_left", [(-9, -1, 0), (2, 9, 9), (-1, 0.5, 1)]
)
def test_nothing_is_sent_outside_the_window(braze, maya, opens, closes, days_left):
    now = timezone.now()
    Administration.objects.update(
        opens_at=now + timedelta(days=opens), closes_at=now + timedelta(days=closes)
    )
    reply = braze.ask(maya).json()
    assert reply["send"] is (opens < 0 < closes)
    assert reply["days_left"] == days_left


@pytest.mark.sqlite
def test_a_name_is_there_only_if_the_administration_allows_it(braze, maya):
    assert "Maya" not in braze.ask(maya).content.decode()
    Administration.objects.update(messages_have_names=True)
    forget_directory()
    if ALIAS in settings.CACHES:
        message_store().command("FLUSHDB")
    assert braze.ask(maya).json()["name"] == "Maya"


def test_the_same_refusal_for_each_wrong_key(braze, lakeshore, maya):
    replies = [
        braze.ask(maya, api_key="wrong"),
        braze.ask(maya, api_key=lakeshore.api_key),
        braze.ask("/messages/999999/AAAAAAAAAAAAAAAAAAAAAA.json"),
        braze.ask(braze.address_of(maya).replace(".json", "x.json"), api_key=""),
        braze.get(braze.address_of(maya)),
    ]
    assert {reply.status_code for reply in replies} == {401}
    assert len({reply.content for reply in replies}) == 1


@pytest.mark.parametrize("scheme", ["bearer", "BEARER", "Bearer"])
def test_the_name_of_the_scheme_has_no_case(braze, maya, scheme):
    headers = {"Authorization": f"{scheme} {braze.api_key}"}
    assert braze.get(braze.address_of(maya), headers=headers).status_code == 200
    headers = {"Authorization": f"{scheme}{braze.api_key}"}
    assert braze.get(braze.address_of(maya), headers=headers).status_code == 401


@pytest.mark.sqlite
def test_the_same_refusal_for_each_person_that_a_platform_does_not_have(
    braze, lakeshore, maya, noor
):
    of_braze = bytes(braze.platform.person_secret)
    replies = [
        # Somebody whose key is right, in another district.
        braze.ask(noor),
        # Maya, as another platform knows her.
        braze.ask(
            lakeshore.address_of(maya).replace(
                f"/{lakeshore.platform.pk}/", f"/{braze.platform.pk}/"
            )
        ),
        braze.ask(f"/messages/{braze.platform.pk}/AAAAAAAAAAAAAAAAAAAAAA.json"),
        braze.ask(f"/messages/{braze.platform.pk}/{person_key(of_braze, 10**12)}.json"),
    ]
    assert {reply.status_code for reply in replies} == {404}
    assert len({reply.content for reply in replies}) == 1
    assert braze.ask(maya).status_code == 200
    assert lakeshore.ask(noor).status_code == 200


@pytest.mark.sqlite
def test_a_person_who_moved_away_is_unknown(braze, maya, roosevelt):
    assert braze.ask(maya).status_code == 200
    maya.school = roosevelt
    maya.save(update_fields=["school"])
    if ALIAS in settings.CACHES:
        # The state's hash, so that it is not simply missing.
        message_store().command("HSET", f"r:{maya.pk}", "d", roosevelt.district_id)
    assert braze.ask(maya).status_code == 404


def test_two_platforms_can_not_link_people(braze, lakeshore, maya):
    secret, foreign = (
        bytes(client.platform.person_secret) for client in (braze, lakeshore)
    )
    assert person_key(secret, maya.pk) != person_key(foreign, maya.pk)
    assert respondent_of(secret, person_key(secret, maya.pk)) == maya.pk
    assert respondent_of(foreign, person_key(secret, maya.pk)) is None


def test_a_key_has_one_spelling(braze):
    secret = bytes(braze.platform.person_secret)
    key = person_key(secret, 4711)
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    readable = [
        symbol for symbol in alphabet if respondent_of(secret, key[:-1] + symbol)
    ]
    assert readable == [key[-1]]


@pytest.mark.parametrize("query", ["?api_key=", "?key=", "?"])
def test_a_key_in_the_address_is_refused(braze, maya, query, caplog):
    address = f"{braze.address_of(maya)}{query}{braze.api_key}"
    reply = braze.ask(address)
    assert reply.status_code == 400
    assert "Authorization" in reply.json()["message"]
    assert braze.api_key not in reply.content.decode()
    assert braze.api_key not in caplog.text


def test_only_reads_are_answered(braze, maya):
    for method in ("post", "put", "delete", "patch"):
        assert getattr(braze, method)(braze.address_of(maya)).status_code == 405


@pytest.mark.parametrize(
    "person", ["x" * 5000, "%00", "..%2f..", "é", "A" * 21, "A" * 23, "-" * 22]
)
def test_bad_addresses_are_not_errors(braze, person):
    reply = braze.ask(f"/messages/{braze.platform.pk}/{person}.json")
    assert reply.status_code == 404


@needs_servers
def test_a_request_costs_one_command_and_no_statement(
    braze, maya, django_assert_num_queries
):
    write_hashes(maya)
    write_windows(message_store())
    assert braze.ask(maya).status_code == 200
    with django_assert_num_queries(0), counting_commands() as commands:
        assert braze.ask(maya).json()["send"] is True
    assert [command[0] for command in commands] == ["HGETALL"]


@needs_servers
def test_a_key_that_was_not_handed_out_costs_nothing(braze, django_assert_num_queries):
    address = f"/messages/{braze.platform.pk}/AAAAAAAAAAAAAAAAAAAAAA.json"
    braze.ask(address)
    with django_assert_num_queries(0), counting_commands() as commands:
        for _ in range(20):
            braze.ask(address)
    assert not commands
