"""Dates look the same on every page, in e-mails and on paper."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone, translation
from django.utils.formats import date_format

from accounts.templatetags.console import short_date, short_moment
from accounts.tests.logging_in import log_in

# Short forms leave the year out, in tables of one season, or add seconds.
STYLES = {
    "DATE_FORMAT",
    "DATETIME_FORMAT",
    "TIME_FORMAT",
    "SHORT_DATETIME_FORMAT",
    "MONTH_DAY_FORMAT",
    "N j, Y, g:i:s A",
    "D",
    "D, N j",
    "g:i:s A",
    # In addresses and ids, which nobody reads.
    "Y-m-d",
}


def test_templates_write_dates_in_one_style():
    texts: dict[str, list[str]] = {}
    for path in (settings.BASE_DIR / "templates").rglob("*"):
        if path.suffix in (".html", ".txt"):
            for style in re.findall(r"\|date:(?:_\()?[\"']([^\"']+)", path.read_text()):
                texts.setdefault(style, []).append(path.name)
    assert {style: texts[style] for style in texts.keys() - STYLES} == {}
    assert "DATETIME_FORMAT" in texts


@pytest.mark.parametrize(
    ("language", "written"),
    [
        ("en", "Sept. 5, 2026, 2:30 PM CDT"),
        ("es", "5 de septiembre de 2026, 2:30 PM CDT"),
    ],
)
def test_dates_are_written_in_the_readers_language(language, written):
    with translation.override(language):
        assert date_format(datetime(2026, 9, 5, 14, 30), "DATETIME_FORMAT") == written


@pytest.mark.parametrize(
    ("language", "day", "moment", "full"),
    [
        ("en", "Sept. 5", "Sept. 5, 2:30 PM", "Sept. 5, 2026, 2:30 PM CDT"),
        ("es", "5 sep", "5 sep, 2:30 PM", "5 de septiembre de 2026, 2:30 PM CDT"),
    ],
)
def test_tables_leave_out_this_year(monkeypatch, language, day, moment, full):
    at = timezone.make_aware(datetime(2026, 9, 5, 14, 30))
    monkeypatch.setattr(timezone, "now", lambda: at + timedelta(days=80))
    with translation.override(language):
        assert f">{day}<" in short_date(at)
        assert f'title="{full}">{moment}<' in short_moment(at)
        assert "2025" in short_date(at - timedelta(days=365))
        assert short_moment(None) == "–"


@pytest.mark.django_db
def test_the_account_menu_names_the_time_zone(staff):
    page = log_in(Client(), staff.state).get("/console/administrations/open/")
    assert page.content.decode().count("America/Chicago") == 1
