"""The console's settings pages of the state, of districts and of schools."""

from __future__ import annotations

import io
import struct
import subprocess
import sys
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest
from django.core.exceptions import ValidationError
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import IntegrityError
from django.test import Client
from PIL import Image

from accounts import logo_drawing, logo_upload
from accounts.logo_upload import LARGEST_UPLOAD, draw_logo
from accounts.models import AuditEntry, Logo, PlaceSettings, SchoolListing
from accounts.place_settings import Thresholds, coding_threshold
from accounts.tests.logging_in import log_in
from survey.fieldwork.administrations.checks import least_minimum_group

pytestmark = pytest.mark.django_db
SETTINGS = "/console/settings/"
OFFICE = {
    "contact_name": "Front office",
    "contact_email": "office@lincoln.example",
    "contact_phone": "217 555 0134",
}


def picture(kind="PNG", size=(600, 200), name="logo.png") -> SimpleUploadedFile:
    file = io.BytesIO()
    Image.new("RGB", size, "teal").save(file, kind)
    return SimpleUploadedFile(name, file.getvalue())


def address(place=None) -> str:
    if place is None:
        return f"{SETTINGS}state/"
    return f"{SETTINGS}{place._meta.verbose_name_plural}/{place.pk}/"


def text_of(client: Client, path: str) -> str:
    reply = client.get(path)
    assert reply.status_code == 200
    return " ".join(reply.content.decode().split())


def test_the_nearest_contact_person_is_shown_with_its_source(staff):
    state, dana, chen = (
        log_in(Client(), user) for user in (staff.state, staff.dana, staff.chen)
    )
    assert "Not set. If you set one" in text_of(chen, address(staff.lincoln))
    help_desk = {"contact_name": "Help desk", "contact_phone": "217 555 0100"}
    state.post(f"{address()}contact/", help_desk)
    text = text_of(chen, address(staff.lincoln))
    assert "Help desk" in text and "(from the state)" in text
    dana.post(f"{address(staff.riverside)}contact/", {"contact_email": "d@x.example"})
    text = text_of(chen, address(staff.lincoln))
    # All three from the same level: the state's number is not Riverside's.
    assert "d@x.example" in text and "(from the district)" in text
    assert "Help desk" not in text
    reply = chen.post(f"{address(staff.lincoln)}contact/", OFFICE)
    assert reply["Location"] == address(staff.lincoln)
    assert "office@lincoln.example" in text_of(chen, address(staff.lincoln))
    # The public directory has the same one.
    assert SchoolListing.objects.get(school=staff.lincoln).contact_name == (
        "Front office"
    )
    entry = AuditEntry.objects.order_by("-pk")[0]
    assert (entry.action, entry.school_id) == (
        "change contact person",
        staff.lincoln.pk,
    )
    assert entry.after["contact_phone"] == "217 555 0134"
    chen.post(f"{address(staff.lincoln)}contact/", dict.fromkeys(OFFICE, ""))
    assert "d@x.example" in text_of(chen, address(staff.lincoln))


def test_saving_the_same_again_leaves_no_audit_entry(staff):
    client = log_in(Client(), staff.dana)
    for _ in range(2):
        client.post(f"{address(staff.lincoln)}contact/", OFFICE)
    assert AuditEntry.objects.filter(action="change contact person").count() == 1


@pytest.mark.parametrize(
    ("typed", "reason"),
    [
        ({"contact_email": "office"}, "Enter an address like"),
        ({"contact_phone": "call me"}, "Use digits, spaces"),
        ({"contact_email": "", "contact_phone": ""}, "an e-mail address or a phone"),
        ({"contact_name": "x" * 101}, "at most 100 characters"),
        ({"contact_name": "Bell\x07"}, "letters, digits and punctuation"),
    ],
)
def test_wrong_contacts_are_refused_and_stay_in_the_form(staff, typed, reason):
    client = log_in(Client(), staff.chen)
    reply = client.post(f"{address(staff.lincoln)}contact/", {**OFFICE, **typed})
    assert reply.status_code == 200 and reason in reply.content.decode()
    assert SchoolListing.objects.get(school=staff.lincoln).contact_name == ""


