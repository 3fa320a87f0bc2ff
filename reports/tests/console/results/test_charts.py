"""Charts of unusual items: each has a sentence, a picture with a name and a table."""

from __future__ import annotations

import re

import pytest
from django.template.loader import render_to_string
from django.utils import timezone, translation

from reports.console.results.charts import chart_pages
from reports.console.results.sentences import isolated
from reports.results.reading import ItemDistribution
from reports.results.visible import VisibleGroup

AGREE = ["Disagree", "Rather disagree", "Rather agree", "Agree"]
ARABIC = ["لا أوافق", "لا أوافق تماما", "أوافق قليلا", "أوافق"]


def definition(labels=AGREE, language="en", **item):
    """Return a survey with one question that has these answers."""
    item = {
        "id": 1,
        "page": 1,
        "kind": "select_one",
        "label": {language: "Safe?"},
    } | item
    options = [
        {"value": str(n), "label": {language: label}, "attributes": {}}
        for n, label in enumerate(labels, start=1)
    ]
    direction = "rtl" if language == "ar" else "ltr"
    return {
        "languages": [{"code": language, "name": "", "direction": direction}],
        "option_sets": {"list": options},
        "items": {"safe": item | ({"option_set": "list"} if labels else {})},
        "pages": [
            {"title": {}, "blocks": [{"label": {}, "grid": False, "items": ["safe"]}]}
        ],
    }


def group(*counts, measured="choice", width="", start=1, **states):
    values = {str(value): n for value, n in enumerate(counts, start=start)}
    answered = states.pop("answered", sum(counts))
    item = ItemDistribution(measured, answered, values=values, width=width, **states)
    return VisibleGroup(timezone.now(), 50, 50, {"safe": item})


def chart(survey, places, compared=(), language="en"):
    pages = chart_pages(survey, language, None, places, dict(compared))
    [page] = pages
    [(_stem, [found])] = page.blocks
    return found


def html(found):
    return render_to_string(
        "reports/_results_chart.html", {"chart": found, "page": None}
    )


LIKERT = {"appearance": ["likert"]}


def test_an_agreement_scale_without_a_measure_diverges_from_its_middle():
    found = chart(definition(**LIKERT), {"Lincoln": group(10, 20, 30, 40)})
    assert found.kind == "scale"
    [row] = found.rows
    # 30 % are left of the middle, which is at 100 of 200 units.
    assert [(one.start, one.width) for one in row.segments] == [
        *((70, 10), (80, 20), (100, 30), (130, 40))
    ]
    assert found.sentence == "70 % answered “Rather agree” or “Agree”."
    page = html(found)
    assert 'role="img" aria-label="Diverging bars of the answers: Lincoln."' in page
    assert '<rect class="shade-1" x="70.0" y="1" width="10.0" height="8">' in page
    assert '<line x1="100" x2="100"' in page
    assert page.count("<title>") == 4
    assert re.findall(r'<td class="number">(\d+ %)', page) == [
        "10 %",
        "20 %",
        "30 %",
        "40 %",
    ]


def test_other_lists_have_bars_from_the_left():
    found = chart(definition(), {"Lincoln": group(10, 20, 30, 40)})
    assert found.kind == "choice"
    assert found.rows[0].segments[0].start == 0
    assert 'aria-label="Bars of the answers: Lincoln."' in html(found)
    assert "<line" not in html(found)


def test_labels_that_quote_answers_show_none_and_stay_apart():
    labels = ["${child}’s teacher", "${child}", "${friend}", "Somebody else"]
    survey = definition(labels)
    for name in ("child", "friend"):
        survey["items"][name] = {"id": 2, "page": 1, "kind": "text"}
    found = chart(survey, {"Lincoln": group(10, 20, 30, 40)})
    assert [label.text for label in found.columns] == [
        *("…’s teacher", "… (2)", "… (3)", "Somebody else")
    ]
    assert "${" not in html(found)


def test_half_of_the_middle_answer_is_on_each_side():
    found = chart(
        definition([*AGREE, "Fully"], **LIKERT), {"Lincoln": group(0, 0, 50, 0, 0)}
    )
    middle = found.rows[0].segments[2]
    assert (middle.start, middle.width) == (50, 100)
    assert "0 % answered “Agree” or “Fully”" in found.sentence


def test_a_scale_with_more_steps_than_colours_has_a_bar_for_each_answer():
    labels = [str(n) for n in range(11)]
    found = chart(definition(labels, **LIKERT), {"Lincoln": group(*range(1, 12))})
    assert found.has_bar_per_answer
    assert "answer-bar" in html(found)


