"""Message platforms in the console: API keys, keys of people, and their calls."""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db import DEFAULT_DB_ALIAS, transaction
from django.db.models import QuerySet
from django.http import Http404, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.text import slugify
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET, require_POST, require_safe

from accounts import audit, forms
from accounts.access import needs
from accounts.console.listing import Listing
from accounts.http import CSV, StaffRequest
from accounts.permissions import Capability as C
from survey.console.administrations.forms import OwnerForm
from survey.fieldwork.administrations import administrations_for
from survey.fieldwork.message_platforms import platforms
from survey.fieldwork.message_platforms.directory import current_administrations
from survey.fieldwork.message_platforms.examples import examples_for
from survey.fieldwork.message_platforms.person_key_file import write_person_keys
from survey.fieldwork.message_platforms.statistics import Calls, read_calls
from survey.fieldwork.message_platforms.store import message_store
from survey.models import Administration, MessagePlatform, MessagePlatformKey

PERIODS = (
    (gettext_lazy("This hour"), 1),
    (gettext_lazy("24 hours"), 24),
    (gettext_lazy("7 days"), 7 * 24),
)


class PlatformForm(OwnerForm):
    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=100,
        help_text=gettext_lazy("Such as Braze."),
    )
    owner = forms.TypedChoiceField(
        label=gettext_lazy("People"),
        coerce=int,
        help_text=gettext_lazy("Whom the platform may ask about."),
    )


@needs(C.MANAGE_SURVEYS)
@require_safe
def platform_list(request: StaffRequest) -> HttpResponse:
    rows = MessagePlatform.objects.visible_to(request.permissions)
    listing = Listing(
        request,
        rows.filter(revoked_at=None).select_related("district"),
        search=("name", "district__name"),
        sorts={"name": ("name",), "newest": ("-created_at",)},
    )
    return listing.render("survey/console/platform_list.html", {})


@needs(C.MANAGE_SURVEYS)
def platform_create(request: StaffRequest) -> HttpResponse:
    form = PlatformForm(request.POST or None, permissions=request.permissions)
    if form.is_bound and form.is_valid():
        platform = platforms.create_platform(
            name=form.cleaned_data["name"],
            district=form.owners[form.cleaned_data.get("owner", 0)],
            by=request.user,
            request=request,
        )
        messages.success(
            request,
            _("%(platform)s was added. Create an API key for it.")
            % {"platform": platform},
        )
        return redirect("platform_detail", platform.pk)
    return render(request, "survey/console/platform_create.html", {"form": form})


@needs(C.MANAGE_SURVEYS)
@require_safe
def platform_detail(request: StaffRequest, pk: int) -> HttpResponse:
    return _show(request, _platform_or_404(request, pk))


@needs(C.MANAGE_SURVEYS)
@require_POST
def platform_key_create(request: StaffRequest, pk: int) -> HttpResponse:
    """Show the new key on this page, and never again."""
    platform = _platform_or_404(request, pk)
    try:
        _, text = platforms.create_key(
            platform=platform, by=request.user, request=request
        )
    except ValidationError as error:
        messages.error(request, " ".join(error.messages))
        return redirect("platform_detail", pk)
    return _show(request, platform, new_key=text)


@needs(C.MANAGE_SURVEYS)
@require_POST
def platform_key_revoke(request: StaffRequest, pk: int, key: int) -> HttpResponse:
    platform = _platform_or_404(request, pk)
    api_key = get_object_or_404(MessagePlatformKey, pk=key, platform=platform)
    platforms.revoke_key(key=api_key, by=request.user, request=request)
    messages.success(
        request, _("The API key …%(ending)s was revoked.") % {"ending": api_key.ending}
    )
    return redirect("platform_detail", pk)


@needs(C.MANAGE_SURVEYS)
def platform_remove(request: StaffRequest, pk: int) -> HttpResponse:
    platform = _platform_or_404(request, pk)
    if request.method == "POST":
        platforms.remove_platform(platform=platform, by=request.user, request=request)
        messages.success(
            request, _("%(platform)s was removed.") % {"platform": platform}
        )
        return redirect("platform_list")
    context = {"platform": platform}
    return render(request, "survey/console/platform_remove.html", context)


@needs(C.SEE_IDENTITIES)
@require_GET
def platform_people(
    request: StaffRequest, pk: int, administration: int
) -> StreamingHttpResponse:
    """Send the keys of an administration's people as CSV; each time is logged."""
    platform = _platform_or_404(request, pk)
    chosen = _administrations_of(request, platform).filter(pk=administration).first()
    if chosen is None:
        raise Http404
    with transaction.atomic():
        audit.record(
            "download keys of people",
            by=request.user,
            request=request,
            subject=platform,
            district=platform.district,
            after={"administration": str(chosen)},
        )
    response = StreamingHttpResponse(
        write_person_keys(platform, chosen), content_type=CSV
    )
    name = slugify(f"{platform} {chosen}")
    response["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    return response


def _show(
    request: StaffRequest, platform: MessagePlatform, *, new_key: str = ""
) -> HttpResponse:
    # From the primary: a key may have been created or revoked a moment ago.
    keys = platform.keys.using(DEFAULT_DB_ALIAS).filter(revoked_at=None)
    address = f"{settings.PUBLIC_ADDRESS}/messages/{platform.pk}"
    administrations = _administrations_of(request, platform)
    context = {
        "platform": platform,
        "keys": keys.select_related("created_by"),
        "most_keys": len(platforms.SLOTS),
        "new_key": new_key,
        "address": address,
        "periods": _calls_of(platform),
        "administrations": administrations.select_related("published__survey").defer(
            "published__definition", "published__survey__source"
        ),
        "examples": examples_for(address),
    }
    return render(request, "survey/console/platform_detail.html", context)


def _platform_or_404(request: StaffRequest, pk: int) -> MessagePlatform:
    rows = MessagePlatform.objects.using(DEFAULT_DB_ALIAS).filter(revoked_at=None)
    visible = rows.visible_to(request.permissions)
    return get_object_or_404(visible.select_related("district"), pk=pk)


def _administrations_of(
    request: StaffRequest, platform: MessagePlatform
) -> QuerySet[Administration]:
    """Return the administrations whose people the user and the platform may see."""
    visible = administrations_for(request.permissions, C.SEE_IDENTITIES)
    return current_administrations().filter(pk__in=visible.values("pk"))


def _calls_of(platform: MessagePlatform) -> list[tuple[str, Calls]] | None:
    """Return the calls in each period; None without Redis, or while it is down."""
    store = message_store()
    if store is None:
        return None
    try:
        return [
            (str(name), read_calls(store, platform.pk, hours=hours))
            for name, hours in PERIODS
        ]
    except ConnectionError:
        return None
