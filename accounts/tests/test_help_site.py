"""The help site: who may read it, and that nothing else is served."""

from __future__ import annotations

import pytest
from django.conf import settings as configured
from django.db import IntegrityError
from django.test import Client
from django.utils import translation

from accounts.console import help_site
from accounts.console.help_topics import TOPICS, topic_of
from accounts.models import PlaceSettings
from accounts.place_settings import help_is_public
from accounts.tests.logging_in import log_in
from settings.tests.matrix.routes import routes

pytestmark = pytest.mark.django_db

PAGE = "/help/en/coordinators/"
# Each would leave the folder, if paths were joined instead of looked up.
ATTACKS = ("../secret.txt", "en/../../secret.txt", "en/./../../secret.txt")


@pytest.fixture
def site(settings, tmp_path):
    """A small site in two languages, beside a file that is not of it."""
    folder = tmp_path / "site"
    for name, content in {
        "en/index.html": "Start",
        "en/coordinators/index.html": "Handbook",
        "en/operators/index.html": "Operators",
        "es/index.html": "Inicio",
        "es/coordinators/index.html": "Manual",
        "assets/search.js": "export {};",
        "en/authors/first-survey.xlsx": "PK",
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    (tmp_path / "secret.txt").write_text("a secret")
    settings.HELP_FOLDER = folder
    return folder


@pytest.fixture
def opened(site):
    PlaceSettings.objects.create(public_help=True)


def test_staff_read_the_help_and_others_have_to_log_in(staff, site):
    for user in (staff.state, staff.dana, staff.chen, staff.analyst):
        page = log_in(Client(), user).get(PAGE)
        assert (page.status_code, page.content) == (200, b"Handbook")
        assert page["Cache-Control"] == "private, no-cache"
    for address in ("/help/", PAGE, "/help/assets/search.js", "/help/nothing/"):
        reply = Client().get(address)
        assert (reply.status_code, reply.content) == (302, b"")
        assert reply["Location"] == f"/console/account/login/?next={address}"


def test_everyone_reads_it_while_the_state_allows_it(opened):
    page = Client().get(PAGE)
    assert (page.status_code, page.content) == (200, b"Handbook")
    assert page["Cache-Control"] == "public, max-age=60"
    assert "script-src 'self'" in page["Content-Security-Policy"]
    assert Client().get("/help/nothing/").status_code == 404
    PlaceSettings.objects.update(public_help=False)
    assert Client().get(PAGE).status_code == 302


def test_reading_costs_the_permission_only(opened, django_assert_num_queries):
    with django_assert_num_queries(1):
        Client().get(PAGE)


@pytest.mark.parametrize("path", ATTACKS)
def test_nothing_outside_the_site_is_served(opened, settings, path):
    # A path that was joined would lead to the secret.
    assert (settings.HELP_FOLDER / path).read_text() == "a secret"
    for written in (path, path.replace("..", "%2e%2e"), path.replace("/", "%2f")):
        reply = Client().get(f"/help/{written}")
        assert reply.status_code == 404
        assert b"secret" not in reply.content
    assert path not in help_site.site_files()


def test_a_link_that_leads_out_of_the_site_is_not_followed(opened, site):
    (site / "en" / "leak.txt").symlink_to(site.parent / "secret.txt")
    help_site._files.cache_clear()
    assert (site / "en" / "leak.txt").read_text() == "a secret"
    assert Client().get("/help/en/leak.txt").status_code == 404


def test_a_page_that_is_deleted_meanwhile_is_not_there(opened, site):
    assert PAGE.removeprefix("/help/") + "index.html" in help_site.site_files()
    (site / "en" / "coordinators" / "index.html").unlink()
    assert Client().get(PAGE).status_code == 404


def test_types_addresses_and_methods(opened):
    client = Client()
    script = client.get("/help/assets/search.js")
    assert script["Content-Type"] == "text/javascript; charset=utf-8"
    book = client.get("/help/en/authors/first-survey.xlsx")
    assert book["Content-Type"].endswith("spreadsheetml.sheet")
    assert client.get(PAGE.rstrip("/"))["Location"] == PAGE
    assert client.post(PAGE).status_code == 405
    assert client.head(PAGE).status_code == 200


def test_a_page_that_has_not_changed_is_not_sent_again(opened, site):
    client = Client()
    etag = client.get(PAGE)["ETag"]
    same = client.get(PAGE, headers={"If-None-Match": etag})
    assert (same.status_code, same.content) == (304, b"")
    (site / "en" / "coordinators" / "index.html").write_text("New")
    changed = client.get(PAGE, headers={"If-None-Match": etag})
    assert (changed.status_code, changed.content) == (200, b"New")


def test_readers_get_their_language_or_english(staff, site):
    client = log_in(Client(), staff.chen)
    for language, topic, address in (
        ("es", "", "/help/es/"),
        ("en", "", "/help/en/"),
        ("es", "coordinators/#cards", "/help/es/coordinators/#cards"),
        ("es", "operators/", "/help/en/operators/"),
        ("ar", "", "/help/en/"),
    ):
        with translation.override(language):
            assert help_site.help_address(topic) == address
    staff.chen.language = "es"
    staff.chen.save()
    assert client.get("/help/")["Location"] == "/help/es/"
    assert 'href="/help/es/"' in client.get("/console/").text


def test_without_a_site_there_is_no_page(staff, settings, tmp_path):
    settings.HELP_FOLDER = tmp_path / "missing"
    client = log_in(Client(), staff.chen)
    assert client.get(PAGE).status_code == 404
    # The console goes on.
    assert client.get("/console/me/").status_code == 200


def test_only_the_state_opens_the_help(staff):
    client = log_in(Client(), staff.state)
    address = "/console/settings/state/help/"
    assert (
        "Only people who are logged in" in client.get("/console/settings/state/").text
    )
    client.post(address, {"public_help": "on"})
    assert help_is_public()
    assert "Everyone may read them" in client.get("/console/settings/state/").text
    client.post(address, {})
    assert not help_is_public()
    for user in (staff.dana, staff.chen, staff.analyst):
        reply = log_in(Client(), user).post(address, {"public_help": "on"})
        assert reply.status_code == 404
    assert not help_is_public()


def test_a_district_has_no_such_setting(staff):
    with pytest.raises(IntegrityError, match="only_the_state_opens_the_help"):
        PlaceSettings.objects.create(district=staff.riverside, public_help=True)


# The site as it was built


def test_every_screens_link_leads_to_a_page_and_a_section():
    names = {route.name for route in routes() if ":" not in route.name}
    assert len(names) > 150
    assert configured.HELP_FOLDER.exists(), "provisioning/run help_site builds it"
    for topic in {*TOPICS.values(), *map(topic_of, names)}:
        page, _hash, anchor = topic.partition("#")
        for language in ("en", "es"):
            file = help_site.site_files().get(f"{language}/{page}index.html")
            assert file or language != "en", topic
            if file and anchor:
                assert f'id="{anchor}"' in file.read_text(), (language, topic)


def test_no_topic_is_without_a_screen():
    names = [route.name for route in routes()]
    for beginning in TOPICS:
        assert any(name.startswith(beginning) for name in names), beginning


def test_sections_are_found_in_the_readers_language():
    with translation.override("es"):
        addresses = [section.address for section in help_site.help_sections()]
    assert "/help/es/coordinators/#cards" in addresses
    # Not twice, and in English where there is no translation.
    assert "/help/en/coordinators/#cards" not in addresses
    assert "/help/en/operators/recovery/#drill" not in addresses
    assert "/help/en/security/accessibility/#methods" not in addresses
    assert "/help/en/operators/backups/#where-backups-go" in addresses
