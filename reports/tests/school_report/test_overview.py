"""The overview chooses by nothing but the scores that a page shows."""

from __future__ import annotations

from dataclasses import replace

from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from reports.school_report.overview import Overview
from reports.school_report.parts import ReportPart, ScoreLine
from reports.scores.visible import VisibleScore
from survey.taking.rendering import Text


def line(score, *, name="Lincoln", error=3.0, is_positive=True):
    shown = None if score is None else VisibleScore(score, frozenset({1}), 30, error)
    return ScoreLine(name, shown, is_positive, is_hidden=score is None)


def part(name, score, before=None, *, is_positive=True, error=3.0):
    now = line(score, error=error, is_positive=is_positive)
    trend = [line(before, name="Spring", error=error), now] if before else []
    text = Text(SafeString(name))
    return ReportPart(name, text, Text(), [now], trend, is_positive=is_positive)


def names(parts):
    return [each.name for each in parts]


def test_measures_are_sorted_by_their_strength():
    parts = [part(f"m{n}", 10 * n) for n in range(1, 8)]
    # 85 of noise is as weak as 15 of trust.
    noise = part("noise", 85, is_positive=False)
    overview = Overview.of([(part("safe", 50), parts)], [noise])
    assert names(overview.strongest) == ["m7", "m6", "m5"]
    assert names(overview.weakest) == ["m1", "noise", "m2"]
    assert names(overview.themes) == ["safe", "noise"]
    assert names(overview.of_theme("safe")) == ["safe", *names(parts)]


def test_only_measures_that_differ_from_the_mean_by_more_than_chance_are_named():
    parts = [part("low", 10), part("high", 90), part("middle", 50)]
    overview = Overview.of([], parts)
    assert (names(overview.strongest), names(overview.weakest)) == (["high"], ["low"])
    # The half-width of the intervals is 1.96 × 3 = 5.9, and the mean is 46.
    close = [part("a", 45), part("b", 47), part("c", 48), part("d", 44)]
    overview = Overview.of([], close)
    assert not overview.strongest and not overview.weakest and overview.is_compared
    certain = [part(each.name, each.strength, error=0.4) for each in close]
    overview = Overview.of([], certain)
    assert (names(overview.strongest), names(overview.weakest)) == (
        *(["c", "b"], ["d", "a"]),
    )


def test_measures_can_stand_out_to_one_side_only():
    parts = [*(part(f"m{n}", 50, error=8.0) for n in range(4)), part("low", 20)]
    overview = Overview.of([], parts)
    assert not overview.strongest
    assert names(overview.weakest) == ["low"]
    text = render_to_string("reports/_highlights.html", {"overview": overview})
    assert "To work on" in text
    assert "Strongest" not in text and "No measure stands out" not in text


def test_a_sentence_says_that_no_measure_stands_out():
    for parts, is_said in (
        ([part("a", 45), part("b", 47)], True),
        ([part("a", 45)], False),
        ([part("a", 20, error=None), part("b", 80, error=None)], False),
    ):
        overview = Overview.of([], parts)
        text = render_to_string("reports/_highlights.html", {"overview": overview})
        assert ("No measure stands out" in text) is is_said
        assert "To work on" not in text


def test_a_theme_of_a_single_measure_is_not_named_beside_it():
    measures = [part("calm", 60, 40)]
    overview = Overview.of([(part("calmness", 60, 40), measures)], [])
    assert names(overview.changed) == ["calm"]
    both = [*measures, part("fair", 60, 40)]
    overview = Overview.of([(part("calmness", 60, 40), both)], [])
    assert names(overview.changed) == ["calmness", "calm", "fair"]


def test_a_hidden_score_is_in_no_list():
    parts = [part("hidden", None, 50), part("low", 10), part("high", 90)]
    overview = Overview.of([], parts)
    assert names((*overview.strongest, *overview.weakest)) == ["high", "low"]
    assert names(overview.themes) == ["hidden", "low", "high"]
    assert not overview.changed