def test_thresholds_are_inherited(staff):
    state, dana = log_in(Client(), staff.state), log_in(Client(), staff.dana)
    state.post(f"{address()}thresholds/", {"student_percent": "75"})
    assert Thresholds("student").of(staff.lincoln.pk, staff.riverside.pk) == 75
    text = text_of(dana, address(staff.lincoln))
    assert 'Students: 75 % <span class="hint">(from the state)</span>' in text
    assert 'Parents: 20 % <span class="hint">(default)</span>' in text
    dana.post(f"{address(staff.riverside)}thresholds/", {"student_percent": "60"})
    dana.post(f"{address(staff.lincoln)}thresholds/", {"student_percent": "80"})
    thresholds = Thresholds("student")
    assert thresholds.of(staff.lincoln.pk, staff.riverside.pk) == 80
    assert thresholds.of(staff.washington.pk, staff.riverside.pk) == 60
    assert thresholds.of(staff.roosevelt.pk, staff.lakeside.pk) == 75
    assert Thresholds("teacher").of(staff.lincoln.pk, staff.riverside.pk) == 50
    # Coordinators see the thresholds, and do not change them.
    chen = log_in(Client(), staff.chen)
    text = text_of(chen, address(staff.lincoln))
    assert "Students: 80 %" in text and "Change thresholds" not in text


@pytest.mark.parametrize("typed", ["0", "101", "half", "50.5", "-1", "1" * 30])
def test_thresholds_are_whole_percentages(staff, typed):
    client = log_in(Client(), staff.state)
    reply = client.post(f"{address()}thresholds/", {"student_percent": typed})
    assert "Enter a whole number from 1 to 100" in reply.content.decode()
    assert not PlaceSettings.objects.exists()


def test_a_district_protects_more_people_than_the_state_and_never_fewer(staff):
    state, dana = log_in(Client(), staff.state), log_in(Client(), staff.dana)
    assert '10 people <span class="hint">(default)</span>' in text_of(state, address())
    state.post(f"{address()}minimum-group/", {"minimum_group": "10"})
    riverside = f"{address(staff.riverside)}minimum-group/"
    refused = dana.post(riverside, {"minimum_group": "9"})
    assert "The state requires at least 10." in refused.content.decode()
    assert least_minimum_group(staff.riverside) == 10
    dana.post(riverside, {"minimum_group": "20"})
    assert least_minimum_group(staff.riverside) == 20
    assert '20 people <span class="hint">(set here)</span>' in text_of(
        dana, address(staff.riverside)
    )
    # The state can require more later.
    state.post(f"{address()}minimum-group/", {"minimum_group": "30"})
    assert least_minimum_group(staff.riverside) == 30
    assert least_minimum_group(staff.lakeside) == 30
    assert '30 people <span class="hint">(from the state)</span>' in text_of(
        dana, address(staff.riverside)
    )
    entry = AuditEntry.objects.filter(action="change minimum group").latest("pk")
    assert (entry.before, entry.after) == (
        {"minimum_group": 10},
        {"minimum_group": 30},
    )


@pytest.mark.parametrize("typed", ["0", "101", "many", "5.5", "-1", "1" * 30])
def test_a_minimum_group_is_a_whole_number_of_people(staff, typed):
    client = log_in(Client(), staff.state)
    reply = client.post(f"{address()}minimum-group/", {"minimum_group": typed})
    assert "Enter a whole number from 1 to 100" in reply.content.decode()
    assert not PlaceSettings.objects.exists()


