"""Test the drafts and edits of `provisioning/run measure_editor`."""

from __future__ import annotations

import pytest
from django.test import Client

from accounts.models import User
from accounts.tests.logging_in import log_in
from provisioning.measure.benchmarks import editor_drafts
from provisioning.measure.benchmarks.editor import EDITS
from provisioning.staff_login import cookies_of_state
from survey.instrument.drafts.reading import read_rows_of
from survey.models import DraftChange, Survey

pytestmark = pytest.mark.django_db


@pytest.fixture
def draft():
    cookies_of_state()
    return editor_drafts.create_draft("measured", (3, 12, 30))


def test_a_measured_draft_has_its_size_and_no_problems(draft):
    reading = read_rows_of(Survey.objects.get(pk=draft["pk"]))

    assert reading.problems == []
    assert [len([*page.items()]) for page in reading.draft.pages] == [4, 4, 4]
    assert [*map(len, reading.draft.option_sets.values())] == [4, 30]
    assert len(reading.draft.languages) == 3


def test_each_edit_changes_the_draft_in_each_round(draft):
    client = log_in(Client(), User.objects.get(email=editor_drafts.STATE))
    rounds = editor_drafts.rounds_of_edits(draft, times=2)

    for number, forms in enumerate(rounds, 1):
        assert tuple(forms) == EDITS
        for sort, form in forms.items():
            before = Survey.objects.get(pk=draft["pk"]).last_change
            headers = {"accept": "application/json"}
            reply = client.post(draft["change"], form, headers=headers)
            after = Survey.objects.get(pk=draft["pk"]).last_change
            assert (reply.status_code, after) == (200, before + 1), (number, sort)
    # Typing goes on in the change before it.
    assert set(DraftChange.objects.values_list("action", flat=True)) >= {
        "set",
        "down",
        "up",
        "add",
        "set_rule",
    }


def test_statements_of_edits_do_not_grow_with_the_draft(draft):
    counts = editor_drafts.count_statements(draft, 1)
    larger = editor_drafts.create_draft("larger", (30, 120, 300))

    assert set(counts) == {"open", *EDITS}
    assert editor_drafts.count_statements(larger, 1) == counts
