"""Equal texts of `SharedJSONField` are decoded once, and are one object."""

from __future__ import annotations

import pytest
from django.db import models
from django.utils import timezone

from reports.models import ResultsRollUp
from reports.models.shared_json import DECODED, SharedJSONField

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite]

LAYOUT = {"items": [["safe", "choice", ["1", "2"]]], "widths": {}, "columns": []}


@pytest.fixture
def roll_up(administer):
    """Store the results of an administration, with any layout."""

    def create(name, layout=LAYOUT):
        now = timezone.now()
        return ResultsRollUp.objects.create(
            administration=administer(name), as_of=now, written_at=now, layout=layout
        )

    return create


def test_instances_with_the_same_text_share_the_decoded_value(roll_up):
    roll_up("fall")
    roll_up("spring")
    fall, spring = ResultsRollUp.objects.all()
    assert fall.layout == LAYOUT
    assert fall.layout is spring.layout
    [layout, _] = ResultsRollUp.objects.values_list("layout", flat=True)
    assert layout is fall.layout


def test_an_ordinary_field_decodes_each_text_again(roll_up):
    """The twin."""
    roll_up("fall")
    ResultsRollUp.objects.update(kept_schools=[1])
    first, second = (ResultsRollUp.objects.get() for _ in range(2))
    assert first.kept_schools == second.kept_schools == [1]
    assert first.kept_schools is not second.kept_schools


def test_a_layout_that_was_replaced_is_read_anew(roll_up):
    stored = roll_up("fall")
    assert ResultsRollUp.objects.get().layout == LAYOUT
    stored.layout = LAYOUT | {"widths": {"age": "5"}}
    stored.save(update_fields=["layout"])
    assert ResultsRollUp.objects.get().layout["widths"] == {"age": "5"}


def test_texts_that_have_not_been_read_for_a_while_are_forgotten():
    field = SharedJSONField()
    first = field.from_db_value("[0]", None, None)
    assert field.from_db_value("[0]", None, None) is first
    for number in range(1, DECODED + 1):
        field.from_db_value(f"[{number}]", None, None)
    assert field.from_db_value("[0]", None, None) is not first


def test_null_is_none():
    assert SharedJSONField(null=True).from_db_value(None, None, None) is None


def test_migrations_see_an_ordinary_json_field():
    field, ordinary = SharedJSONField(null=True), models.JSONField(null=True)
    assert field.deconstruct() == ordinary.deconstruct()
