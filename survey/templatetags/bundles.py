"""Style sheets and scripts, whose addresses are the same for everyone."""

from __future__ import annotations

from functools import cache

from django import template
from django.conf import settings
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

register = template.Library()


@register.simple_tag
def bundle(name: str) -> SafeString:
    """Render a template of compressed bundles, once if they were built offline.

    django-compressor finds a bundle by rendering its contents, which takes a
    third of the time of a respondent's page.
    """
    return _render_once(name) if settings.COMPRESS_OFFLINE else render_to_string(name)


@cache
def _render_once(name: str) -> SafeString:
    return render_to_string(name)
