"""Every table that refers to a place or person is known to merging."""

from __future__ import annotations

import pytest

from accounts.models import District, School
from survey.models import Respondent
from survey.people.merging.references import (
    DISTRICT_REFERENCES,
    RESPONDENT_REFERENCES,
    SCHOOL_REFERENCES,
    foreign_keys_to,
)

LISTS = [
    (School, SCHOOL_REFERENCES),
    (District, DISTRICT_REFERENCES),
    (Respondent, RESPONDENT_REFERENCES),
]


@pytest.mark.parametrize(("model", "known"), LISTS)
def test_every_foreign_key_is_known(model, known):
    assert foreign_keys_to(model) == set(known), (
        "add the new foreign key to survey/people/merging/references.py, and decide"
        " what a merge does with it"
    )


@pytest.mark.parametrize(("model", "known"), LISTS)
def test_relations_of_the_models_are_foreign_keys_in_the_lists(model, known):
    """Relations that are no foreign keys would be missed by the test above."""
    through = {
        f"{relation.related_model._meta.label}.{relation.field.name}"
        for relation in model._meta.get_fields(include_hidden=True)
        if relation.auto_created and not relation.concrete and not relation.many_to_many
    }
    assert through == set(known)


def test_a_new_foreign_key_would_be_noticed():
    without = set(SCHOOL_REFERENCES) - {"survey.CardSet.school"}
    assert foreign_keys_to(School) != without
