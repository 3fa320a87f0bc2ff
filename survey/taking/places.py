"""The name, logo and color of a respondent's page, and whom to ask for help.

They come from the school, else from its district, else from the state
(`accounts.place_settings`). The pages of a survey are the same for everyone and
cached for ever, so this belongs to the page around them.
"""

from __future__ import annotations

import json
import logging
import time
from dataclasses import dataclass

from django.db import InterfaceError, OperationalError, connection
from django.db.models import F, Q
from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from accounts.logos import shown_size
from accounts.models import PlaceSettings

log = logging.getLogger(__name__)

# Seconds for which a process shows what the state had set.
STATE_LIFETIME = 30
# As JSON: no character is absent from every text, so none can separate them. The
# contact is a text within: `|| ''` stops SQLite from nesting it as an array.
ARRAY = {"postgresql": "json_build_array", "sqlite": "json_array"}
CONTACT = """SELECT CAST({array}({place}.contact_name, {place}.contact_email,
        {place}.contact_phone) AS text) || ''
    WHERE {place}.contact_name || {place}.contact_email || {place}.contact_phone
        <> ''"""
LEVELS = ("listing", "of_district", "of_state")
# Columns of `PlaceSettings`, as PlaceOnPage has them.
SHOWN = ("contact_name", "contact_email", "contact_phone", "name", "logo_id", "accent")
# Of a respondent `r`: the contact person of the nearest place that has one, the name,
# the logo and the accent color. With the joins below; no statement of its own.
COLUMN = {
    vendor: f"CAST({array}(coalesce("
    + ", ".join(f"({CONTACT.format(array=array, place=place)})" for place in LEVELS)
    + ', \'["", "", ""]\'),'
    " coalesce(nullif(of_district.name, ''), of_state.name, ''),"
    " coalesce(of_district.logo_id, of_state.logo_id, ''),"
    " coalesce(nullif(of_district.accent, ''), of_state.accent, '')) AS text)"
    for vendor, array in ARRAY.items()
}
JOINS = """
LEFT JOIN accounts_school school ON school.id = r.school_id
LEFT JOIN accounts_schoollisting listing ON listing.school_id = r.school_id
LEFT JOIN accounts_placesettings of_district
    ON coalesce(of_district.district_id, 0) = school.district_id
    AND coalesce(of_district.school_id, 0) = 0
LEFT JOIN accounts_placesettings of_state
    ON coalesce(of_state.district_id, 0) = 0 AND coalesce(of_state.school_id, 0) = 0
"""
OF_SCHOOL = {
    vendor: f"SELECT {column} FROM (SELECT CAST(%s AS bigint) AS school_id) r {JOINS}"  # noqa: S608
    for vendor, column in COLUMN.items()
}


@dataclass(frozen=True, slots=True)
class PlaceOnPage:
    contact_name: str = ""
    contact_email: str = ""
    contact_phone: str = ""
    name: str = ""
    logo: str = ""
    accent: str = ""

    @property
    def has_contact(self) -> bool:
        return bool(self.contact_name or self.contact_email or self.contact_phone)

    @property
    def logo_size(self) -> tuple[int, int]:
        return shown_size(self.logo)

    @property
    def digits_of_phone(self) -> str:
        return self.contact_phone.replace(" ", "")

    @property
    def accent_digits(self) -> str:
        return self.accent.removeprefix("#")


NOWHERE = PlaceOnPage()


def parse_place(text: str) -> PlaceOnPage:
    """Return what COLUMN has found."""
    contact, name, logo, accent = json.loads(text)
    contact_name, email, phone = json.loads(contact)
    return PlaceOnPage(contact_name, email, phone, name, logo, accent)


def place_of_school(school_id: int) -> PlaceOnPage:
    """Return what is shown to the people of a school. 1 statement."""
    with connection.cursor() as cursor:
        cursor.execute(OF_SCHOOL[connection.vendor], [school_id])
        [text] = cursor.fetchone()
    return parse_place(text)


def place_of_district(district_id: int) -> PlaceOnPage:
    """Return what is shown where no school is chosen. 1 statement."""
    rows = PlaceSettings.objects.filter(
        Q(district=None) | Q(district=district_id), school=None
    )
    district_first = F("district").asc(nulls_last=True)
    levels = list(rows.order_by(district_first).values_list(*SHOWN))
    contact = next((row[:3] for row in levels if any(row[:3])), ("", "", ""))
    brand = (next((row[n] for row in levels if row[n]), "") for n in (3, 4, 5))
    return PlaceOnPage(*contact, *brand)


_of_state: tuple[PlaceOnPage, float] = NOWHERE, 0.0


def place_of_state() -> PlaceOnPage:
    """Return the state's name, logo, color and contact, for pages before the login.

    1 statement per process and half minute. While the database is down, pages show
    what they showed before.
    """
    global _of_state
    place, until = _of_state
    now = time.monotonic()
    if now < until:
        return place
    # Other threads go on with the old one meanwhile.
    _of_state = place, now + STATE_LIFETIME
    rows = PlaceSettings.objects.filter(school=None, district=None).values_list(*SHOWN)
    try:
        row = rows.first()
    except (OperationalError, InterfaceError):
        log.warning("The state's name and logo can't be read.", exc_info=True)
        connection.close()
        return place
    place = PlaceOnPage(*(value or "" for value in row)) if row else NOWHERE
    _of_state = place, now + STATE_LIFETIME
    return place


def known_place_of_state() -> PlaceOnPage:
    """Return what this process read before, without asking the database."""
    return _of_state[0]


def brand_of_errors(request: HttpRequest) -> dict[str, object]:
    """Give error pages the state's name, as a context processor."""
    return {"state_place": SimpleLazyObject(place_of_state)}


def forget_place_of_state() -> None:
    """Empty this process's cache, for tests that roll the database back."""
    global _of_state
    _of_state = NOWHERE, 0.0
