"""Sentences about what is hidden, for pages of other apps as well."""

from __future__ import annotations

from django import template

from reports.models import ResultsRollUp
from reports.results.menu import attribute_label
from reports.suppression import explanation
from survey.models import Administration

register = template.Library()
register.simple_tag(explanation.results_shown)
register.simple_tag(explanation.files_without_names)


@register.filter
def unbroken_percent(text: str) -> str:
    """Keep numbers on one line with their percent signs."""
    return text.replace(" %", "\u00a0%")


@register.inclusion_tag("reports/_repeating_columns.html")
def repeating_columns(
    administration: Administration, may_change: bool = False
) -> dict[str, object]:
    """Say which columns no school shows, and to some users what to do. 1 statement."""
    rows = ResultsRollUp.objects.filter(pk=administration.pk)
    columns = rows.values_list("repeating", flat=True).first() or []
    labels = [
        (attribute_label(column), attribute_label(repeated) if repeated else "")
        for column, repeated in columns
    ]
    return {
        "sentences": explanation.repeating_columns(labels),
        "may_change": may_change,
    }
