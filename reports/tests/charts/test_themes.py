"""Questions are put under themes; what is about people comes last."""

from __future__ import annotations

from reports.charts.themes import question_themes


def survey(*pages, scales=()):
    """Return a survey whose pages have these items; "ok" is the consent."""
    items = {
        name: {"id": number, "page": 1, "kind": "select_one", "option_set": "agree"}
        for number, name in enumerate(name for names in pages for name in names)
    }
    for name in scales:
        items[name]["appearance"] = ["likert"]
        items[name]["option_set"] = "scale"
    if "ok" in items:
        items["ok"]["kind"] = "acknowledge"
    return {
        "items": items,
        "option_sets": {"agree": [], "scale": []},
        "pages": [
            {"title": {}, "blocks": [{"label": {}, "grid": False, "items": names}]}
            for names in pages
        ],
    }


def measure(name, *items, essential=""):
    items = [{"name": item, "reversed": False} for item in items]
    parts = {"description": {}, "direction": "positive", "missing": []}
    label = {"en": name.title()}
    return parts | {
        "name": name,
        "label": label,
        "essential": essential,
        "items": items,
    }


def themes_of(definition, *measures, counted=None):
    essentials = [{"name": "safety", "label": {"en": "Safety"}, "description": {}}]
    content = {"essentials": essentials, "measures": list(measures)}
    counted = definition["items"] if counted is None else counted
    return [
        (theme.key, theme.items)
        for theme in question_themes(definition, content, counted)
    ]


def test_questions_follow_their_theme_and_those_about_people_are_last():
    definition = survey(
        *(["ok", "mood"], ["grade"], ["calm", "halls", "where"]),
        *(["job", "plan"], ["week"]),
    )
    assert themes_of(
        definition,
        measure("order", "calm", "halls", essential="safety"),
        measure("future", "job"),
    ) == [
        ("theme.safety", ["calm", "halls", "where"]),
        ("theme.future", ["job", "plan"]),
        ("page.5", ["week"]),
        ("about", ["ok", "mood", "grade"]),
    ]


def test_an_item_of_another_theme_on_a_page_is_under_its_own():
    definition = survey(["calm", "halls", "job", "where"])
    assert themes_of(
        definition,
        measure("order", "calm", "halls", essential="safety"),
        measure("future", "job"),
    ) == [("theme.safety", ["calm", "halls", "where"]), ("theme.future", ["job"])]


def test_items_without_figures_are_left_out_and_so_is_a_theme_of_them():
    definition = survey(["calm"], ["job"])
    measures = [measure("order", "calm", essential="safety"), measure("future", "job")]
    assert themes_of(definition, *measures, counted={"job"}) == [
        ("theme.future", ["job"])
    ]


def test_without_measures_the_first_scale_ends_the_questions_about_people():
    definition = survey(["ok"], ["grade"], ["calm"], ["week"], scales=["calm"])
    assert [
        (theme.key, theme.items)
        for theme in question_themes(definition, None, definition["items"])
    ] == [("page.3", ["calm"]), ("page.4", ["week"]), ("about", ["ok", "grade"])]


def test_without_any_scale_only_consent_is_about_people():
    definition = survey(["ok", "grade"], ["week"])
    assert [
        (theme.key, theme.items)
        for theme in question_themes(definition, None, definition["items"])
    ] == [("page.1", ["grade"]), ("page.2", ["week"]), ("about", ["ok"])]
