"""Sentences about what is hidden, for pages of other apps as well."""

from __future__ import annotations

from django import template

from reports.suppression import explanation

register = template.Library()
register.simple_tag(explanation.results_shown)
register.simple_tag(explanation.files_without_names)
