"""Every table that refers to a place or person is known to merging."""

from __future__ import annotations

import pytest

from accounts.models import District, School
from survey.models import Respondent
from survey.people.merging.references import foreign_keys_to, references_to

MODELS = [School, District, Respondent]


@pytest.mark.parametrize("model", MODELS)
def test_every_foreign_key_is_declared(model):
    assert foreign_keys_to(model) == references_to(model).keys(), (
        "say at the model what a merge does with its new foreign key, such as"
        " `class CardSet(Table, school=Reference.MOVED)`"
    )


@pytest.mark.parametrize("model", MODELS)
def test_relations_of_the_models_are_declared_foreign_keys(model):
    """Relations that are no foreign keys would be missed by the test above."""
    through = {
        f"{relation.related_model._meta.label}.{relation.field.name}"
        for relation in model._meta.get_fields(include_hidden=True)
        if relation.auto_created and not relation.concrete and not relation.many_to_many
    }
    assert through == references_to(model).keys()


def test_a_new_foreign_key_would_be_noticed():
    without = references_to(School).keys() - {"survey.CardSet.school"}
    assert foreign_keys_to(School) != without
