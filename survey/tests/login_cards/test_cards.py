"""Login cards and mail merge files, from the order to the deletion."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import re
import stat
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from django.conf import settings
from django.db import IntegrityError, connections, transaction
from django.utils import timezone
from django.utils.text import slugify

from accounts.models import AuditEntry, District, PlaceSettings
from accounts.tests.logging_in import log_in
from settings.tests.patience import patience
from survey.fieldwork.login_cards import card_sets, refusals
from survey.fieldwork.login_cards.card_text import CARD_WORDS
from survey.models import (
    Administration,
    CardSet,
    Identity,
    Job,
    PublishedSurvey,
    Respondent,
)
from survey.people import access_codes, new_codes
from survey.people.access_codes import code_of, format_code
from survey.taking.login import LoginRefused, log_in_respondent
from survey.tasks import delete_old_cards
from survey.tests.card_readers import read_pages
from survey.tests.people import invite
from survey.work import files, job_turns, jobs, requested_files
from survey.work.files import path_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def administration(administration):
    """Codes are printed next to names only where completion is shown."""
    administration.coordinators_see_finished = True
    administration.save()
    return administration


@pytest.fixture
def maya(administration, staff) -> Respondent:
    return invite(
        administration,
        staff.lincoln,
        "40313",
        "Maya López",
        grade="07",
        classroom="7B",
        language="es",
    )


@pytest.fixture
def layla(administration, staff) -> Respondent:
    return invite(
        administration,
        staff.lincoln,
        "40314",
        "ليلى الخطيب",
        "layla@example.org",
        grade="10",
        classroom="10A",
        language="ar",
    )


@pytest.fixture
def noor(administration, staff) -> Respondent:
    return invite(administration, staff.roosevelt, "77", "Noor Hassan")


@pytest.fixture
def order(client, administration, django_capture_on_commit_callbacks):
    """Order cards on the page and run the job."""

    def order(school, **options):
        address = f"/console/administrations/{administration.pk}/cards/"
        options = {"format": "pdf", **options}
        with django_capture_on_commit_callbacks(execute=True):
            response = client.post(
                f"{address}?school={school.pk}", options, follow=True
            )
        assert response.status_code == 200, response.content
        card_set = CardSet.objects.latest("pk")
        assert f"/cards/{card_set.pk}/" in response.request["PATH_INFO"]
        return card_set

    return order


def url_of(card_set, action=""):
    return (
        f"/console/administrations/{card_set.administration_id}"
        f"/cards/{card_set.pk}/{action}"
    )


def url_of_cards(administration, school):
    return f"/console/administrations/{administration.pk}/cards/?school={school.pk}"


def download(client, card_set) -> bytes:
    response = client.get(url_of(card_set, "file/"))
    assert response.status_code == 200
    assert "no-store" in response["Cache-Control"]
    return b"".join(response.streaming_content)


def csv_rows(content: bytes):
    return list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline="")))


def text_of(response) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode()))


def test_cards_have_a_page_per_class_and_valid_codes(
    client, staff, order, maya, layla, noor
):
    log_in(client, staff.chen)
    pages = read_pages(download(client, order(staff.lincoln)))

    # 10A comes after 7B.
    assert [("7B" in page.text, "10A" in page.text) for page in pages] == [
        (True, False),
        (False, True),
    ]
    for page, person in zip(pages, (maya, layla), strict=True):
        code = format_code(code_of(person))
        assert page.links == [f"https://survey.example.org/#{code}"]
        assert code in page.text
        assert "survey.example.org" in page.text
        assert (
            log_in_respondent(page.links[0].partition("#")[2]).respondent_id
            == person.pk
        )
    assert "Maya López" in pages[0].text
    assert "Escribir este código" in pages[0].text
    assert "اكتب" in pages[1].text
    # No other personal data.
    everything = "".join(page.text for page in pages)
    for hidden in ("40313", "layla@", "Hassan", "2010"):
        assert hidden not in everything


def test_cards_give_the_days_of_the_districts_clocks(
    client, staff, administration, order, maya, noor
):
    District.objects.filter(pk=staff.riverside.pk).update(time_zone="America/Denver")
    # Half past midnight in Chicago; in Denver it is the day before.
    closes_at = datetime(2037, 3, 3, 6, 30, tzinfo=UTC)
    Administration.objects.update(closes_at=closes_at)
    log_in(client, staff.state)
    for school, day in ((staff.lincoln, "2"), (staff.roosevelt, "3")):
        [page] = read_pages(download(client, order(school, language="en")))
        assert f"to March {day}, 2037." in page.text, school


def test_large_classes_fill_several_pages(client, staff, administration, order):
    people = [
        invite(administration, staff.lincoln, str(n), f"Ann Smith{n}", classroom="7B")
        for n in range(19)
    ]
    log_in(client, staff.chen)
    pages = read_pages(download(client, order(staff.lincoln, classroom="7B")))
    assert [len(page.links) for page in pages] == [8, 8, 3]
    keys = [
        log_in_respondent(link.partition("#")[2]).respondent_id
        for page in pages
        for link in page.links
    ]
    assert sorted(keys) == [person.pk for person in people]


def test_cards_of_a_single_class_or_grade(client, staff, order, maya, layla):
    log_in(client, staff.chen)
    [page] = read_pages(download(client, order(staff.lincoln, classroom="7B")))
    assert page.links == [f"https://survey.example.org/#{format_code(code_of(maya))}"]
    [page] = read_pages(download(client, order(staff.lincoln, grade="10")))
    assert format_code(code_of(layla)) in page.text


def test_a_class_of_another_grade_is_refused(
    client, staff, administration, maya, layla
):
    log_in(client, staff.chen)
    response = client.post(
        f"/console/administrations/{administration.pk}/cards/",
        {"format": "pdf", "grade": "07", "classroom": "10A"},
    )
    assert "No one in grade 7 is in class 10A" in text_of(response)
    assert not CardSet.objects.exists()


def test_second_language_of_the_cards(client, staff, order, maya):
    log_in(client, staff.chen)
    [page] = read_pages(download(client, order(staff.lincoln, language="ar")))
    assert "Escribir" not in page.text
    assert "اكتب" in page.text
    [page] = read_pages(download(client, order(staff.lincoln, language="en")))
    assert "Type your code" in page.text
    assert "Escribir" not in page.text


@pytest.mark.parametrize(
    ("codes", "offered"),
    [(["en", "es"], ["", "es", "en"]), (["es", "so"], None), (["so"], None)],
)
def test_cards_are_offered_in_languages_of_the_survey(
    client, staff, administration, order, layla, codes, offered
):
    published = administration.published
    definition = json.loads(published.definition)
    definition["languages"] = [
        {"code": code, "name": code, "direction": "ltr"} for code in codes
    ]
    text = json.dumps(definition)
    digest = hashlib.sha256(text.encode()).hexdigest()
    administration.published = PublishedSurvey.objects.create(
        digest=digest, survey=published.survey, definition=text
    )
    administration.save()
    log_in(client, staff.chen)
    form = client.get(url_of_cards(administration, staff.lincoln)).context["form"]
    field = form.fields.get("language")
    assert (field and [value for value, _ in field.choices]) == offered
    # Layla's own language is Arabic, which the survey is not in.
    [page] = read_pages(download(client, order(staff.lincoln)))
    assert "اكتب" not in page.text
    assert CARD_WORDS["es" if codes[0] == "es" else "en"].code in page.text


def test_ids_are_printed_only_when_chosen(client, staff, order, maya):
    log_in(client, staff.chen)
    [page] = read_pages(download(client, order(staff.lincoln)))
    assert "40313" not in page.text
    [page] = read_pages(download(client, order(staff.lincoln, shown="id")))
    assert "40313" in page.text


def test_cards_show_whose_survey_it_is(client, staff, order, maya):
    log_in(client, staff.chen)
    district = staff.lincoln.district
    PlaceSettings.objects.create(name="Ohio", accent="#7a1f5c")
    [page] = read_pages(download(client, order(staff.lincoln)))
    assert "Ohio" in page.text
    PlaceSettings.objects.create(district=district, name="Riverside Schools")
    [page] = read_pages(download(client, order(staff.lincoln)))
    assert "Riverside Schools" in page.text and "Ohio" not in page.text


def test_long_and_unusual_names_leave_the_code_readable(
    client, staff, administration, order
):
    names = [
        "W" * 90 + " " + "M" * 90,
        "Zoë Nguyễn",
        "Иван Петров",
        "名 字",
        "fi fl",
        "",
    ]
    for n, name in enumerate(names):
        invite(administration, staff.lincoln, str(n), name, classroom="9")
    log_in(client, staff.chen)
    [page] = read_pages(download(client, order(staff.lincoln)))
    assert len(page.links) == len(names)
    assert "Zoë Nguyễn" in page.text and "Иван Петров" in page.text
    for link in page.links:
        assert link.partition("#")[2] in page.text


def test_cards_for_people_without_identity_but_not_for_withdrawn_ones(
    client, staff, order, maya, layla
):
    Identity.objects.filter(respondent=maya).delete()
    Respondent.objects.filter(pk=layla.pk).update(withdrawn_at=timezone.now())
    log_in(client, staff.chen)
    [page] = read_pages(download(client, order(staff.lincoln)))
    assert "López" not in page.text
    assert page.links == [f"https://survey.example.org/#{format_code(code_of(maya))}"]
    [line] = csv_rows(download(client, order(staff.lincoln, format="csv")))
    assert line["code"] == format_code(code_of(maya))


def finish(person):
    now = timezone.now()
    Respondent.objects.filter(pk=person.pk).update(started_at=now, completed_at=now)


def test_cards_and_lists_can_leave_out_people_who_have_finished(
    client, staff, order, maya, layla
):
    finish(maya)
    log_in(client, staff.chen)
    card_set = order(staff.lincoln, unfinished="on")
    [page] = read_pages(download(client, card_set))
    assert page.links == [f"https://survey.example.org/#{format_code(code_of(layla))}"]
    assert "people who have not finished" in text_of(client.get(url_of(card_set)))
    [line] = csv_rows(
        download(client, order(staff.lincoln, format="csv", unfinished="on"))
    )
    assert line["code"] == format_code(code_of(layla))
    # As before, without the tick.
    assert len(csv_rows(download(client, order(staff.lincoln, format="csv")))) == 2
    finish(layla)
    empty = order(staff.lincoln, unfinished="on")
    assert "has finished" in text_of(client.get(url_of(empty)))


def test_a_districts_list_can_leave_them_out(
    client, staff, administration, maya, layla, django_capture_on_commit_callbacks
):
    finish(maya)
    log_in(client, staff.dana)
    address = f"/console/administrations/{administration.pk}/cards/"
    with django_capture_on_commit_callbacks(execute=True):
        client.post(address, {"format": "csv", "unfinished": "on"})
    [line] = csv_rows(download(client, CardSet.objects.get()))
    assert line["ID"] == "40314"


def test_the_number_of_cards_does_not_tell_who_has_finished(
    client, staff, administration, order, maya, layla
):
    log_in(client, staff.chen)
    made = order(staff.lincoln, format="csv", unfinished="on")
    administration.coordinators_see_finished = False
    administration.save()
    address = f"/console/administrations/{administration.pk}/cards/"
    page = client.get(f"{address}?school={staff.lincoln.pk}").content.decode()
    assert "have not finished" not in page.partition("Previous cards")[0]
    # Neither does one that was made before, nor a tick that is sent all the same.
    made.refresh_from_db()
    assert made.is_withheld
    made.format = "email"
    assert made.is_withheld
    finish(maya)
    assert not order(staff.lincoln, format="email", unfinished="on").unfinished


def test_lists_for_mail_merge_have_names_codes_and_links(
    client, staff, order, maya, layla, noor
):
    Identity.objects.filter(respondent=maya).update(given_name="=HYPERLINK(1)")
    log_in(client, staff.chen)
    content = download(client, order(staff.lincoln, format="excel"))
    assert content.startswith(b"\xef\xbb\xbf")
    first, second = csv_rows(content)
    assert first["given name"] == "'=HYPERLINK(1)"
    assert second == {
        "school": "Lincoln",
        "grade": "10",
        "class": "10A",
        "ID": "40314",
        "given name": "ليلى",
        "family name": "الخطيب",
        "e-mail": "layla@example.org",
        "language": "ar",
        "code": format_code(code_of(layla)),
        "link": f"https://survey.example.org/#{format_code(code_of(layla))}",
    }
    plain = download(client, order(staff.lincoln, format="csv"))
    assert not plain.startswith(b"\xef\xbb\xbf")


def test_a_districts_list_is_private_to_the_district(
    client, staff, administration, maya, noor, django_capture_on_commit_callbacks
):
    everybody = f"/console/administrations/{administration.pk}/cards/"
    log_in(client, staff.dana)
    with django_capture_on_commit_callbacks(execute=True):
        client.post(everybody, {"format": "csv"})
    of_district = CardSet.objects.get()
    assert [row["ID"] for row in csv_rows(download(client, of_district))] == ["40313"]
    log_in(client, staff.state)
    with django_capture_on_commit_callbacks(execute=True):
        client.post(everybody, {"format": "csv", "district": "state"})
    of_state = CardSet.objects.latest("pk")
    assert len(csv_rows(download(client, of_state))) == 2

    log_in(client, staff.dana)
    assert client.get(url_of(of_state)).status_code == 404
    # A coordinator of one school sees neither.
    log_in(client, staff.chen)
    for card_set in (of_district, of_state):
        assert client.get(url_of(card_set)).status_code == 404
        assert client.get(url_of(card_set, "file/")).status_code == 404


def test_a_lost_card_is_printed_again(
    client, staff, administration, maya, layla, django_capture_on_commit_callbacks
):
    log_in(client, staff.chen)
    before = code_of(maya)
    with django_capture_on_commit_callbacks(execute=True):
        client.post(
            f"/console/administrations/{administration.pk}/people/{maya.pk}/card/"
        )
    card_set = CardSet.objects.get()
    [page] = read_pages(download(client, card_set))
    assert page.links == [f"https://survey.example.org/#{format_code(before)}"]
    # Two cards are told apart by the name on the page; files have only the ID.
    assert "López, Maya" in text_of(client.get(url_of(card_set)))
    sent = client.get(url_of(card_set, "file/"))
    assert b"".join(sent.streaming_content)
    name = f"lincoln-{slugify(maya.identity.external_id)}-{card_set.pk}.pdf"
    assert name in sent["Content-Disposition"]
    # Another school, whose people the user may not see.
    Respondent.objects.filter(pk=maya.pk).update(school=staff.roosevelt)
    assert "López" not in text_of(client.get(url_of(card_set)))
    # The audit log shows no name.
    assert str(card_set) == "Login cards to print (PDF): 1 person of Lincoln"


def test_cards_of_other_places_are_not_found(client, staff, order, maya):
    log_in(client, staff.chen)
    card_set = order(staff.lincoln)
    asked = AuditEntry.objects.count()
    for user in (staff.sam, staff.analyst):
        log_in(client, user)
        assert client.get(url_of(card_set)).status_code == 404
        assert client.get(url_of(card_set, "file/")).status_code == 404
        assert client.post(url_of(card_set, "again/")).status_code == 404
        of_school = url_of(card_set).rsplit("/", 2)[0] + f"/?school={staff.lincoln.pk}"
        assert client.get(of_school).status_code == 404
        assert client.post(of_school, {"format": "pdf"}).status_code == 404
    assert AuditEntry.objects.count() == asked


def test_a_card_set_is_found_only_under_its_administration(
    client, staff, order, maya, administration
):
    log_in(client, staff.chen)
    card_set = order(staff.lincoln, format="csv")
    wrong = url_of(card_set).replace(
        f"/{administration.pk}/cards", f"/{administration.pk + 1}/cards"
    )
    assert client.get(wrong).status_code == 404


def test_orders_and_downloads_are_audited(client, staff, order, maya):
    log_in(client, staff.chen)
    card_set = order(staff.lincoln)
    download(client, card_set)
    asked, got = AuditEntry.objects.order_by("id")
    assert (asked.action, got.action) == ("ask for cards", "download cards")
    assert got.subject == "Login cards to print (PDF): Lincoln"
    assert got.school_id == staff.lincoln.pk
    assert got.after["people"] == 1
    written = str(list(AuditEntry.objects.values()))
    assert "López" not in written
    assert format_code(code_of(maya)) not in written


def test_the_file_is_readable_only_by_its_owner(client, staff, order, maya):
    log_in(client, staff.chen)
    card_set = order(staff.lincoln, format="csv")
    assert stat.S_IMODE(path_of(card_set.file_name).stat().st_mode) == 0o600
    assert [path.name for path in path_of(card_set.file_name).parent.glob(".*")] == []


def test_files_are_deleted_after_seven_days(client, staff, order, maya):
    log_in(client, staff.chen)
    old, young = (order(staff.lincoln, format="csv") for _ in range(2))
    past = timezone.now() - timedelta(days=7, minutes=1)
    CardSet.objects.filter(pk=old.pk).update(created_at=past)

    delete_old_cards()

    assert not path_of(old.file_name).exists()
    assert path_of(young.file_name).exists()
    assert "was deleted" in text_of(client.get(url_of(old)))
    response = client.get(url_of(old, "file/"), follow=True)
    assert "no longer exists" in text_of(response)


def test_orphaned_files_are_deleted(client, staff, order, maya):
    log_in(client, staff.chen)
    deleted, there = (order(staff.lincoln, format="csv") for _ in range(2))
    requested_files.delete_file(deleted, by="a test")
    path_of(deleted.file_name).write_text("codes")
    # The folder of a worker that was killed while writing.
    left = path_of("cards/.1-left/codes")
    left.write_text("codes")
    long_ago = time.time() - files.ORPHANED_AFTER - 60
    for path in (path_of(deleted.file_name), path_of(there.file_name), left.parent):
        os.utime(path, (long_ago, long_ago))
    delete_old_cards()
    assert not path_of(deleted.file_name).exists()
    assert not left.parent.exists()
    assert path_of(there.file_name).exists()


def test_the_schedule_deletes_old_cards(client):
    tasks = [entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values()]
    assert "survey.tasks.delete_old_cards" in tasks


def test_an_order_without_people_fails_with_a_message(client, staff, order):
    log_in(client, staff.chen)
    card_set = order(staff.lincoln)
    assert "No one is invited here" in text_of(client.get(url_of(card_set)))
    assert not card_set.made_at


def test_too_many_cards_for_one_file_are_refused(
    client, staff, order, maya, layla, monkeypatch
):
    monkeypatch.setattr(refusals, "MAX_CARDS", 1)
    log_in(client, staff.chen)
    card_set = order(staff.lincoln)
    assert "class by class" in text_of(client.get(url_of(card_set)))
    # Lists have no limit.
    assert len(csv_rows(download(client, order(staff.lincoln, format="csv")))) == 2


def test_a_user_with_many_unfinished_orders_is_asked_to_wait(
    client, staff, administration, maya, layla, monkeypatch
):
    monkeypatch.setattr(job_turns, "MOST_UNFINISHED", 0)
    log_in(client, staff.chen)
    address = f"/console/administrations/{administration.pk}"
    for path in ("/cards/", f"/people/{maya.pk}/card/"):
        page = client.post(f"{address}{path}", {"format": "pdf"}, follow=True)
        assert "not done yet" in page.content.decode(), path
    # A code that could not be sent is not replaced.
    administration.coordinators_see_finished = False
    administration.save()
    page = client.post(f"{address}/people/{layla.pk}/reissue/", follow=True)
    assert "not done yet" in page.content.decode()
    layla.refresh_from_db()
    assert layla.issue == 1
    assert not CardSet.objects.exists()


def test_a_failed_order_can_be_tried_again(
    client, staff, order, maya, monkeypatch, django_capture_on_commit_callbacks
):
    def broken(*args):
        raise RuntimeError

    log_in(client, staff.chen)
    with monkeypatch.context() as patch:
        patch.setattr(card_sets, "write_pdf", broken)
        card_set = order(staff.lincoln)
    assert "Something went wrong" in text_of(client.get(url_of(card_set)))
    assert client.get(url_of(card_set, "file/")).status_code == 302
    with django_capture_on_commit_callbacks(execute=True):
        client.post(url_of(card_set, "again/"))
    assert len(read_pages(download(client, card_set))) == 1


@pytest.mark.parametrize("number", [1, 3])
def test_listing_three_sets_takes_as_many_statements_as_one(
    client, staff, administration, order, maya, django_assert_num_queries, number
):
    log_in(client, staff.chen)
    for _ in range(number):
        order(staff.lincoln, format="csv")
    page = f"/console/administrations/{administration.pk}/cards/"
    # Session, user, memberships, administration, school, its classes, the survey's
    # languages, the number of sets, the sets.
    with django_assert_num_queries(10):
        response = client.get(page)
    assert text_of(response).count("ready") == number


def test_the_database_requires_a_school_for_cards(staff, administration):
    with pytest.raises(IntegrityError), transaction.atomic():
        CardSet.objects.create(administration=administration, by=staff.chen)


# New codes for many ---------------------------------------------------------


@pytest.fixture
def reissue(client, administration, django_capture_on_commit_callbacks):
    def reissue(school, typed="Lincoln", **asked):
        query = "&".join(f"{key}={value}" for key, value in asked.items())
        with django_capture_on_commit_callbacks(execute=True):
            return client.post(
                f"/console/administrations/{administration.pk}/cards/reissue/"
                f"?school={school.pk}&{query}",
                {"typed": typed},
                follow=True,
            )

    return reissue


def test_new_codes_and_cards_for_a_whole_school(
    client, staff, order, reissue, maya, layla, noor
):
    log_in(client, staff.chen)
    old_cards, old_codes = order(staff.lincoln), [code_of(maya), code_of(layla)]
    reissue(staff.lincoln)

    new_cards = CardSet.objects.latest("pk")
    pages = read_pages(download(client, new_cards))
    people = [
        log_in_respondent(link.partition("#")[2]).respondent_id
        for page in pages
        for link in page.links
    ]
    assert people == [maya.pk, layla.pk]
    for code in old_codes:
        with pytest.raises(LoginRefused, match="code_wrong"):
            log_in_respondent(code)
    assert log_in_respondent(code_of(noor)).respondent_id == noor.pk
    assert "no longer work" in text_of(client.get(url_of(old_cards)))
    assert "no longer work" not in text_of(client.get(url_of(new_cards)))
    entry = AuditEntry.objects.get(action="reissue access codes")
    assert (entry.by, entry.school_id, entry.after["people"]) == (
        "chen@example.org",
        staff.lincoln.pk,
        2,
    )


def test_new_codes_for_a_single_class(client, staff, reissue, maya, layla):
    log_in(client, staff.chen)
    reissue(staff.lincoln, classroom="7B")
    maya.refresh_from_db()
    layla.refresh_from_db()
    assert (maya.issue, layla.issue) == (2, 1)


def test_new_codes_require_typing_the_schools_name(client, staff, reissue, maya):
    log_in(client, staff.chen)
    for typed in ("", "yes", "Roosevelt", "\x00"):
        page = reissue(staff.lincoln, typed=typed)
        assert page.status_code == 200
    assert "This is not Lincoln" in text_of(reissue(staff.lincoln, typed="Linkoln"))
    maya.refresh_from_db()
    assert maya.issue == 1
    reissue(staff.lincoln, typed="  lincoln ")
    maya.refresh_from_db()
    assert maya.issue == 2


def test_the_reissue_page_explains_the_effects(
    client, staff, administration, maya, layla
):
    Respondent.objects.filter(pk=maya.pk).update(started_at=timezone.now())
    log_in(client, staff.chen)
    page = (
        f"/console/administrations/{administration.pk}/cards/reissue/"
        f"?school={staff.lincoln.pk}"
    )
    assert "1 person has started" in text_of(client.get(page))
    administration.coordinators_see_finished = False
    administration.save()
    text = text_of(client.get(page))
    assert "current cards of 2 people stop working" in text
    assert "Saved answers are kept" in text
    assert "started" not in text
    # PostgreSQL refuses a null character in a text.
    assert client.get(f"{page}&grade=a%00b&classroom=%00").status_code == 200


def test_other_schools_cannot_be_reissued(client, staff, reissue, maya, noor):
    log_in(client, staff.sam)
    assert reissue(staff.lincoln).status_code == 404
    log_in(client, staff.analyst)
    assert reissue(staff.lincoln).status_code == 404
    maya.refresh_from_db()
    assert maya.issue == 1


def test_a_new_code_marks_only_the_sets_with_the_old_one(
    staff, administration, maya, noor
):
    def ordered(**place):
        return card_sets.order_cards(
            administration=administration, by=staff.state, format="csv", **place
        )

    district, school = staff.lincoln.district, staff.lincoln
    holding = {ordered().pk, ordered(district=district).pk, ordered(school=school).pk}
    ordered(district=staff.roosevelt.district)
    ordered(school=staff.roosevelt)

    card_sets.mark_sets_of_person_outdated(maya)

    outdated = CardSet.objects.exclude(outdated_at=None)
    assert set(outdated.values_list("pk", flat=True)) == holding


def test_a_repeated_job_issues_codes_once(
    client, staff, reissue, maya, layla, monkeypatch
):
    """The worker dies after issuing the codes and before making the cards."""
    log_in(client, staff.chen)
    with monkeypatch.context() as patch:

        def killed(*args):
            raise KeyboardInterrupt

        patch.setattr(card_sets, "write_pdf", killed)
        with pytest.raises(KeyboardInterrupt):
            reissue(staff.lincoln)
    maya.refresh_from_db()
    assert maya.issue == 2
    job = Job.objects.get()
    assert job.state == Job.State.RUNNING
    long_ago = timezone.now() - timedelta(minutes=5)
    Job.objects.update(heartbeat_at=long_ago)

    jobs.run(job.pk)

    maya.refresh_from_db()
    assert maya.issue == 2
    pages = read_pages(download(client, CardSet.objects.get()))
    assert pages[0].links == [
        f"https://survey.example.org/#{format_code(code_of(maya))}"
    ]
    assert AuditEntry.objects.filter(action="reissue access codes").count() == 1


def test_without_the_mark_codes_would_be_issued_twice(
    staff, administration, maya, layla
):
    """The twin: without `reissued_at`, a repeated job issues codes again."""
    card_set = card_sets.order_cards(
        administration=administration, by=staff.chen, school=staff.lincoln, reissue=True
    )
    card_sets.reissue_once(card_set)
    card_sets.reissue_once(card_set)
    maya.refresh_from_db()
    assert maya.issue == 2
    CardSet.objects.update(reissued_at=None)
    card_sets.reissue_once(card_set)
    maya.refresh_from_db()
    assert maya.issue == 3


def test_a_worker_killed_while_issuing_codes_changes_none(
    staff, administration, maya, layla, monkeypatch
):
    card_set = card_sets.order_cards(
        administration=administration, by=staff.chen, school=staff.lincoln, reissue=True
    )
    monkeypatch.setattr(new_codes, "REISSUE_BATCH", 1)
    replace, calls = new_codes._replace, []

    def killed_at_the_second(rows, version):
        calls.append(rows)
        if len(calls) == 2:
            raise KeyboardInterrupt
        replace(rows, version)

    monkeypatch.setattr(new_codes, "_replace", killed_at_the_second)
    with pytest.raises(KeyboardInterrupt):
        card_sets.reissue_once(card_set)
    card_set.refresh_from_db()
    maya.refresh_from_db()
    assert (card_set.reissued_at, maya.issue) == (None, 1)
    assert log_in_respondent(code_of(maya)).respondent_id == maya.pk


@pytest.mark.sqlite
def test_a_code_that_belongs_to_another_person_is_skipped(
    administration, staff, maya, layla, monkeypatch
):
    code_for = access_codes.code_for

    def unlucky(respondent_id, issue, version=None):
        if (respondent_id, issue) == (maya.pk, 2):
            return code_for(layla.pk, 2, version)
        return code_for(respondent_id, issue, version)

    monkeypatch.setattr(access_codes, "code_for", unlucky)
    assert new_codes.reissue_all(administration.respondents.all()) == 2
    maya.refresh_from_db()
    layla.refresh_from_db()
    assert sorted((maya.issue, layla.issue)) == [2, 3]
    for person in (maya, layla):
        person.refresh_from_db()
        assert log_in_respondent(code_of(person)).respondent_id == person.pk


def test_new_codes_use_the_newest_key(administration, maya):
    Respondent.objects.filter(pk=maya.pk).update(code_key_version=1)
    new_codes.reissue_all(administration.respondents.all())
    maya.refresh_from_db()
    assert maya.code_key_version == 2
    assert log_in_respondent(code_of(maya)).respondent_id == maya.pk


@pytest.mark.django_db(transaction=True)
def test_two_simultaneous_workers_issue_codes_once(staff, administration, maya, layla):
    card_set = card_sets.order_cards(
        administration=administration, by=staff.chen, school=staff.lincoln, reissue=True
    )
    # In tests the job runs at once and issued the first codes.
    CardSet.objects.update(reissued_at=None)
    together = threading.Barrier(2)

    def work(_) -> int:
        try:
            together.wait(patience(10))
            return card_sets.reissue_once(card_set)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(2) as workers:
        assert sorted(workers.map(work, range(2))) == [0, 2]
    maya.refresh_from_db()
    assert maya.issue == 3


def test_null_characters_in_a_group_are_ignored(client, staff, administration):
    log_in(client, staff.chen)
    address = f"/console/administrations/{administration.pk}/cards/reissue/"
    assert client.get(address, {"grade": "a\x00b"}).status_code == 200
