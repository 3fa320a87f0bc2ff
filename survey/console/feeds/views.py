"""The console's pages of feeds: the list, one feed, and its settings."""

from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from accounts.access import needs
from accounts.console.listing import Listing
from accounts.http import StaffRequest
from accounts.models import District
from accounts.permissions import Places
from survey.console.administrations.forms import show_errors
from survey.console.feeds.forms import (
    KIND_LABELS,
    FeedForm,
    NewFeedForm,
    RemoveFeedForm,
    identity_in_words,
    options_in_words,
)
from survey.console.feeds.scope import (
    MANAGE,
    feed_or_404,
    feeds_of,
    next_window,
    status_of,
    with_status,
)
from survey.console.feeds.stage_rows import scan_rows
from survey.fieldwork.administrations import administrations_in
from survey.fieldwork.administrations.queries import with_titles
from survey.models import Administration, Denominator, FeedScan, RosterFeed
from survey.people.rosters.feeds import feeds

State = FeedScan.State
# Scans of a feed's history on one page.
SCANS_PER_PAGE = 20


@needs(MANAGE)
@require_safe
def feed_list(request: StaffRequest) -> HttpResponse:
    """List feeds: late ones first, then others that need somebody. 2 statements."""
    listing = Listing(
        request,
        with_status(feeds_of(request)),
        search=("name", "district__name"),
        sorts={
            "state": (
                "-is_late",
                "status_rank",
                "-failures_in_a_row",
                "scanned_at",
                "name",
            ),
            "name": ("name",),
            "district": ("district__name", "name"),
            "scanned": ("-scanned_at",),
            "people": ("-people",),
        },
    )
    now = timezone.now()
    rows = [
        {"feed": feed, "status": status_of(feed), "next_window": next_window(feed, now)}
        for feed in listing.page.object_list
    ]
    return listing.render(
        "survey/console/feed_list.html",
        {"feeds": rows},
    )


@needs(MANAGE)
@require_safe
def feed_detail(request: StaffRequest, pk: int) -> HttpResponse:
    feed = feed_or_404(request, pk)
    listing = Listing(
        request,
        feed.scans.using(feed._state.db)
        .select_related("by")
        .prefetch_related("stages"),
        sorts={"started": ("-created_at",)},
        per_page=SCANS_PER_PAGE,
    )
    scans = list(listing.page.object_list)
    newest = feed.scans.using(feed._state.db).order_by("-pk").first()
    context = {
        "feed": feed,
        "kind": KIND_LABELS[RosterFeed.Kind(feed.kind)],
        "identity": identity_in_words(feed.identity),
        "administrations": with_titles(feed.administrations.all()),
        "status": status_of(feed),
        "next_window": next_window(feed, timezone.now()),
        "new_host_key": feeds.new_host_key(feed, newest),
        "scans": scan_rows(scans),
        "newest": newest,
        "is_busy": newest is not None and not newest.is_over,
        "options": options_in_words(feed),
    }
    return listing.render("survey/console/feed_detail.html", context)


@needs(MANAGE)
def feed_create(request: StaffRequest) -> HttpResponse:
    """Ask for district and kind, then lead to the form that fits."""
    form = NewFeedForm(request.POST or None, permissions=request.permissions)
    if form.is_bound and form.is_valid():
        district = form.only_district or form.cleaned_data["district"]
        return redirect("feed_create_for", district.pk, form.cleaned_data["kind"])
    return render(request, "survey/console/feed_create.html", {"form": form})


@needs(MANAGE)
def feed_create_for(request: StaffRequest, district: int, kind: str) -> HttpResponse:
    owner = get_object_or_404(request.permissions.districts(MANAGE), pk=district)
    if kind not in RosterFeed.Kind.values:
        raise Http404
    form = FeedForm(
        request.POST or None,
        kind=kind,
        administrations=_administrations(owner),
    )
    if form.is_bound and form.is_valid():
        try:
            feed = feeds.create_feed(
                district=owner,
                kind=kind,
                by=request.user,
                request=request,
                **form.values,
            )
        except ValidationError as error:
            show_errors(form, error)
        else:
            messages.success(
                request,
                _("%(feed)s was added. Try it to see what a scan would change.")
                % {"feed": feed},
            )
            return redirect("feed_detail", feed.pk)
    context = {
        "form": form,
        "district": owner,
        "kind": KIND_LABELS[RosterFeed.Kind(kind)],
    }
    return render(request, "survey/console/feed_form.html", context)


@needs(MANAGE)
def feed_change(request: StaffRequest, pk: int) -> HttpResponse:
    feed = feed_or_404(request, pk)
    form = FeedForm(
        request.POST or None,
        kind=feed.kind,
        administrations=_administrations(feed.district),
        feed=feed,
        samples=feeds.identifier_samples(feed),
    )
    if form.is_bound and form.is_valid():
        try:
            feeds.change_feed(feed, by=request.user, request=request, **form.values)
        except feeds.CredentialsNeeded as error:
            form.add_error(form.credential_names[0], error)
        except ValidationError as error:
            show_errors(form, error)
        else:
            messages.success(request, _("The roster sync was changed."))
            return redirect("feed_detail", pk)
    context = {
        "form": form,
        "feed": feed,
        "district": feed.district,
        "kind": KIND_LABELS[RosterFeed.Kind(feed.kind)],
    }
    return render(request, "survey/console/feed_form.html", context)


@needs(MANAGE)
def feed_remove(request: StaffRequest, pk: int) -> HttpResponse:
    feed = feed_or_404(request, pk)
    form = RemoveFeedForm(request.POST or None, feed=feed)
    if request.method == "POST":
        form = RemoveFeedForm(request.POST, feed=feed)
        if form.is_valid():
            try:
                feeds.remove_feed(feed, by=request.user, request=request)
            except ValidationError as error:
                show_errors(form, error)
            else:
                messages.success(request, _("%(feed)s was removed.") % {"feed": feed})
                return redirect("feed_list")
    return render(
        request, "survey/console/feed_remove.html", {"feed": feed, "form": form}
    )


@needs(MANAGE)
@require_POST
def feed_pause(request: StaffRequest, pk: int) -> HttpResponse:
    return _pause(request, pk, True, _("Paused. It is not scanned until you resume."))


@needs(MANAGE)
@require_POST
def feed_resume(request: StaffRequest, pk: int) -> HttpResponse:
    return _pause(request, pk, False, _("Resumed. It is scanned in its next window."))


@needs(MANAGE)
@require_POST
def feed_accept_key(request: StaffRequest, pk: int) -> HttpResponse:
    feed = feed_or_404(request, pk)
    try:
        feeds.accept_host_key(
            feed, key=request.POST.get("seen", ""), by=request.user, request=request
        )
        messages.success(
            request, _("The new key was accepted. Scan the roster sync again.")
        )
    except ValidationError as error:
        messages.error(request, " ".join(error.messages))
    return redirect("feed_detail", pk)


def _pause(request: StaffRequest, pk: int, is_paused: bool, words: str) -> HttpResponse:
    feed = feed_or_404(request, pk)
    feeds.pause_feed(feed, is_paused=is_paused, by=request.user, request=request)
    messages.success(request, words)
    return redirect("feed_detail", pk)


def _administrations(district: District) -> QuerySet[Administration]:
    """Return a district's administrations that take rosters and are not over."""
    offered = administrations_in(Places(districts=frozenset([district.pk]))).filter(
        closes_at__gt=timezone.now(), denominator=Denominator.ROSTER, module_of=None
    )
    return with_titles(offered.order_by("opens_at", "pk"))
