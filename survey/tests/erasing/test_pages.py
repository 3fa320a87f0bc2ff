"""Erase a person on the person's page, and the people of a list."""

from __future__ import annotations

import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from accounts.models import AuditEntry
from accounts.tables import tables
from accounts.tests.logging_in import log_in
from survey.models import CardSet, ErasedRecord, Erasure, Identity, PersonFile
from survey.people.erasing.stored import person_fields
from survey.people.erasing.words import COLUMNS, TABLES
from survey.tests.erasing.conftest import erased, run
from survey.tests.erasing.test_erase import fill, in_module
from survey.tests.opt_outs.test_modules import module
from survey.tests.people import invite
from survey.work import jobs

__all__ = ["module"]

pytestmark = pytest.mark.django_db


@pytest.fixture
def asked():
    return {
        "requested_by": "parent",
        "requested_on": timezone.localdate().isoformat(),
        "reason": "request",
    }


def text_of(response) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode()))


def page_of(person) -> str:
    return f"/console/administrations/{person.administration_id}/people/{person.pk}/"


def test_dana_erases_maya(client, staff, maya, asked):
    log_in(client, staff.dana)
    assert f"{page_of(maya)}erase/" in client.get(page_of(maya)).content.decode()
    page = client.get(f"{page_of(maya)}erase/")
    assert "Erase Zaragoza, Maya" in text_of(page) or "Erase Maya" in text_of(page)
    wrong = client.post(f"{page_of(maya)}erase/", {**asked, "confirmed": "00124"})
    assert "This is not the ID of this person." in text_of(wrong)
    assert not Erasure.objects.exists()

    done = client.post(
        f"{page_of(maya)}erase/", {**asked, "confirmed": "00123"}, follow=True
    )
    assert "1 person is erased." in text_of(done)
    run(Erasure.objects.get())
    after = text_of(client.get(done.redirect_chain[-1][0]))
    assert "Names and answers were deleted." in after
    assert "Name and contact data 1" in after
    assert "Zaragoza" not in after and "00123" not in after
    # The person is nowhere any more.
    assert client.get(page_of(maya)).status_code == 404
    people = f"/console/administrations/{maya.administration_id}/people/"
    listed = text_of(client.get(f"{people}?school={staff.lincoln.pk}"))
    assert "Zaragoza" not in listed and f"No name ({maya.pk})" not in listed


@pytest.mark.parametrize("name", ["chen", "sam"])
def test_coordinators_erase_nobody(client, staff, maya, asked, name):
    log_in(client, getattr(staff, name))
    page = client.get(page_of(maya))
    assert f"{page_of(maya)}erase/" not in page.content.decode()
    data = {**asked, "confirmed": "00123"}
    assert client.post(f"{page_of(maya)}erase/", data).status_code == 404
    people = f"/console/administrations/{maya.administration_id}/people/erase/"
    assert client.get(people).status_code == 404
    assert client.post(f"{people}save/", {"checked": "x"}).status_code == 404
    assert not ErasedRecord.objects.exists()


def test_a_list_of_leavers_changes_nothing_before_it_is_confirmed(
    client, staff, administration, asked
):
    for number in range(300):
        invite(administration, staff.lincoln, f"L{number:03}", "Maya Zaragoza")
    stays = invite(administration, staff.lincoln, "S1", "Ali Diaz")
    noor = invite(administration, staff.roosevelt, "L001", "Noor Haddad")
    log_in(client, staff.dana)
    address = f"/console/administrations/{administration.pk}/people/erase/"
    assert "Erase the people of a list" in text_of(client.get(address))
    lines = ["ID", *(f"L{number:03}" for number in range(300)), "L000", "99999", " "]
    upload = SimpleUploadedFile("leavers.csv", "\n".join(lines).encode())
    page = client.post(address, {**asked, "file": upload})
    text = text_of(page)
    assert "300 people would be erased." in text
    assert "1 row names a person of an earlier row." in text
    assert "99999" in text and "is not on the roster of this survey round" in text
    assert Identity.objects.count() == 302 and not Erasure.objects.exists()

    checked = {"checked": page.context["checked"]}
    done = client.post(f"{address}save/", checked, follow=True)
    assert "300 people are erased." in text_of(done)
    run(Erasure.objects.get())
    left = set(Identity.objects.values_list("pk", flat=True))
    assert left == {stays.pk, noor.pk}
    # A second click finds them gone.
    repeated = client.post(f"{address}save/", checked, follow=True)
    assert "Nothing was changed" in text_of(repeated)


