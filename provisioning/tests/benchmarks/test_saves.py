from __future__ import annotations

from provisioning.benchmarks.saves import figures_of, first_answers


def test_choices_are_answered_and_other_items_left_blank():
    rules = {
        "items": {
            "safe": {"kind": "select_one", "option_set": "agree"},
            "why": {"kind": "text"},
            "thanks": {"kind": "note"},
            "total": {"kind": "calculate"},
            "seed": {"kind": "hidden"},
        },
        "option_sets": {"agree": [{"value": "4"}, {"value": "1"}]},
    }
    answers = first_answers(["safe", "why", "thanks", "total", "seed"], rules)
    assert answers == {"safe": "4", "why": None}


def test_figures_are_median_percentile_and_maximum():
    median, p95, most = figures_of([float(n) for n in range(1, 101)])
    assert (median, most) == ("50.50", "100.00")
    assert 95 <= float(p95) <= 96
