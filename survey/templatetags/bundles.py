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
    """The template, rendered once where its bundles were made beforehand.

    Compressor finds a bundle by rendering what goes into it: a third of what
    a page of a respondent costs.
    """
    return _once(name) if settings.COMPRESS_OFFLINE else _rendered(name)


def _rendered(name: str) -> SafeString:
    return render_to_string(name)


_once = cache(_rendered)