def test_the_state_sets_the_smallest_percentage(staff):
    client = log_in(Client(), staff.state)
    assert coding_threshold() == 5
    assert '5 % <span class="hint">(default)</span>' in text_of(client, address())
    client.post(f"{address()}smallest-percentage/", {"coding_threshold": "10"})
    assert coding_threshold() == 10
    assert '10 % <span class="hint">(set here)</span>' in text_of(client, address())
    entry = AuditEntry.objects.get(action="change smallest percentage")
    assert entry.after == {"coding_threshold": 10}
    # Districts have no other one: their figures would be those of the state.
    riverside = f"{address(staff.riverside)}smallest-percentage/"
    assert log_in(Client(), staff.dana).get(riverside).status_code == 404
    assert client.get(riverside).status_code == 404
    assert "Smallest percentage" not in text_of(client, address(staff.riverside))


@pytest.mark.parametrize("typed", ["0", "21", "few", "5.5", "-1", "1" * 30])
def test_the_smallest_percentage_is_1_to_20(staff, typed):
    client = log_in(Client(), staff.state)
    path = f"{address()}smallest-percentage/"
    reply = client.post(path, {"coding_threshold": typed})
    assert "Enter a whole number from 1 to 20." in reply.content.decode()
    assert not PlaceSettings.objects.exists()


@pytest.mark.parametrize(
    ("place", "percent"), [(None, 0), (None, 21), ("riverside", 5)]
)
def test_a_coding_threshold_is_1_to_20_percent_of_the_state(staff, place, percent):
    district = getattr(staff, place) if place else None
    with pytest.raises(IntegrityError, match="a_coding_threshold_is_1_to_20_percent"):
        PlaceSettings.objects.create(district=district, coding_threshold=percent)


def test_each_role_changes_its_own_places(staff):
    cases = [
        ("chen", "lincoln", "contact/", 200),
        ("chen", "lincoln", "thresholds/", 404),
        ("chen", "washington", "", 404),
        ("chen", "riverside", "", 404),
        ("chen", None, "", 404),
        ("dana", "riverside", "name/", 200),
        ("dana", "riverside", "minimum-group/", 200),
        ("dana", "lincoln", "minimum-group/", 404),
        ("dana", None, "minimum-group/", 404),
        ("chen", "lincoln", "minimum-group/", 404),
        ("dana", "washington", "thresholds/", 200),
        ("dana", "washington", "name/", 404),
        ("dana", "lakeside", "", 404),
        ("dana", "roosevelt", "contact/", 404),
        ("dana", None, "contact/", 404),
        ("sam", "lincoln", "contact/", 404),
        ("analyst", "riverside", "", 404),
        ("state", None, "name/", 200),
        ("state", "lakeside", "thresholds/", 200),
    ]
    for login, place, page, status in cases:
        client = log_in(Client(), getattr(staff, login))
        path = f"{address(getattr(staff, place) if place else None)}{page}"
        assert client.get(path).status_code == status, (login, path)
        if page and status == 404:
            typed = {**OFFICE, "student_percent": "75", "name": "Mine"}
            assert client.post(path, typed).status_code == 404
            assert not PlaceSettings.objects.exists()


def test_the_home_of_settings_leads_to_the_only_place(staff):
    for user, place in (
        (staff.state, None),
        (staff.dana, staff.riverside),
        (staff.chen, staff.lincoln),
    ):
        reply = log_in(Client(), user).get(SETTINGS)
        assert reply["Location"] == address(place)
    staff.chen.memberships.create(role="coordinator", school=staff.washington)
    text = text_of(log_in(Client(), staff.chen), SETTINGS)
    assert "Lincoln" in text and "Washington" in text and "Roosevelt" not in text


