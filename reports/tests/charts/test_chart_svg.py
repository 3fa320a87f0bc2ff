"""A chart as a file has the figures of the page, and is well-formed."""

from __future__ import annotations

from xml.etree import ElementTree

from reports.charts.chart_svg import chart_svg
from reports.tests.charts.test_charts import LIKERT, chart, coded, definition, group

SVG = "{http://www.w3.org/2000/svg}"


def texts(content):
    tree = ElementTree.fromstring(content)  # noqa: S314
    return [element.text for element in tree.iter(f"{SVG}text")]


def test_a_scale_has_a_bar_for_each_place_and_a_legend():
    places = {"Lincoln": group(10, 20, 30, 40), "A & <B>": None}
    drawn = texts(chart_svg(chart(definition(**LIKERT), places)))
    assert drawn[:2] == ["Safe?", "70 % answered “Rather agree” or “Agree”."]
    assert drawn[2:9] == ["Lincoln", "10", "20", "30", "40", "A & <B>", "*"]
    assert drawn[9:] == ["Disagree", "Rather disagree", "Rather agree", "Agree"]


def test_answers_without_an_order_are_sorted_as_on_the_page():
    content = chart_svg(chart(definition(), {"Lincoln": group(10, 40, 20, 30)}))
    assert texts(content)[2:] == [
        *("Rather disagree", "40 %", "Agree", "30 %"),
        *("Rather agree", "20 %", "Disagree", "10 %"),
    ]


def test_a_coded_answer_is_a_bound():
    answers = {"Lincoln": coded(0, 0, 0, 30)}
    drawn = texts(chart_svg(chart(definition(), answers)))
    assert "over 90\u00a0%" in drawn and "100 %" not in drawn
    drawn = texts(chart_svg(chart(definition(**LIKERT), answers)))
    assert not any(text.isdigit() for text in drawn)


def test_hidden_parts_of_a_scale_are_hatched_and_named():
    hatched = 'fill="url(#hidden)"'
    content = chart_svg(chart(definition(**LIKERT), {"Lincoln": coded(1, 1, 4, 4)}))
    # The part with its word, and the legend.
    assert content.count(hatched) == texts(content).count("hidden") == 2
    content = chart_svg(chart(definition(**LIKERT), {"Lincoln": group(1, 1, 4, 4)}))
    assert hatched not in content and "hidden" not in texts(content)


def test_a_hidden_item_has_stars_and_no_bars():
    content = chart_svg(chart(definition(), {"Lincoln": None}))
    assert texts(content).count("*") == 4
    assert 'width="0.0"' in content
