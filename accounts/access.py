"""Which rule each route has, and the middleware that holds it.

A view that declares no rule answers nobody: forgetting one is an error that
shows at once, not a leak. The rules themselves stand in `permissions`.

::

    @needs(Capability.SEE_RATES)
    def board(request): ...

What a rule lets in sees its own places only: lists are filtered, and a single
thing from elsewhere is a 404, by `request.permissions`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import wraps
from typing import Any, TypeVar

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import ImproperlyConfigured
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, resolve_url
from django.urls import URLPattern, URLResolver
from django.utils.functional import SimpleLazyObject

from accounts.permissions import Capability, Permissions
from accounts.second_factor import has_second_factor

View = TypeVar("View", bound=Callable[..., HttpResponseBase])


class Who(Enum):
    ANYONE = auto()
    # Logged in; without a second factor as well, to be able to set it up.
    SIGNED_IN = auto()
    # With a membership, and with the second factor where it asks for one.
    STAFF = auto()
    # Django's admin.
    ENGINEER = auto()


@dataclass(frozen=True, slots=True)
class Rule:
    who: Who
    # For staff: one of these, anywhere at all; none: whatever they are.
    capabilities: frozenset[Capability] = frozenset()


ANYONE = Rule(Who.ANYONE)
SIGNED_IN = Rule(Who.SIGNED_IN)
STAFF = Rule(Who.STAFF)
ENGINEER = Rule(Who.ENGINEER)


def rule_of(view: Callable[..., Any]) -> Rule | None:
    return getattr(view, "access_rule", None)


def anyone(view: View) -> View:
    """For whoever asks, logged in or not."""
    return _ruled(view, ANYONE)


def signed_in(view: View) -> View:
    return _ruled(view, SIGNED_IN)


def staff(view: View) -> View:
    return _ruled(view, STAFF)


def needs(*capabilities: Capability) -> Callable[[View], View]:
    """Staff who have one of these somewhere; to others the page is not there."""
    rule = Rule(Who.STAFF, frozenset(capabilities))
    return lambda view: _ruled(view, rule)


def _ruled(view: View, rule: Rule) -> View:
    view.access_rule = rule  # type: ignore[attr-defined]
    return view


def under(
    rule: Rule, patterns: Sequence[URLPattern | URLResolver]
) -> Sequence[URLPattern | URLResolver]:
    """The routes of a package that knows no rules, all under one."""
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            under(rule, pattern.url_patterns)
        elif rule_of(pattern.callback) is None:
            # Wrapped, for a bound method takes no attribute.
            pattern.callback = _ruled(_wrapped(pattern.callback), rule)
    return patterns


def _wrapped(view: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(view)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return view(*args, **kwargs)

    return wrapped


class AccessMiddleware:
    """Asks the rule of each view before it runs. 1 statement for staff.

    `request.permissions` are the asking user's, read when first used.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        request.permissions = SimpleLazyObject(  # type: ignore[attr-defined]
            lambda: Permissions(request.user)  # type: ignore[arg-type]
        )
        response = self.get_response(request)
        if getattr(request, "is_for_somebody", False):
            # Names and figures stay in no browser's cache, where whoever sits
            # at the computer next goes back to them.
            response.headers.setdefault("Cache-Control", "private, no-store")
        return response

    def process_view(
        self,
        request: HttpRequest,
        view: Callable[..., Any],
        args: Sequence[Any],
        kwargs: dict[str, Any],
    ) -> HttpResponse | None:
        rule = rule_of(view)
        if rule is None:
            raise ImproperlyConfigured(f"{view.__module__}.{view.__name__} has no rule")
        if rule.who is Who.ANYONE:
            return None
        request.is_for_somebody = True  # type: ignore[attr-defined]
        if not request.user.is_authenticated:
            return redirect_to_login(
                request.get_full_path(), resolve_url(settings.LOGIN_URL)
            )
        if rule.who is Who.SIGNED_IN:
            return None
        _check_role(request, rule)
        if _needs_second_factor(request, rule) and not has_second_factor(request):
            return redirect(settings.SECOND_FACTOR_URL)
        return None


def _check_role(request: HttpRequest, rule: Rule) -> None:
    """Raises Http404 for who is not meant."""
    if rule.who is Who.ENGINEER:
        allowed = request.user.is_active and request.user.is_staff
    else:
        permissions: Permissions = request.permissions  # type: ignore[attr-defined]
        allowed = bool(permissions.memberships) and (
            not rule.capabilities or any(map(permissions.has, rule.capabilities))
        )
    if not allowed:
        raise Http404


def _needs_second_factor(request: HttpRequest, rule: Rule) -> bool:
    if not settings.SECOND_FACTOR_REQUIRED and settings.EMBEDDED:
        return False
    permissions: Permissions = request.permissions  # type: ignore[attr-defined]
    return rule.who is Who.ENGINEER or permissions.needs_second_factor
