"""Every route of the project, those of its packages too."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import quote

from django.urls import URLPattern, URLResolver, get_resolver
from django.urls.resolvers import RegexPattern
from django.utils.regex_helper import normalize

from accounts.access import Rule, rule_of

PARAMETER = re.compile(r"%\((\w+)\)s")


@dataclass(frozen=True)
class Route:
    name: str
    # The address, with %(parameter)s where it has one.
    template: str
    view: Callable[..., Any]

    @property
    def rule(self) -> Rule | None:
        return rule_of(self.view)

    @property
    def parameters(self) -> list[str]:
        return PARAMETER.findall(self.template)

    @property
    def database_role(self) -> str:
        """The role of the stack's process that serves this route."""
        return "taking" if self.view in _respondents_views() else "console"

    def address(self, values: dict[str, object]) -> str:
        parts = {name: quote(str(value), safe="/") for name, value in values.items()}
        return "/" + self.template % parts

    def __str__(self) -> str:
        return f"{self.name or 'unnamed'} (/{self.template})"


def routes(urlconf: str | None = None) -> list[Route]:
    return list(_under(get_resolver(urlconf), (), ""))


@cache
def _respondents_views() -> set[Callable[..., Any]]:
    return {route.view for route in routes("survey.urls")}


def _under(
    resolver: URLResolver, namespaces: tuple[str, ...], before: str
) -> Iterator[Route]:
    for pattern in resolver.url_patterns:
        address = before + _template(pattern)
        if isinstance(pattern, URLResolver):
            inner = (
                (*namespaces, pattern.namespace) if pattern.namespace else namespaces
            )
            yield from _under(pattern, inner, address)
        else:
            name = ":".join((*namespaces, pattern.name or ""))
            yield Route(name, address, pattern.callback)


def _template(pattern: URLPattern | URLResolver) -> str:
    if isinstance(pattern.pattern, RegexPattern):
        # The first of its possibilities.
        return normalize(pattern.pattern.regex.pattern)[0][0]
    route = str(pattern.pattern).replace("%", "%%")
    return re.sub(r"<(?:[^>:]+:)?(\w+)>", r"%(\1)s", route)
