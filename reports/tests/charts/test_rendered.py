"""`rendered_once` renders a template once for the same figures and language."""

from __future__ import annotations

import pytest
from django.core.cache import cache
from django.utils import translation

from reports.charts import rendered
from reports.charts.rendered import rendered_once

TEMPLATE = "reports/_results_charts.html"


@pytest.fixture
def drawings(monkeypatch) -> list[object]:
    """Keep nothing of other tests; return what was rendered since."""
    cache.clear()
    drawn: list[object] = []

    def render(template: str, context: dict[str, object]) -> str:
        drawn.append(context["figure"])
        return f"<p>{context['figure']} – {translation.get_language()[:2]}</p>"

    monkeypatch.setattr(rendered, "render_to_string", render)
    return drawn


def test_the_same_figures_are_rendered_once(drawings):
    pages = [rendered_once(TEMPLATE, {"figure": 12}, {"safe": 12}) for _ in range(2)]
    assert pages == ["<p>12 – en</p>"] * 2
    assert drawings == [12]


def test_other_figures_and_languages_are_rendered_anew(drawings):
    rendered_once(TEMPLATE, {"figure": 12}, {"safe": 12})
    assert "11" in rendered_once(TEMPLATE, {"figure": 11}, {"safe": 11})
    with translation.override("es"):
        assert "es" in rendered_once(TEMPLATE, {"figure": 11}, {"safe": 11})
    assert drawings == [12, 11, 11]


def test_a_key_without_the_figures_would_show_those_of_others(drawings):
    """The twin."""
    rendered_once(TEMPLATE, {"figure": 12}, "place 3")
    assert "12" in rendered_once(TEMPLATE, {"figure": 11}, "place 3")


def test_a_cache_that_is_away_costs_only_time(drawings, monkeypatch):
    monkeypatch.setattr(cache, "get", lambda key: None)
    monkeypatch.setattr(cache, "set", lambda *entry: False)
    for _ in range(2):
        assert rendered_once(TEMPLATE, {"figure": 12}, 12) == "<p>12 – en</p>"
    assert drawings == [12, 12]
