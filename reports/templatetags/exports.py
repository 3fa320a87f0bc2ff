from __future__ import annotations

from collections.abc import Mapping

from django import template

register = template.Library()


@register.filter
def label_in(language: str, texts: Mapping[str, str]) -> str:
    """The text in a language; one without languages is the same in all."""
    return texts.get(language) or texts.get("", "")