def test_another_districts_order_is_not_found(client, staff, maya, asked):
    log_in(client, staff.dana)
    data = {**asked, "confirmed": "00123"}
    client.post(f"{page_of(maya)}erase/", data)
    order = Erasure.objects.get()
    log_in(client, staff.sam)
    assert client.get(f"/console/erasures/{order.pk}/").status_code == 404


def test_dana_gets_what_is_stored_and_ms_chen_does_not(
    client, staff, maya, asked, settings, module
):
    fill(maya, staff.dana)
    in_module(maya, module, "liked the lunch")
    address = f"{page_of(maya)}stored/"
    log_in(client, staff.chen)
    assert client.get(address).status_code == 404
    log_in(client, staff.dana)
    # A page never has an answer.
    assert "mark of Maya" not in client.get(address).content.decode()
    page = client.post(address, asked, follow=True)
    requested = PersonFile.objects.get()
    jobs.run(requested.job_id)
    requested.refresh_from_db()
    assert requested.made_at, requested.job.message
    page = client.get(address)
    link = f"{address}{requested.pk}/"
    assert link in page.content.decode()
    content = b"".join(client.get(link).streaming_content).decode()
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", content))
    for words in TABLES_SHOWN:
        assert words in text, words
    for value in ("00123", "Zaragoza", "maya@zaragoza.org", "mark of Maya"):
        assert value in text, value
    assert "Diaz" not in text
    # Also what she answered on the district's pages, which have no name.
    assert "liked the lunch" in text
    actions = AuditEntry.objects.values_list("action", flat=True)
    assert "ask for a file about a person" in actions
    assert "download a file about a person" in actions
    # Somebody else's file is not found, and none after an erasure.
    log_in(client, staff.state)
    assert client.get(link).status_code == 404
    erased(maya, by=staff.dana)
    requested.refresh_from_db()
    assert requested.file_name == "" and requested.deleted_at


# Of each table that refers to people, but those that a test cannot fill.
TABLES_SHOWN = [
    str(TABLES[model._meta.db_table])
    for model in tables()
    if person_fields(model)
    and model._meta.db_table
    not in (
        "survey_recordjoin",
        "survey_opencodeseat",
        "survey_erasedrecord",
        "survey_countedgroup",
        "survey_cardset",
        "survey_personfile",
        "survey_rostermissing",
        "survey_pairchoice",
    )
]


def test_every_table_and_column_about_a_person_has_words():
    """A column is shown in words, or is a key or digest."""
    silent = {
        "account",
        "address",
        "address_digest",
        "administration",
        "after",
        "before",
        "by",
        "code_digest",
        "code_key_version",
        "cohort",
        "device",
        "digests",
        "district",
        "duplicate",
        "ended_by",
        "erasure",
        "id",
        "id_digests",
        "item_id",
        "job",
        "job_attempt",
        "job_id",
        "kept",
        "merge",
        "open_code",
        "other",
        "provider_id",
        "repeated",
        "respondent",
        "respondent_id",
        "administration_id",
        "revision",
        "rows",
        "step",
        "upload",
        "is_chosen",
    }
    for model in tables():
        if not person_fields(model) or model is PersonFile or model is CardSet:
            continue
        assert model._meta.db_table in TABLES, model
        names = {field.name for field in model._meta.local_concrete_fields}
        assert names - silent <= COLUMNS.keys(), names - silent - COLUMNS.keys()