def test_a_logo_is_drawn_anew_and_cached_for_ever(staff):
    client = log_in(Client(), staff.dana)
    path = f"{address(staff.riverside)}name/"
    client.post(path, {"name": "Riverside Schools", "logo": picture("JPEG")})
    row = PlaceSettings.objects.get(district=staff.riverside)
    assert row.name == "Riverside Schools" and row.logo_id.endswith("-288x96")
    reply = Client().get(f"/logo/{row.logo_id}/")
    assert reply["Content-Type"] == "image/png"
    assert reply["Cache-Control"] == "public, max-age=31536000, immutable"
    assert Image.open(io.BytesIO(reply.content)).size == (288, 96)
    assert f"/logo/{row.logo_id}/" in text_of(client, address(staff.riverside))
    # Another name keeps the logo; the tick removes it, with its row.
    client.post(path, {"name": "Riverside"})
    row.refresh_from_db()
    assert row.logo_id and row.name == "Riverside"
    client.post(path, {"name": "Riverside", "remove_logo": "on"})
    assert not Logo.objects.exists()
    assert Client().get(f"/logo/{row.logo_id}/").status_code == 404
    assert Client().get("/logo/x/").status_code == 404


def test_a_color_is_chosen_and_its_style_sheet_cached_for_ever(staff):
    client = log_in(Client(), staff.dana)
    path = f"{address(staff.riverside)}name/"
    client.post(path, {"name": "Riverside", "accent": " 7A1F5C "})
    row = PlaceSettings.objects.get(district=staff.riverside)
    assert row.accent == "#7a1f5c"
    assert 'fill="#7a1f5c"' in text_of(client, address(staff.riverside))
    reply = Client().get("/accent/7a1f5c.css")
    assert reply["Content-Type"] == "text/css"
    assert reply["Cache-Control"] == "public, max-age=31536000, immutable"
    assert "--accent: #7a1f5c;" in reply.content.decode()
    for digits in ("7A1F5C", "7a1f5", "7a1f5c0", "x"):
        assert Client().get(f"/accent/{digits}.css").status_code == 404
    client.post(path, {"name": "Riverside", "accent": ""})
    row.refresh_from_db()
    assert row.accent == ""


@pytest.mark.parametrize(
    ("typed", "reason"),
    [
        ("#f5c400", "The nearest color that does is #ae8b00."),
        ("#ffffff", "This color is too light"),
        ("red", "Enter a color code"),
        ("#12345", "Enter a color code"),
        ("#0a6375; }", "Enter a color code"),
    ],
)
def test_other_texts_are_no_colors(staff, typed, reason):
    client = log_in(Client(), staff.state)
    reply = client.post(f"{address()}name/", {"name": "Ohio", "accent": typed})
    assert reply.status_code == 200 and reason in reply.content.decode()
    assert not PlaceSettings.objects.exists()


def test_the_database_refuses_what_is_no_color(db):
    with pytest.raises(IntegrityError, match="an_accent_color_is_hexadecimal"):
        PlaceSettings.objects.create(accent="red")


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        (SimpleUploadedFile("a.svg", b"<svg onload='x()'/>"), "SVG files are refused"),
        (SimpleUploadedFile("a.png", b"\x89PNG\r\n\x1a\n" + b"0" * 50), "be read as"),
        (SimpleUploadedFile("a.png", b""), "This file is empty"),
        (SimpleUploadedFile("a.png", b"0" * 2_000_001), "larger than 2 MB"),
        (picture(size=(4001, 10)), "wider or higher"),
        (picture("GIF", name="a.png"), "be read as a PNG or JPEG"),
    ],
)
def test_other_files_are_no_logos(staff, file, reason):
    client = log_in(Client(), staff.state)
    file.seek(0)
    reply = client.post(f"{address()}name/", {"name": "Ohio", "logo": file})
    assert reply.status_code == 200 and reason in reply.content.decode()
    assert not Logo.objects.exists() and not PlaceSettings.objects.exists()


def png_with(kind: bytes, content: bytes, *, at_end: bool = False) -> bytes:
    """Return a PNG with one more chunk, behind its first or its last but one."""
    png = picture().file.getvalue()
    chunk = struct.pack(">I", len(content)) + kind + content
    chunk += struct.pack(">I", zlib.crc32(chunk[4:]))
    at = len(png) - 12 if at_end else 33
    return png[:at] + chunk + png[at:]


