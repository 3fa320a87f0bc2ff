"""Questions that stand out are chosen by nothing but what their charts show."""

from __future__ import annotations

import pytest
from django.template.loader import render_to_string
from django.utils import timezone

from reports.charts.highlights import highlights_of
from reports.results.distributions import ItemDistribution
from reports.results.visible import VisibleGroup, code_ends

AGREE = ("Strongly disagree", "Disagree", "Agree", "Strongly agree")


def survey(names, labels=AGREE, wordings=None):
    options = [
        {"value": str(n), "label": {"en": label}, "attributes": {}}
        for n, label in enumerate(labels, start=1)
    ]
    items = {
        name: {
            **{"id": n, "page": 1, "kind": "select_one", "option_set": "list"},
            "appearance": ["likert"],
            "label": {"en": (wordings or {}).get(name, f"Question {name}")},
        }
        for n, name in enumerate(names)
    }
    block = {"label": {}, "grid": False, "items": list(names)}
    return {
        "languages": [{"code": "en", "name": "", "direction": "ltr"}],
        "option_sets": {"list": options},
        "items": items,
        "pages": [{"title": {}, "blocks": [block]}],
    }


def measures(names, *, direction="positive", turned=()):
    return {
        "essentials": [],
        "measures": [
            {
                **{"name": "climate", "label": {"en": "Climate"}, "description": {}},
                **{"essential": "", "direction": direction, "missing": []},
                "items": [{"name": n, "reversed": n in turned} for n in names],
            }
        ],
    }


def item(*counts):
    values = {str(value): n for value, n in enumerate(counts, start=1)}
    return ItemDistribution("choice", sum(counts), values=values)


def group(threshold=0, **counts):
    """Return what is shown of these counts; None is a question that is hidden."""
    items = {name: item(*each) for name, each in counts.items() if each}
    hidden = [name for name, each in counts.items() if not each]
    hidden += code_ends(items, threshold) if threshold else []
    return VisibleGroup(timezone.now(), 200, 200, items, hidden)


# 20 to 90 % on the upper half, of 100 people.
SPREAD = {
    name: (0, 100 - percent, percent, 0)
    for name, percent in zip("abcdefgh", range(20, 100, 10), strict=True)
}


def of(place, before=None, *, definition=None, scored=None, earlier=None):
    names = [*place.items, *place.hidden_items]
    return highlights_of(
        *(definition or survey(sorted(names)), "en"),
        measures(names) if scored is None else scored,
        {"Lincoln": place},
        {"May 2025": before} if before else {},
        earlier,
    )


def names(questions):
    return [question.chart.name for question in questions]


def text_of(highlights, **context):
    return render_to_string(
        "reports/_question_highlights.html", {"highlights": highlights} | context
    )


def test_the_three_strongest_and_weakest_questions_are_named_with_their_figures():
    highlights = of(group(**SPREAD))
    assert names(highlights.strongest) == ["h", "g", "f"]
    assert names(highlights.weakest) == ["a", "b", "c"]
    text = text_of(highlights)
    assert "8 questions on a scale are compared; 100 people answered each." in text
    assert "Question h" in text and "<strong>90 %</strong>" in text
    assert "“Agree” or “Strongly agree”" in text
    assert "percent as the last one" not in text
    # A public page compares with nothing, and says nothing about it.
    assert "earlier figures" not in text


def test_the_good_side_is_that_of_the_measure():
    place = group(a=(40, 40, 10, 10), b=(10, 10, 40, 40), c=(25, 25, 25, 25))
    for direction, turned in (("negative", ()), ("positive", "abc")):
        scored = measures("abc", direction=direction, turned=turned)
        highlights = of(place, scored=scored)
        assert names(highlights.strongest) == ["a"]
        assert names(highlights.weakest) == ["b"]
        assert "“Strongly disagree” or “Disagree”" in text_of(highlights)
    scored = measures("abc", direction="negative", turned="abc")
    assert names(of(place, scored=scored).strongest) == ["b"]


def test_without_measures_nothing_is_called_strong_or_weak():
    highlights = of(group(**SPREAD), scored={"essentials": [], "measures": []})
    assert not highlights.strongest and not highlights.weakest
    assert "does not say which answers are good" in text_of(highlights)


