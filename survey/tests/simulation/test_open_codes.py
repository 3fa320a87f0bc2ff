from __future__ import annotations

import json

import pytest
from django.core.management import CommandError, call_command

from survey.fieldwork.open_codes.lookup import find_open_code
from survey.models import (
    DeviceLogin,
    OpenCode,
    OpenCodeSeat,
    OpenDecline,
    Respondent,
    Response,
)
from survey.tests.open_codes.cast import form_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def rehearse(capsys, tmp_path):
    def run(*options, name="everybody"):
        path = tmp_path / "codes.txt"
        call_command(
            "open_code_rehearsal",
            *(f"--name={name}", "--pages=2", "--items=2", "--json"),
            *(f"--codes={path}", *options),
        )
        return json.loads(capsys.readouterr().out), path.read_text().split()

    return run


def test_people_begin_with_the_codes_of_a_rehearsal(rehearse, browser):
    described, codes = rehearse("--unlimited=2", "--seats=3")

    assert len(codes) == len(set(codes)) == 3
    limits = OpenCode.objects.order_by("pk").values_list("limit", flat=True)
    assert list(limits) == [None, None, 3]
    assert OpenCode.objects.values("school").distinct().count() == 3
    # All of them begin from one address.
    assert {find_open_code(typed)[0].most_per_address for typed in codes} == {100_000}
    for begun, typed in enumerate(codes, start=1):
        browser.post("/open/begin/", form_of(browser, typed))
        assert Respondent.objects.count() == begun
    assert browser.bootstrap()["digest"] == described["digest"]


def test_the_next_run_deletes_starts_and_nothing_else(rehearse, browser, maya):
    _, codes = rehearse("--seats=3")
    parents = Respondent.objects.exclude(pk=maya.pk)
    for typed in codes:
        form = form_of(browser, typed)
        browser.post("/open/decline/", form)
        browser.post("/open/begin/", form)
    tables = (OpenCode, OpenCodeSeat, OpenDecline, DeviceLogin, parents)
    assert [rows_of(each) for each in tables] == [2, 3, 2, 2, 2]

    assert rehearse("--unlimited=0")[1] == []

    assert [rows_of(each) for each in tables] == [0, 0, 0, 0, 0]
    assert not Response.objects.exists()
    assert Respondent.objects.get() == maya


def rows_of(table) -> int:
    return getattr(table, "objects", table).count()


def test_a_real_administration_is_never_changed(rehearse, maya):
    name = maya.administration.name
    with pytest.raises(CommandError, match="real administration"):
        rehearse(name=name)
    assert Respondent.objects.get() == maya
