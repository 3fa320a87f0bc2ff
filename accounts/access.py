"""Declare an access rule on each view, and enforce the rules in middleware.

A view without a rule raises an error for everyone, so that a forgotten rule
shows at once and never leaks. `permissions` says what each role may do.

::

    @needs(Capability.SEE_RATES)
    def board(request): ...

A rule admits users to a page. What they see there is limited to their places
by `request.permissions`: lists are filtered, and objects elsewhere are 404.
Pages of a user take GET, HEAD and POST; `require_safe` and `require_POST` narrow it.
They are never cached.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial, update_wrapper
from typing import TypeVar, cast

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import ImproperlyConfigured
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseNotAllowed,
)
from django.shortcuts import redirect, resolve_url
from django.urls import URLPattern, URLResolver
from django.utils import timezone
from django.utils.functional import SimpleLazyObject

from accounts.http import StaffRequest
from accounts.permissions import Capability, Permissions
from accounts.second_factor import has_second_factor

METHODS = ("GET", "HEAD", "POST")
View = TypeVar("View", bound=Callable[..., HttpResponseBase])


class Audience(Enum):
    ANYONE = auto()
    # Logged in, even without the second factor, so that it can be set up.
    SIGNED_IN = auto()
    # With a membership, and with the second factor if its role requires one.
    STAFF = auto()
    # Users of Django's admin.
    ENGINEER = auto()


@dataclass(frozen=True, slots=True)
class Rule:
    audience: Audience
    # For staff: one of these in any place. Empty: no capability is needed.
    capabilities: frozenset[Capability] = frozenset()
    # Whether everyone is admitted at this moment.
    is_public: Callable[[], bool] | None = None


ANYONE = Rule(Audience.ANYONE)
SIGNED_IN = Rule(Audience.SIGNED_IN)
STAFF = Rule(Audience.STAFF)
ENGINEER = Rule(Audience.ENGINEER)


def rule_of(view: object) -> Rule | None:
    return getattr(view, "access_rule", None)


def anyone(view: View) -> View:
    """Admit everyone, logged in or not."""
    return _ruled(view, ANYONE)


def signed_in(view: View) -> View:
    return _ruled(view, SIGNED_IN)


def staff(view: View) -> View:
    return _ruled(view, STAFF)


def needs(*capabilities: Capability) -> Callable[[View], View]:
    """Admit staff with one of these capabilities in any place; 404 for others."""
    rule = Rule(Audience.STAFF, frozenset(capabilities))
    return lambda view: _ruled(view, rule)


def staff_unless(is_public: Callable[[], bool]) -> Callable[[View], View]:
    """Admit staff, and everyone while `is_public()` is true."""
    rule = Rule(Audience.STAFF, is_public=is_public)
    return lambda view: _ruled(view, rule)


def _ruled(view: View, rule: Rule) -> View:
    view.access_rule = rule  # type: ignore[attr-defined]
    return view


def under(
    rule: Rule, patterns: Sequence[URLPattern | URLResolver]
) -> Sequence[URLPattern | URLResolver]:
    """Give one rule to all routes of a third-party package."""
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            under(rule, pattern.url_patterns)
        elif rule_of(pattern.callback) is None:
            # Wrapped, because a bound method takes no attribute.
            wrapper = partial(pattern.callback)
            update_wrapper(wrapper, pattern.callback)
            pattern.callback = _ruled(wrapper, rule)
    return patterns


class AccessMiddleware:
    """Enforce the rule of each view before it runs. 1 statement for staff.

    Sets `request.permissions`, which are read from the database on first use, and
    shows times in the zone of the user's district.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        request.permissions = SimpleLazyObject(  # type: ignore[attr-defined]
            lambda: Permissions(request.user)  # type: ignore[arg-type]
        )
        # Ends a time zone that the rule of a view begins, also where it raises.
        with timezone.override(None):
            response = self.get_response(request)
        if getattr(request, "is_personal", False):
            # Keep names and figures out of the browser's cache, where the next
            # user of a shared computer could go back to them.
            response.headers.setdefault("Cache-Control", "private, no-store")
        return response

    def process_view(
        self,
        request: HttpRequest,
        view: View,
        args: Sequence[object],
        kwargs: dict[str, object],
    ) -> HttpResponse | None:
        rule = rule_of(view)
        if rule is None:
            raise ImproperlyConfigured(f"{view.__module__}.{view.__name__} has no rule")
        if rule.audience is Audience.ANYONE or (rule.is_public and rule.is_public()):
            return None
        request.is_personal = True  # type: ignore[attr-defined]
        if not request.user.is_authenticated:
            return redirect_to_login(
                request.get_full_path(), resolve_url(settings.LOGIN_URL)
            )
        permissions = cast(StaffRequest, request).permissions
        if rule.audience is not Audience.ENGINEER:
            timezone.activate(permissions.time_zone)
        if rule.audience is Audience.SIGNED_IN:
            return _refuse_methods(request)
        if rule.audience is Audience.ENGINEER:
            allowed = request.user.is_active and request.user.is_staff
            needs_second_factor = True
        else:
            allowed = bool(permissions.memberships) and (
                not rule.capabilities or any(map(permissions.has, rule.capabilities))
            )
            needs_second_factor = permissions.needs_second_factor
        # Not 403, which would tell what other roles have.
        if not allowed:
            raise Http404
        # A demonstration may switch it off.
        if not settings.SECOND_FACTOR_REQUIRED and settings.EMBEDDED:
            needs_second_factor = False
        if needs_second_factor and not has_second_factor(request):
            return redirect(settings.SECOND_FACTOR_URL)
        return _refuse_methods(request)


def _refuse_methods(request: HttpRequest) -> HttpResponse | None:
    if request.method in METHODS:
        return None
    return HttpResponseNotAllowed(METHODS)