def test_small_differences_and_small_groups_name_nothing():
    close = {name: (0, 50 - n, 50 + n, 0) for n, name in enumerate("abcd")}
    few = {name: tuple(n // 10 for n in counts) for name, counts in SPREAD.items()}
    few = {name: few[name] for name in "bcdef"}
    for counts in (close, few):
        highlights = of(group(**counts))
        assert not highlights.strongest and not highlights.weakest
        assert "No question stands out" in text_of(highlights)


def test_ties_at_the_end_of_a_list_are_said():
    tied = dict.fromkeys("abcde", (0, 10, 90, 0))
    low = dict.fromkeys("wxyz", (0, 90, 10, 0))
    highlights = of(group(**tied, **low))
    assert names(highlights.strongest) == ["a", "b", "c"]
    assert names(highlights.weakest) == ["w", "x", "y"]
    text = text_of(highlights)
    assert "2 more questions have as many percent as the last one." in text
    assert "1 more question has as many percent as the last one." in text


def test_bounds_are_compared_as_bounds():
    middle = dict.fromkeys("bcd", (0, 50, 50, 0))
    highlights = of(group(5, a=(0, 0, 2, 98), **middle, e=(98, 2, 0, 0)))
    assert names(highlights.strongest) == ["a"]
    assert "<strong>over 95 %</strong>" in text_of(highlights)
    assert names(highlights.weakest) == ["e"]
    assert "<strong>under 5 %</strong>" in text_of(highlights)
    # "At least 20 %" can be more, so it is no weakness.
    raised = group(5, a=(4, 73, 2, 21), b=(0, 20, 80, 0), c=(0, 25, 75, 0))
    shares = {each.chart.name: each.share.words for each in of(raised).questions}
    assert shares["a"] == "at least 21 %"
    assert not of(raised).weakest


def test_changes_are_named_where_both_times_show_a_number():
    before = group(a=(0, 80, 20, 0), b=(0, 48, 52, 0), c=(0, 20, 80, 0), d=None)
    now = group(a=(0, 50, 50, 0), b=(0, 50, 50, 0), c=(0, 40, 60, 0), d=(0, 9, 91, 0))
    highlights = of(now, before)
    assert names(highlights.changed) == ["a", "c"]
    text = text_of(highlights, says_last_time=True)
    assert "<strong>+30</strong>" in text and "<strong>−20</strong>" in text
    assert "Percentage points since May 2025." in text
    # Of a group, nobody asked this at that time.
    highlights = of(now, group(b=(0, 48, 52, 0)))
    text = text_of(highlights, says_last_time=True)
    assert "Compared with May 2025, no question has changed" in text
    for nothing in (None, group(d=None)):
        text = text_of(of(now, nothing), says_last_time=True)
        assert "There are no earlier figures of these questions" in text


def test_a_question_in_other_words_is_not_compared():
    before, now = group(a=(0, 80, 20, 0)), group(a=(0, 50, 50, 0))
    earlier = survey("a", wordings={"a": "Something else"})
    assert names(of(now, before, earlier=survey("a")).changed) == ["a"]
    assert not of(now, before, earlier=earlier).has_changes


def test_nothing_is_said_without_questions_on_a_scale():
    assert text_of(of(group(a=None, b=None))).strip() == ""


# Counts of two questions that readers cannot tell apart: one is hidden, and of the
# other they see "over 90 %" and three times "under 10 %".
ALIKE = (((0, 1, 1, 28), (1, 1, 0, 28)), ((28, 1, 1, 0), (0, 1, 0, 29)))


@pytest.mark.parametrize("is_protected", [True, False])
def test_nothing_of_a_hidden_number_follows_from_what_is_named(is_protected):
    pages = set()
    shown = []
    for hidden, coded in ALIKE:
        counts = dict.fromkeys("abc", (6, 9, 9, 6)) | {"coded": coded}
        place = group(5, **counts, hidden=None)
        shown.append(dict(place.items))
        if not is_protected:
            # As if it were chosen by the counts behind the page.
            place.items["hidden"] = item(*hidden)
            place.items["coded"] = item(*coded)
        definition = survey([*"abc", "coded", "hidden"])
        pages.add(text_of(of(place, definition=definition)))
    assert shown[0] == shown[1]
    assert (len(pages) == 1) is is_protected