@pytest.mark.parametrize(
    ("survey", "answers"),
    [
        (definition(**LIKERT), group(0, 0, 0, 0, skipped=9)),
        (definition(), group(0, 0, 0, 0, skipped=9)),
        (definition(kind="select_multiple"), group(0, 0, 0, 0, measured="multiple")),
        (definition([], kind="integer"), group(measured="number")),
    ],
)
def test_an_item_without_answers_says_so(survey, answers):
    found = chart(survey, {"Lincoln": answers}, {"May": answers})
    assert found.sentence == "Nobody answered this question."
    assert "changes by chance" not in html(found)
    assert not found.changes


def test_everybody_in_one_category_is_a_whole_bar():
    found = chart(
        definition(**LIKERT),
        {"Lincoln": group(0, 0, 0, 30), "Riverside": group(5, 0, 0, 5)},
        {"May": group(30, 0, 0, 0)},
    )
    last = found.rows[0].segments[-1]
    assert (last.start, last.width) == (100, 100)
    assert found.sentence == (
        "100 % answered “Rather agree” or “Agree”; Riverside: 50 %. +100 percentage"
        " points compared with May, more than chance alone explains."
    )
    assert [one.text for one in found.changes] == ["−100", "±0", "±0", "+100"]


def test_numbers_have_a_histogram_with_a_name_and_a_mean():
    found = chart(
        definition([], kind="integer"),
        {"Lincoln": group(5, 10, 5, measured="number", start=9)},
    )
    assert found.sentence == "The mean is 10.0."
    assert 'aria-label="Histograms of the numbers: Lincoln."' in html(found)
    assert "10.0 (±0.3)" in html(found)


def test_a_hidden_place_is_a_star_in_the_picture_and_the_table():
    found = chart(definition(**LIKERT), {"Lincoln": group(1, 2, 3, 4), "May": None})
    page = html(found)
    assert '<span class="bar-hidden">*</span>' in page
    # Four answers and four states.
    assert page.count('<td class="number">*</td>') == 8


def test_the_change_of_a_hidden_result_is_not_shown():
    found = chart(definition(), {"Lincoln": group(1, 2, 3, 4)}, {"May": None})
    assert [row.is_compared for row in found.rows] == [False, True]
    assert not found.changes
    assert "compared with" not in found.sentence


@pytest.mark.parametrize(("is_other_survey", "rows"), [(True, 1), (False, 2)])
def test_answers_with_other_labels_are_not_compared_with_another_survey(
    is_other_survey, rows
):
    theirs = definition(["Never", "Rarely", "Often", "Always"])
    [page] = chart_pages(
        definition(),
        "en",
        None,
        {"Lincoln": group(1, 2, 3, 4)},
        {"Teachers": group(4, 3, 2, 1)},
        {},
        theirs,
        is_other_survey=is_other_survey,
    )
    # In another wave of the survey, a label may have been corrected.
    assert len(page.blocks[0][1][0].rows) == rows


def test_arabic_answers_are_marked_and_do_not_move_the_words_around_them():
    survey = definition(ARABIC, "ar", **LIKERT)
    found = chart(survey, {"Lincoln": group(1, 2, 3, 4)}, language="ar")
    assert found.sentence == (
        "70 % answered “\u2068أوافق قليلا\u2069” or “\u2068أوافق\u2069”."
    )
    page = html(found)
    assert '<bdi lang="ar" dir="rtl">أوافق</bdi>' in page
    assert (
        '<th scope="col" class="answer number" lang="ar" dir="rtl">أوافق</th>' in page
    )
    with translation.override("ar"):
        found = chart(
            survey,
            {"Lincoln": group(1, 2, 3, 4), "All": group(1, 1, 1, 1)},
            language="ar",
        )
        page = html(found)
    assert "«أوافق»" in found.sentence
    assert "\u2068All\u2069: 50 %" in found.sentence
    assert "lang=" not in page


def test_an_answer_without_a_label_is_called_by_its_value():
    survey = definition(["", "Two"])
    assert chart(survey, {"Lincoln": group(3, 1)}).columns[0].text == "1"


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("Lincoln", "\u2068Lincoln\u2069"),
        ("\u2068Lincoln\u2069", "\u2068Lincoln\u2069"),
        # Names come from rosters, and may open or close an isolate themselves.
        ("\u2068Lincoln", "\u2068\u2068Lincoln\u2069"),
        ("\u2068Lin\u2069coln\u2069", "\u2068\u2068Lin\u2069coln\u2069\u2069"),
    ],
)
def test_a_name_of_the_other_direction_is_isolated_once(name, found):
    with translation.override("ar"):
        assert isolated(name) == found
