"""Give pages addresses by which templates and `reverse` find them."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpResponseBase
from django.urls import URLPattern, path


def page(route: str, view: Callable[..., HttpResponseBase]) -> URLPattern:
    """Return the path to a view, named like the view's function."""
    return path(route, view, name=view.__name__)
