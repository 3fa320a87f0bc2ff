"""Charts of unusual items: each has a sentence, a picture with a name and a table."""

from __future__ import annotations

import re

import pytest
from django.template.loader import render_to_string
from django.utils import timezone, translation

from reports.charts.charts import chart_pages
from reports.charts.sentences import isolated
from reports.results.distributions import ItemDistribution
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
    [(_stem, [item_chart])] = page.blocks
    return item_chart


def html(item_chart):
    return render_to_string(
        "reports/_results_chart.html", {"chart": item_chart, "page": None}
    )


LIKERT = {"appearance": ["likert"]}


def test_an_agreement_scale_without_a_measure_diverges_from_its_middle():
    item_chart = chart(definition(**LIKERT), {"Lincoln": group(10, 20, 30, 40)})
    assert item_chart.kind == "scale"
    [row] = item_chart.rows
    # 30 % are left of the middle, which is at 100 of 200 units.
    assert [(segment.start, segment.width) for segment in row.segments] == [
        *((70, 10), (80, 20), (100, 30), (130, 40))
    ]
    assert item_chart.sentence == "70 % answered “Rather agree” or “Agree”."
    page = html(item_chart)
    assert 'role="img" aria-label="Diverging bars of the answers: Lincoln."' in page
    assert '<rect class="shade-1" x="35%" y="15%" width="5%" height="70%">' in page
    assert '<line x1="50%" x2="50%"' in page
    assert re.findall(r'text-anchor="middle">(\d+)<', page) == ["10", "20", "30", "40"]
    assert page.count("<title>") == 4
    assert re.findall(r'<td class="number">(\d+ %)', page) == [
        "10 %",
        "20 %",
        "30 %",
        "40 %",
    ]


def test_a_narrow_segment_has_no_number():
    page = html(chart(definition(**LIKERT), {"Lincoln": group(1, 2, 47, 50)}))
    assert re.findall(r'text-anchor="middle">(\d+)<', page) == ["47", "50"]
    # Neither has a coded one, which is drawn as long as others allow.
    page = html(chart(definition(**LIKERT), {"Lincoln": coded(0, 0, 0, 30)}))
    assert "text-anchor" not in page


def test_neighbouring_hidden_answers_are_one_hatched_part():
    places = {"Lincoln": coded(2, 1, 2, 15), "Riverside": coded(1, 1, 4, 4)}
    item_chart = chart(definition(**LIKERT), places)
    [first, second] = item_chart.rows
    # Their length together is what the exact one leaves; it was in three equal parts.
    assert [segment.width for segment in first.segments] == [8.33, 8.33, 8.33, 75]
    assert [part.width for part in first.parts] == [24.99, 75]
    assert [part.text for part in second.parts] == ["hidden"]
    page = html(item_chart)
    assert page.count('<rect class="shade-hidden"') == 2
    assert not re.search(r'<rect class="shade-[123]"', page)
    assert page.count("hidden: the figures show only a bound") == 1
    assert page.count("<title>") == 3
    # No part is joined or hatched where all are exact.
    page = html(chart(definition(**LIKERT), {"Lincoln": group(10, 20, 30, 40)}))
    assert "shade-hidden" not in page


def test_a_bound_is_rounded_as_in_the_table():
    item_chart = chart(definition(**LIKERT), {"Lincoln": coded(14, 2, 1, 15)})
    assert item_chart.sentence == "At least 47 % answered “Rather agree” or “Agree”."
    assert item_chart.rows[0].segments[-1].cell == '47 % <span class="hint">(15)</span>'


def test_other_lists_have_bars_of_one_hue_the_longest_first():
    places = {"Lincoln": group(10, 40, 20, 30), "District": group(4, 3, 2, 1)}
    item_chart = chart(definition(), places)
    assert item_chart.kind == "choice"
    page = html(item_chart)
    assert 'aria-label="Bars of the answers: Lincoln, District."' in page
    assert "<line" not in page and "shade-1" not in page
    assert re.findall(r'<rect width="(\d+)%"', page) == ["40", "30", "20", "10"]
    assert re.findall(r'class="mark-0" x="(\d+)%"', page)[1:] == [
        "30",
        "10",
        "20",
        "40",
    ]
    assert [label.text for label, _cells, _change in item_chart.transposed] == [
        AGREE[at] for at in (1, 3, 2, 0)
    ]


