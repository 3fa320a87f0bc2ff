"""The overview chooses by nothing but the scores that a page shows."""

from __future__ import annotations

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


def test_no_measure_is_both_strong_and_weak():
    parts = [part("low", 10), part("high", 90), part("middle", 50)]
    overview = Overview.of([], parts)
    assert (names(overview.strongest), names(overview.weakest)) == (["high"], ["low"])
    alike = [part(name, 50) for name in ("a", "b", "c")]
    overview = Overview.of([], alike)
    assert (names(overview.strongest), names(overview.weakest)) == (["a"], ["c"])
    overview = Overview.of([], parts[:1])
    assert not overview.strongest and not overview.weakest


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
