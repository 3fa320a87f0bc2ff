"""Where the marks of the charts of response rates are."""

from __future__ import annotations

import pytest

from reports.console.rates.plots import axis_top, curve_plot, rate_axis_top
from reports.rates.time_series import CurvePoint


def test_bars_and_curve_are_in_percent_of_their_axes():
    points = [
        CurvePoint("Mon", 8, 4, 20.0, None),
        CurvePoint("Tue", 4, 10, 40.0, 15.0),
        CurvePoint("Wed", 0, 0, None, 30.0, is_school_day=False),
        CurvePoint("Thu", 0, 0, None, 45.0),
    ]
    plot = curve_plot(points)
    assert (plot.people_top, plot.rate_top) == (10, 50)
    monday, tuesday, *_ = plot.columns
    assert (monday.left, monday.width, monday.middle) == ("0.00%", "25.00%", "12.50%")
    assert (monday.started_top, monday.started_height) == ("20.00%", "80.00%")
    assert (tuesday.finished_top, tuesday.finished_height) == ("0.00%", "100.00%")
    assert plot.rate_path == "M12.50 60.00L37.50 20.00"
    assert plot.pace_path == "M37.50 70.00L62.50 40.00L87.50 10.00"
    assert (plot.last_rate, plot.last_x, plot.last_y) == (40, "37.50%", "20.00%")
    assert plot.has_days_off
    assert tuesday.tooltip == "Tue: 4 started, 10 finished, 40 %"


def test_without_rates_there_is_no_curve():
    plot = curve_plot([CurvePoint("7 AM", 0, 0, None)])
    assert (plot.rate_path, plot.pace_path, plot.last_x) == ("", "", "")
    assert (plot.people_top, plot.has_days_off) == (1, False)
    assert curve_plot([]) is None


def test_few_labels_are_shown_of_many_days():
    points = [CurvePoint(str(day), 1, 1, None) for day in range(60)]
    labels = curve_plot(points).labels
    assert [label.text for label in labels[:3]] == ["0", "8", "16"]
    assert [label.is_minor for label in labels[:3]] == [False, True, True]


@pytest.mark.parametrize(
    ("most", "top"), [(0, 1), (5, 5), (6, 10), (10, 10), (11, 20), (48, 50), (51, 100)]
)
def test_an_axis_of_people_ends_at_a_round_number(most, top):
    assert axis_top(most) == top


@pytest.mark.parametrize(("most", "top"), [(0.5, 10), (42, 50), (96, 100), (104, 110)])
def test_an_axis_of_rates_ends_at_the_next_ten(most, top):
    assert rate_axis_top(most) == top
