"""The help's page about stored data names every table, and no other."""

from __future__ import annotations

import re

import pytest
from django.apps import apps
from django.conf import settings

from survey.models.requested_file import KEPT_FOR
from survey.people.rosters.retention import KEPT

PAGE = settings.BASE_DIR / "docs" / "help" / "en" / "security" / "data.md"
APPS = r"accounts|survey|reports|auth|account|mfa|usersessions|django"


@pytest.fixture
def text() -> str:
    return PAGE.read_text()


def test_every_table_is_on_the_page_about_data(text):
    tables = {
        model._meta.db_table for model in apps.get_models(include_auto_created=True)
    }
    # What the tests themselves add.
    tables = {table for table in tables if re.match(rf"({APPS})_", table)}
    assert len(tables) > 100
    listed = set(re.findall(rf"`((?:{APPS})_\w+)`", text))
    assert tables - listed == set(), f"add them to {PAGE}: whose data, and how long"
    assert listed - tables == set(), f"{PAGE} names tables that are not there"


def test_the_days_on_the_page_are_those_of_the_product(text):
    assert f"files {KEPT_FOR.days} days" in text
    assert f"files and cells {KEPT.days} days" in text
    [days] = re.findall(
        r"^backup_retention_days: (\d+)$",
        (
            settings.BASE_DIR / "provisioning/ansible/roles/backup/defaults/main.yml"
        ).read_text(),
        re.MULTILINE,
    )
    assert f"| {days} days, unless `backup_retention_days`" in text
