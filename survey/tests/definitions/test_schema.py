"""The schema of published surveys agrees with the models."""

from __future__ import annotations

from typing import get_args

from survey.instrument.definitions.schema import (
    ANSWERABLE,
    ITEM_TEXTS,
    RULES,
    SELECTS,
    VISIBLE,
    ItemDefinition,
    RuleName,
    TextName,
)
from survey.models import Item, Response
from survey.taking import validation


def test_kinds_of_the_schema_are_those_of_the_model():
    assert {*Item.Kind} - ANSWERABLE == {"note", "calculate", "hidden"}
    assert {*Item.Kind} - VISIBLE == {"calculate", "hidden"}
    assert SELECTS < ANSWERABLE < VISIBLE < {*Item.Kind}


def test_rules_and_texts_are_keys_of_an_item():
    assert get_args(RuleName) == RULES
    assert get_args(TextName) == ITEM_TEXTS
    assert {*RULES, *ITEM_TEXTS} < ItemDefinition.__optional_keys__


def test_saved_states_are_plain_strings_of_the_model():
    states = [validation.ANSWERED, validation.SKIPPED, validation.HIDDEN]
    assert states == list(Response.State)
    assert all(type(state) is str for state in states)
