"""The language in which people finished, in exports."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from reports.tests.exports.conftest import (
    FIRST,
    answer,
    made,
    opened,
    panel_of,
    published,
)
from reports.tests.exports.test_formats import rows_of

pytestmark = pytest.mark.django_db
DONE = {"completed_at": datetime(2027, 3, 1, 15, tzinfo=UTC)}


@pytest.mark.sqlite
def test_the_response_language_follows_the_language_of_the_roster(staff, fall, enrol):
    languages = {"language": "es", "response_language": "en"}
    # Reopened: the column is not emptied, and shows nothing until the next finish.
    for person in (
        enrol(fall, staff.lincoln, **languages, **DONE),
        enrol(fall, staff.lincoln, **languages),
    ):
        answer(person, {"safe": "1"})
    rows = rows_of(made(staff.state, fall))
    shown = sorted((row["language"], row["response_language"]) for row in rows)
    assert shown == [("es", ""), ("es", "en")]
    names = list(rows[0])
    assert names[names.index("language") + 1] == "response_language"


@pytest.mark.sqlite
def test_a_language_with_any_character_moves_no_cell(staff, fall, enrol):
    odd = "e\x1fs"
    person = enrol(fall, staff.lincoln, language=odd, response_language="en", **DONE)
    answer(person, {"safe": "1"})
    [row] = rows_of(made(staff.state, fall))
    assert row["response_language"] == "en"


@pytest.mark.sqlite
@pytest.mark.parametrize(("rare", "shown"), [("en", "en"), ("so", "*")])
def test_a_rare_response_language_is_left_out(staff, enrol, rare, shown):
    protected = opened(published(FIRST, "3"), "protected", minimum_group=5)
    for number in range(9):
        language = rare if number < 2 else "en"
        person = enrol(
            protected, staff.lincoln, language="en", response_language=language, **DONE
        )
        answer(person, {"safe": "1"})
    rows = rows_of(made(staff.state, protected))
    languages = {row["response_language"] for row in rows}
    assert languages == {shown}
    # What all people have on the roster tells nothing.
    assert {row["language"] for row in rows} == {"en"}


def test_a_panel_has_it_in_each_wave(staff, waves, take_part):
    for age, wave in enumerate(waves, 11):
        take_part(wave, staff.lincoln, "S1", age, response_language="es", **DONE)
    rows = rows_of(panel_of(staff.state, waves))
    assert [row["response_language"] for row in rows] == ["es", "es"]
