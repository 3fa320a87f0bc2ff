from __future__ import annotations

from datetime import date

import pytest

from survey.models import Respondent
from survey.people.opt_outs.records import Request
from survey.tests.people import invite
from survey.tests.rosters.roster_imports import run_import

HEADER = "district,school,student ID,given name,family name,grade"
MAYA = "riverside,lincoln,00123,Maya,Lopez,7"
ALI = "riverside,lincoln,00124,Ali,Diaz,7"
NO_FORM = Request(date(2026, 9, 1), "parent", "no consent form")


@pytest.fixture
def administration(administration):
    """Let staff see who has started."""
    administration.coordinators_see_finished = True
    administration.save(update_fields=["coordinators_see_finished"])
    return administration


@pytest.fixture
def roster(administration):
    """Return a function that imports rows."""

    def run(*lines, **options):
        report = run_import(administration, HEADER, *lines, **options)
        assert report.imported, report.rejections
        return report

    return run


@pytest.fixture
def maya(administration, staff) -> Respondent:
    fields = {"grade": "07"}
    return invite(administration, staff.lincoln, "00123", "Maya Lopez", **fields)


@pytest.fixture
def ali(administration, staff) -> Respondent:
    fields = {"grade": "07"}
    return invite(administration, staff.lincoln, "00124", "Ali Diaz", **fields)