def test_answers_with_numbers_keep_their_order():
    labels = ["Grade 6", "Grade 7", "Grade 8", "Other"]
    item_chart = chart(definition(labels), {"Lincoln": group(10, 40, 20, 30)})
    assert re.findall(r'<rect width="(\d+)%"', html(item_chart)) == [
        *("10", "40", "20", "30")
    ]


def test_a_hidden_answer_is_last_and_has_neither_a_bar_nor_a_mark():
    answers = group(0, 40, 20, 30, measured="multiple", answered=50)
    del answers.items["safe"].values["1"]
    survey = definition(kind="select_multiple")
    item_chart = chart(survey, {"Lincoln": answers, "District": answers})
    page = html(item_chart)
    assert item_chart.bar_order == [1, 3, 2, 0]
    assert re.findall(r'<rect width="(\d+)%"', page) == ["80", "60", "40", "0"]
    assert re.findall(r'class="mark-0" x="(\d+)%"', page)[1:] == ["80", "60", "40"]
    assert '<span class="bar-percent">*</span>' in page


def test_items_below_each_other_share_a_legend():
    survey = definition(**LIKERT)
    survey["items"]["calm"] = survey["items"]["safe"] | {"id": 2}
    survey["pages"][0]["blocks"][0]["items"].append("calm")
    answers = group(1, 2, 3, 4)
    answers.items["calm"] = answers.items["safe"]
    [page] = chart_pages(survey, "en", None, {"Lincoln": answers}, {})
    [(_stem, charts)] = page.blocks
    assert [html(each).count('class="legend"') for each in charts] == [1, 0]
    # Phones repeat it, by the style sheet.
    assert [html(each).count('class="legend repeated"') for each in charts] == [0, 1]
    # The colors are explained where the first bar is.
    hidden = VisibleGroup(
        *(timezone.now(), 50, 50, {"calm": answers.items["safe"]}, ["safe"])
    )
    [page] = chart_pages(survey, "en", None, {"Lincoln": hidden}, {})
    [(_stem, charts)] = page.blocks
    assert [html(each).count('class="key shade-7"') for each in charts] == [0, 1]


def test_labels_that_quote_answers_show_none_and_stay_apart():
    labels = ["${child}’s teacher", "${child}", "${friend}", "Somebody else"]
    survey = definition(labels)
    for name in ("child", "friend"):
        survey["items"][name] = {"id": 2, "page": 1, "kind": "text"}
    item_chart = chart(survey, {"Lincoln": group(10, 20, 30, 40)})
    assert [label.text for label in item_chart.columns] == [
        *("…’s teacher", "… (2)", "… (3)", "Somebody else")
    ]
    assert "${" not in html(item_chart)


def test_half_of_the_middle_answer_is_on_each_side():
    item_chart = chart(
        definition([*AGREE, "Fully"], **LIKERT), {"Lincoln": group(0, 0, 50, 0, 0)}
    )
    middle = item_chart.rows[0].segments[2]
    assert (middle.start, middle.width) == (50, 100)
    assert "0 % answered “Agree” or “Fully”" in item_chart.sentence


def test_a_scale_with_more_steps_than_colors_has_a_bar_for_each_answer():
    labels = [str(n) for n in range(11)]
    item_chart = chart(definition(labels, **LIKERT), {"Lincoln": group(*range(1, 12))})
    assert item_chart.has_bar_per_answer
    assert html(item_chart).count('class="answer-bar"') == 11


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
    item_chart = chart(survey, {"Lincoln": answers}, {"May": answers})
    assert item_chart.sentence == "Nobody answered this question."
    assert "changes by chance" not in html(item_chart)
    assert not item_chart.changes


def test_everybody_in_one_category_is_a_whole_bar():
    item_chart = chart(
        definition(**LIKERT),
        {"Lincoln": group(0, 0, 0, 30), "Riverside": group(5, 0, 0, 5)},
        {"May": group(30, 0, 0, 0)},
    )
    last = item_chart.rows[0].segments[-1]
    assert (last.start, last.width) == (100, 100)
    assert item_chart.sentence == (
        "100 % answered “Rather agree” or “Agree”; Riverside: 50 %. +100 percentage"
        " points compared with May, more than chance alone explains."
    )
    assert [change.text for change in item_chart.changes] == [
        "−100",
        "0",
        "0",
        "+100",
    ]


