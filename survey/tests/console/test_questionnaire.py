"""The questionnaire of an administration, to read and to print."""

from __future__ import annotations

import re

import pytest

from accounts.tests.logging_in import log_in
from survey.console.surveys.questionnaire import pages_of
from survey.instrument.definitions.schema import load_definition
from survey.tests.conftest import open_now

pytestmark = pytest.mark.django_db


def text_of(response) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode()))


def read(client, administration, **query):
    address = f"/console/administrations/{administration.pk}/questionnaire/"
    return client.get(address, query)


@pytest.mark.parametrize("login", ["state", "dana", "chen", "analyst"])
def test_all_who_see_the_administration_read_its_questions(
    client, staff, administration, login
):
    log_in(client, getattr(staff, login))
    text = text_of(read(client, administration))
    assert "Page 1: Page 1" in text and "Page 3: Page 3" in text
    assert "1. About safe" in text
    assert "disagree unsure agree" in text
    assert "One choice. An answer is required." in text
    # Rules in words, with the options' own words.
    assert "Shown only if the answer to question 2 includes “art”." in text
    assert "the answer is at least 4 and the answer is at most 19" in text
    assert "Shown only if the answer to question 3 is at least 13." in text
    assert "From 0 to 60 in steps of 5." in text
    assert "About welcome" in text


def test_each_language_has_its_texts(client, staff, administration):
    log_in(client, staff.chen)
    page = read(client, administration, language="es")
    assert "De safe" in text_of(page) and "About safe" not in text_of(page)
    # The language of the questions, not that of the console.
    assert ", in Español." in text_of(page)
    assert "?language=en" in page.content.decode()
    assert "?language=es" not in page.content.decode().partition("<main")[2]
    assert 'lang="es"' in page.content.decode()
    # Unknown ones are shown in the first.
    assert "About safe" in text_of(read(client, administration, language="<x>"))


def test_the_questions_are_in_the_reader_s_language(client, staff, administration):
    staff.chen.language = "es"
    staff.chen.save()
    log_in(client, staff.chen)
    assert "De safe" in text_of(read(client, administration))


def test_the_options_of_a_grid_stand_above_its_questions_once(publish):
    choice = {"kind": "select_one", "option_set": "agree"}
    definition = load_definition(
        publish([{"safe": choice, "clean": choice}]).definition
    )
    [block] = definition["pages"][0]["blocks"]
    block["grid"] = True
    [shown] = pages_of(definition, "en")[0].blocks
    assert [option.html for option in shown.columns] == ["disagree", "unsure", "agree"]
    block["grid"] = False
    [shown] = pages_of(definition, "en")[0].blocks
    assert not shown.columns


def test_an_administration_of_another_district_is_not_found(
    client, staff, administration
):
    administration.district = staff.riverside
    administration.save()
    log_in(client, staff.sam)
    assert read(client, administration).status_code == 404


def test_a_rule_that_computes_is_shown_as_it_was_written(client, staff, publish):
    pages = [
        {
            "age": {"kind": "integer"},
            "born": {
                "kind": "integer",
                "relevant": [">", ["+", ["$", "age"], 1], 4],
            },
            "name": {"kind": "text", "relevant": ["not", ["=", ["$", "age"], ""]]},
        }
    ]
    administration = open_now(publish(pages))
    log_in(client, staff.state)
    text = text_of(read(client, administration))
    assert "Shown only if ${age} + 1 &gt; 4." in text
    assert "Shown only if the answer to question 1 is not empty." in text


def test_repeated_answers_and_computed_texts_are_marked(client, staff, publish):
    pages = [
        {
            "class": {"kind": "calculate", "calculation": "7B"},
            "age": {"kind": "integer"},
            "about": {"kind": "text", "label": {"en": "In ${class}, at ${age}?"}},
        }
    ]
    administration = open_now(publish(pages))
    log_in(client, staff.state)
    text = text_of(read(client, administration))
    assert re.search(r"In ?… ?, at ?\[answer to question 1\] ?\?", text)


def test_options_and_rules_show_where_a_label_repeats_an_answer(publish):
    choice = {"kind": "select_one", "option_set": "agree"}
    later = {"kind": "text", "relevant": ["=", ["$", "choice"], "1"]}
    pages = [{"age": {"kind": "integer"}, "choice": choice, "later": later}]
    definition = load_definition(publish(pages).definition)
    definition["option_sets"]["agree"][0]["label"] = {"en": "Like at ${age}"}
    [block] = pages_of(definition, "en")[0].blocks
    _, chosen, shown = block.questions
    assert "Like at <span" in chosen.options[0].html
    assert "[answer to question 1]" in chosen.options[0].html
    assert shown.rules == [
        "Shown only if the answer to question 2 is “Like at [answer to question 1]”."
    ]


def test_the_page_takes_few_statements(
    client, staff, administration, django_assert_num_queries
):
    log_in(client, staff.chen)
    read(client, administration)
    # Session, user, memberships; the administration and the digest; whether the state
    # has made questions public.
    with django_assert_num_queries(6):
        read(client, administration)