@pytest.mark.parametrize("at_end", [False, True])
def test_a_logo_with_an_empty_color_profile_is_refused(staff, at_end):
    client = log_in(Client(), staff.state)
    content = png_with(b"iCCP", b"", at_end=at_end)
    file = SimpleUploadedFile("a.png", content)
    reply = client.post(f"{address()}name/", {"name": "Ohio", "logo": file})
    assert "be read as a PNG or JPEG" in reply.content.decode()
    assert not Logo.objects.exists()


def test_no_part_of_the_file_is_in_the_logo():
    profile = b"x\0\0" + zlib.compress(b"a house in Ohio")
    notes = b"Comment\0a house in Ohio"
    for content in (png_with(b"iCCP", profile), png_with(b"tEXt", notes)):
        png = draw_logo(content)
        assert b"iCCP" not in png and b"tEXt" not in png and b"eXIf" not in png


def test_broken_pictures_are_refused_or_drawn():
    """Any exception of a decoder means that the picture can't be read."""
    random = Random(35)
    pictures = [
        picture(kind).file.getvalue() for kind in ("PNG", "JPEG", "GIF", "WEBP")
    ]
    broken = [png[: len(png) // 2] for png in pictures]
    chunks = (b"gAMA", b"pHYs", b"fcTL")
    broken += [png_with(kind, b"", at_end=True) for kind in chunks]
    broken += [b"", b"\x89PNG", b"\xff\xd8\xff", b"RIFF", b"<svg/>", b"GIF89a"]
    for content in pictures[:2] * 6:
        changed = bytearray(content)
        for _ in range(3):
            changed[random.randrange(60)] ^= 1 << random.randrange(8)
        broken.append(bytes(changed))

    def drawn(content: bytes) -> str:
        try:
            return draw_logo(content)[:4].decode("latin-1")
        except ValidationError as error:
            return str(error.messages[0])[:13]

    with ThreadPoolExecutor(2) as threads:
        outcomes = set(threads.map(drawn, broken))
    assert outcomes <= {"\x89PNG", "This file can", "The picture i"}
    assert len(outcomes) > 1


def test_a_picture_that_takes_hours_is_refused(monkeypatch):
    """2 MB of a progressive JPEG hold 70,000 passes over a picture of any size."""
    jpeg = io.BytesIO()
    Image.new("L", (3000, 3000)).save(jpeg, "JPEG", progressive=True)
    content = jpeg.getvalue()
    scan = content[content.rindex(b"\xff\xda") : -2]
    bomb = content[:-2] + scan * ((LARGEST_UPLOAD - len(content)) // len(scan))
    monkeypatch.setattr(logo_upload, "LONGEST_SECONDS", 1)
    began = time.monotonic()
    with pytest.raises(ValidationError, match="be read as"):
        draw_logo(bomb + b"\xff\xd9")
    assert time.monotonic() - began < 5
    # The twin: a hundred passes already take longer than the picture alone.
    took = []
    for passes in (0, 100):
        began = time.process_time()
        with Image.open(io.BytesIO(content[:-2] + scan * passes + b"\xff\xd9")) as many:
            many.load()
        took.append(time.process_time() - began)
    assert took[1] > 2 * took[0]


def test_the_process_that_draws_has_little_memory_and_time():
    code = f"""
import runpy, sys
try:
    runpy.run_path({logo_drawing.__file__!r}, run_name="__main__")
except Exception:
    pass
bytearray(1_000_000_000)
"""
    done = subprocess.run([sys.executable, "-c", code], input=b"", capture_output=True)
    assert b"MemoryError" in done.stderr


@pytest.mark.parametrize("rows", [1, 3])
def test_settings_of_one_and_of_three_schools_cost_the_same(
    staff, rows, django_assert_num_queries
):
    for n in range(rows):
        staff.riverside.schools.create(code=f"s{n}", name=f"School {n}")
    client = log_in(Client(), staff.dana)
    with django_assert_num_queries(7):
        text_of(client, address(staff.riverside))