def test_numbers_have_a_histogram_with_a_name_and_a_mean():
    item_chart = chart(
        definition([], kind="integer"),
        {"Lincoln": group(5, 10, 5, measured="number", start=9)},
    )
    assert item_chart.sentence == "The mean is 10.0."
    assert 'aria-label="Histograms of the numbers: Lincoln."' in html(item_chart)
    assert "10.0 (±0.3)" in html(item_chart)


def test_a_hidden_place_is_a_star_in_the_picture_and_the_table():
    item_chart = chart(
        definition(**LIKERT), {"Lincoln": group(1, 2, 3, 4), "May": None}
    )
    page = html(item_chart)
    assert '<span class="bar-hidden">*</span>' in page
    # Four answers and four states.
    assert page.count('<td class="number">*</td>') == 8


def test_the_change_of_a_hidden_result_is_not_shown():
    item_chart = chart(definition(), {"Lincoln": group(1, 2, 3, 4)}, {"May": None})
    assert [row.is_compared for row in item_chart.rows] == [False, True]
    assert not item_chart.changes
    assert "compared with" not in item_chart.sentence


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
    item_chart = chart(survey, {"Lincoln": group(1, 2, 3, 4)}, language="ar")
    assert item_chart.sentence == (
        "70 % answered “\u2068أوافق قليلا\u2069” or “\u2068أوافق\u2069”."
    )
    page = html(item_chart)
    assert '<bdi lang="ar" dir="rtl">أوافق</bdi>' in page
    assert (
        '<th scope="col" class="answer number" lang="ar" dir="rtl">أوافق</th>' in page
    )
    with translation.override("ar"):
        item_chart = chart(
            survey,
            {"Lincoln": group(1, 2, 3, 4), "All": group(1, 1, 1, 1)},
            language="ar",
        )
        page = html(item_chart)
    assert "«أوافق»" in item_chart.sentence
    assert "\u2068All\u2069: 50 %" in item_chart.sentence
    assert "lang=" not in page


def test_an_answer_without_a_label_is_called_by_its_value():
    survey = definition(["", "Two"])
    assert chart(survey, {"Lincoln": group(3, 1)}).columns[0].text == "1"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Lincoln", "\u2068Lincoln\u2069"),
        ("\u2068Lincoln\u2069", "\u2068Lincoln\u2069"),
        # Names come from rosters, and may open or close an isolate themselves.
        ("\u2068Lincoln", "\u2068\u2068Lincoln\u2069"),
        ("\u2068Lin\u2069coln\u2069", "\u2068\u2068Lin\u2069coln\u2069\u2069"),
    ],
)
def test_a_name_of_the_other_direction_is_isolated_once(name, expected):
    with translation.override("ar"):
        assert isolated(name) == expected


def coded(*counts, **options):
    figures = group(*counts, **options)
    assert figures.items["safe"].code_ends(5)
    return figures


def test_a_coded_answer_is_a_bound_in_the_picture_and_the_table():
    item_chart = chart(definition(**LIKERT), {"Lincoln": coded(0, 4, 38, 58)})
    segments = item_chart.rows[0].segments
    assert [segment.percent for segment in segments] == [
        *("under 5\u00a0%", "under 5\u00a0%", "38 %", "58 %")
    ]
    # What the exact ones leave, in equal parts.
    assert [segment.share for segment in segments] == [2, 2, 38, 58]
    page = html(item_chart)
    assert '<td class="number">under 5\u00a0%</td>' in page
    lines = [f"{label}: under 5\u00a0%" for label in AGREE[:2]]
    assert "<title>{}</title>".format("\n".join(lines)) in page
    assert "(0)" not in page and "(4)" not in page
    # Both parts are exact.
    assert item_chart.sentence == "96 % answered “Rather agree” or “Agree”."


def test_everybody_in_one_answer_is_over_the_bound_and_drawn_there():
    item_chart = chart(definition(**LIKERT), {"Lincoln": coded(0, 0, 0, 30)})
    assert [segment.percent for segment in item_chart.rows[0].segments] == [
        *["under 10\u00a0%"] * 3,
        "over 90\u00a0%",
    ]
    assert item_chart.rows[0].segments[-1].share == 90
    assert item_chart.sentence == "Over 90 % answered “Rather agree” or “Agree”."
    assert "100 %" not in html(item_chart)


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ((40, 2, 3, 55), "At least 55 % answered “Rather agree” or “Agree”."),
        ((60, 37, 1, 2), "Under 10 % answered “Rather agree” or “Agree”."),
        ((96, 1, 3, 0), "Under 5 % answered “Rather agree” or “Agree”."),
        # All four are under 49 %, and under 98 % would say nothing.
        ((1, 1, 4, 4), ""),
    ],
)
def test_a_sentence_tells_only_what_the_shown_parts_tell(counts, words):
    item_chart = chart(definition(**LIKERT), {"Lincoln": coded(*counts)})
    assert item_chart.sentence == words


