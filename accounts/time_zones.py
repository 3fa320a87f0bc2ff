"""Choose, name and activate the time zones of the state and of districts.

The state has TIME_ZONE; a district may have another one. Everything that is stored
is an instant, and is shown in the zone of its reader.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from datetime import datetime, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from django.conf import settings
from django.utils import timezone
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from accounts.models import District


def zone_named(name: str) -> tzinfo:
    """Return a zone; the state's for an empty name, or one that no longer exists."""
    if not name:
        return timezone.get_default_timezone()
    try:
        return ZoneInfo(name)
    except (ValueError, ZoneInfoNotFoundError):
        return timezone.get_default_timezone()


def zone_of(district: District | None) -> tzinfo:
    """Return the zone of a district, or with None of the state."""
    return zone_named(district.time_zone if district else "")


def in_zone(zone: tzinfo) -> AbstractContextManager[None]:
    """Show times in this zone, as `timezone.localtime` and templates write them."""
    return timezone.override(zone)


def zone_label(zone: tzinfo | None = None) -> str:
    """Return "Mountain Time (America/Denver)"; of the current zone by default."""
    key = str(zone or timezone.get_current_timezone())
    return f"{_name(key, get_language() or 'en')} ({key})"


def differs(moment: datetime, zone: tzinfo) -> bool:
    """Return whether clocks of this zone show another time than the reader's."""
    return moment.astimezone(zone).utcoffset() != timezone.localtime(moment).utcoffset()


def zone_choices() -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the zones to choose from in groups: those of the state's country first."""
    from babel import Locale
    from babel.core import get_global

    territories = get_global("zone_territories")
    country = territories.get(settings.TIME_ZONE)
    # UTC lies nowhere.
    if country in (None, "ZZ", "001"):
        country = "US"
    language = get_language() or "en"
    here, elsewhere = [], []
    for key in sorted(territories.keys() & available_timezones()):
        city = key.partition("/")[2].replace("_", " ")
        if territories[key] == country:
            here.append((key, f"{_name(key, language)}: {city}"))
        else:
            elsewhere.append((key, key.replace("_", " ")))
    now = timezone.now()
    # From east to west, as people name them.
    here.sort(key=lambda choice: (-_seconds(choice[0], now), choice[1]))
    locale = Locale.parse(language, sep="-")
    name = locale.territories.get(country, country)
    return [(name, here), (_("Other countries"), elsewhere)]


def _seconds(key: str, now: datetime) -> float:
    offset = now.astimezone(ZoneInfo(key)).utcoffset()
    return offset.total_seconds() if offset else 0.0


@lru_cache(maxsize=512)
def _name(key: str, language: str) -> str:
    """Return "Mountain Time", in the reader's language."""
    # Only the console and workers name zones: other processes save the memory.
    from babel import Locale, UnknownLocaleError
    from babel.dates import get_timezone_name

    if key.rpartition("/")[2] == "UTC":
        return "UTC"
    try:
        locale = Locale.parse(language, sep="-")
    except (ValueError, UnknownLocaleError):
        locale = Locale("en")
    name: str = get_timezone_name(
        ZoneInfo(key), width="long", zone_variant="generic", locale=locale
    )
    return name
