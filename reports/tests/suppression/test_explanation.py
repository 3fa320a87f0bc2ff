"""The sentences that explain what is hidden."""

from __future__ import annotations

import pytest
from django.utils import translation

from reports.suppression.explanation import hidden_figures, results_shown

READERS = "public", "school", "all"


def text_for(reader, minimum=10, **options):
    return " ".join(hidden_figures(minimum, reader, **options))


@pytest.mark.parametrize("minimum", [2, 10, 25])
def test_sentences_have_the_minimum_of_the_administration(minimum):
    for reader in READERS:
        text = text_for(reader, minimum)
        assert f"at least {minimum} people answered" in text
        assert f"fewer than {minimum} people answered it" in text
    assert f"at least {minimum} of the people who were counted" in text_for(
        "all", minimum
    )


def test_without_a_minimum_no_sentence_says_that_few_people_are_hidden():
    for reader in READERS:
        text = text_for(reader, 1)
        assert "however few people answered" in text
        for claim in ("fewer than", "at least 1 ", "few people, a number", "1 people"):
            assert claim not in text


def test_each_reader_reads_what_is_hidden_from_this_reader():
    small_schools, of_reports = "only together", "schools that have a report"
    grades, districts = "group of a school", "up to a fifth of the people"
    unpublished, files = "Nothing is published by grade", "file without names"
    expected = {
        "public": {of_reports, unpublished},
        "school": {of_reports, grades},
        "all": {small_schools, grades, districts, files},
    }
    sentences = {small_schools, of_reports, grades, districts, unpublished, files}
    for reader, shown in expected.items():
        text = text_for(reader)
        assert {sentence for sentence in sentences if sentence in text} == shown
    assert of_reports not in text_for("public", has_reports=False)
    # Teachers have no grades, and perhaps no columns of the roster.
    without_groups = text_for("all", has_groups=False)
    assert small_schools in without_groups
    assert grades not in without_groups and districts not in without_groups


def test_a_page_has_few_words():
    for reader in READERS:
        assert 100 < len(text_for(reader).split()) <= 180


@pytest.mark.parametrize(("language", "word"), [("es", "menos de 12"), ("ar", "12")])
def test_sentences_are_translated(language, word):
    english = hidden_figures(12, "all") + hidden_figures(12, "public")
    with translation.override(language):
        translated = hidden_figures(12, "all") + hidden_figures(12, "public")
        assert results_shown(12) == translated[0]
    assert len(translated) == len(english)
    assert not set(translated) & set(english)
    assert word in " ".join(translated)


def test_coded_shares_are_explained_to_everybody():
    for reader in READERS:
        assert any("under 5 %" in sentence for sentence in hidden_figures(10, reader))