def test_other_places_are_coded_in_the_sentence_too():
    places = {"Lincoln": group(10, 20, 30, 40), "Riverside": coded(40, 2, 3, 55)}
    item_chart = chart(definition(**LIKERT), places, {"May": coded(0, 0, 0, 30)})
    # No change: 70 % compared with over 90 % would be a bound as well.
    assert item_chart.sentence == (
        "70 % answered “Rather agree” or “Agree”; Riverside: at least 55 %."
    )
    assert item_chart.changes == [None] * 4


@pytest.mark.parametrize(
    ("counts", "options", "words"),
    [
        ((0, 0, 0, 30), {}, "The most frequent answer is “Agree” (over 90 %)."),
        ((2, 2, 40, 56), {}, "The most frequent answer is “Agree” (56 %)."),
        # All four are under 49 %.
        ((1, 1, 4, 4), {}, ""),
        (
            (100, 98, 50, 0),
            {"measured": "multiple", "answered": 100},
            # Two are over 95 %.
            "",
        ),
    ],
)
def test_the_most_frequent_answer_is_named_if_the_bounds_tell_it(
    counts, options, words
):
    survey = definition(kind="select_multiple") if options else definition()
    item_chart = chart(survey, {"Lincoln": coded(*counts, **options)})
    assert item_chart.sentence == words


def test_a_coded_answer_of_a_multiple_choice_has_half_a_bar():
    survey = definition(kind="select_multiple")
    answers = coded(100, 0, 50, 60, measured="multiple", answered=100)
    item_chart = chart(survey, {"Lincoln": answers})
    assert [segment.share for segment in item_chart.rows[0].segments] == [
        95,
        2.5,
        50,
        60,
    ]


def test_the_mean_of_coded_numbers_is_between_what_they_allow():
    answers = coded(1, 3, 46, 40, 10, measured="number", start=9)
    assert answers.items["safe"].coded.keys() == {"9", "10"}
    item_chart = chart(definition([], kind="integer"), {"Lincoln": answers})
    # 4 people are 9 or 10, at most 4 of them 9: from 11.54 to 11.58, exactly 11.55.
    assert item_chart.rows[0].mean is None
    assert item_chart.rows[0].mean_ends == (11.5, 11.6)
    assert item_chart.sentence == "The mean is between 11.5 and 11.6."
    assert item_chart.means == ["11.5 to 11.6"]
    everybody = coded(0, 0, 30, measured="number", start=9)
    item_chart = chart(definition([], kind="integer"), {"Lincoln": everybody})
    assert item_chart.sentence == "The mean is between 10.8 and 11.0."
    assert [segment.share for segment in item_chart.rows[0].segments] == [5, 5, 90]


def test_coded_and_exact_figures_of_numbers_are_compared_by_the_same_bins():
    now = coded(1, 3, 46, 40, 10, measured="number", start=9)
    before = group(5, 15, 20, 30, 30, measured="number", start=9)
    item_chart = chart(
        definition([], kind="integer"), {"Lincoln": now}, {"May": before}
    )
    assert [label.text for label in item_chart.columns] == ["9", "10", "11", "12", "13"]
    assert [change and change.text for change in item_chart.changes] == [
        *(None, None, "+26", "+10", "−20")
    ]
    assert item_chart.mean_change is None


def test_a_number_that_only_the_compared_results_have_is_coded_too():
    now = coded(1, 3, 46, 40, 10, measured="number", start=9)
    before = group(5, 15, 20, 30, 30, measured="number", start=10)
    item_chart = chart(
        definition([], kind="integer"), {"Lincoln": now}, {"May": before}
    )
    assert [segment.percent for segment in item_chart.rows[0].segments][-2:] == [
        "10 %",
        "under 5\u00a0%",
    ]
    assert item_chart.changes[-1] is None