def test_only_changes_beyond_chance_are_named_the_largest_first():
    parts = [
        *(part("same", 50, 49), part("up", 60, 40), part("down", 20, 60)),
        part("exact", 60, 40, error=None),
    ]
    overview = Overview.of([], parts)
    assert [(each.name, each.change.difference) for each in overview.changed] == [
        *(("down", -40), ("up", 20))
    ]


def test_the_legend_explains_an_uncertain_change_outside_the_line():
    # 63 lies outside of 44 to 60, the interval of 52.
    for score, before, error, is_explained in (
        *((52, 63, 4.1, True), (52, 63, 1.0, False), (52, None, 4.1, False)),
    ):
        theme = part("learning", score, before, error=error)
        context = {"overview": Overview.of([], [theme]), "parts": [theme]}
        notes = render_to_string("reports/_theme_notes.html", context)
        rows = render_to_string("reports/_theme_rows.html", context)
        assert ("both numbers have an error" in notes) is is_explained
        words = "Change since last time: −11, too uncertain to call a change"
        assert (words in rows) is is_explained


def test_a_row_says_what_a_theme_is_about_where_that_is_asked_for():
    theme = part("learning", 52)
    theme = replace(theme, description=Text(SafeString("Lessons ask to think.")))
    for describes in (True, False):
        context = {"parts": [theme], "describes": describes}
        rows = render_to_string("reports/_theme_rows.html", context)
        assert ("Lessons ask to think." in rows) is describes


def test_signs_are_explained_where_they_are_shown():
    shown = Overview.of([(part("safe", 50), [part("trust", 40)])], [])
    assert shown.shows_errors and not shown.shows_hidden
    hidden = Overview.of([(part("safe", 50), [part("trust", None)])], [])
    assert hidden.shows_hidden
    exact = Overview.of([], [part("trust", 50, error=None)])
    assert not exact.shows_errors


def test_a_hidden_earlier_score_is_no_last_time():
    now = line(50)
    trend = [line(40), line(None), now]
    hidden = ReportPart("m", Text(), Text(), [now], trend)
    assert hidden.last_time is None and hidden.change is None
    assert "earlier" not in hidden.picture
    assert "earlier" in part("m", 50, 40).picture


def test_the_interval_ends_on_the_scale():
    assert line(50).interval == "Between 44 and 56"
    assert line(97).interval == "Between 91 and 99"
    assert line(50, error=None).interval == ""
    assert line(50).span == ("88.2", "111.8")


def test_a_doubtful_theme_does_not_count_as_strong():
    strong, weak = part("strong", 70, error=1.0), part("weak", 30, error=1.0)
    # Of noise, much is not strong.
    noise = part("noise", 30, is_positive=False, error=1.0)
    doubtful = part("doubtful", 62, error=3.0)
    overview = Overview.of([], [strong, weak, noise, doubtful])
    assert overview.sentence == "2 of 4 themes are clearly strong. 1 could be strong."
    # A neutral one could be strong as well; a weak one could not.
    neutral = part("neutral", 58, error=3.0)
    assert Overview.of([], [neutral, weak]).sentence == (
        "No theme is clearly strong. 1 could be strong."
    )
    assert (
        Overview.of([], [strong, weak]).sentence == "1 of 2 themes are clearly strong."
    )
    page = render_to_string("reports/_theme_legend.html", {"overview": overview})
    assert "2 of 4 themes are clearly strong." in page


def test_themes_without_a_band_are_not_counted():
    """Where chance alone can explain how far schools differ, there are none."""
    shown = VisibleScore(70, frozenset({1}), 30, 1.0, reliability=0)
    text = Text(SafeString("x"))
    alone = ReportPart("x", text, Text(), [ScoreLine("Lincoln", shown)])
    assert Overview.of([], [alone]).sentence == ""
    strong = part("strong", 70, error=1.0)
    both = Overview.of([], [strong, alone])
    assert both.sentence == "1 of 2 themes are clearly strong. 1 is not rated."
    hidden = part("hidden", None)
    assert Overview.of([], [hidden]).sentence == ""
