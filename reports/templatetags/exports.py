from __future__ import annotations

from collections.abc import Mapping

from django import template

register = template.Library()


@register.filter
def label_in(language: str, texts: Mapping[str, str]) -> str:
    """Return the text in a language, or the text for all languages."""
    return texts.get(language) or texts.get("", "")
