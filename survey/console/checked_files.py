"""Check an uploaded file while the browser waits, and confirm it without storing it.

The page of a checked file carries what it would change, signed, so that what is saved
is what was shown: see `docs/decisions/0028-opt-out-lists.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from django.contrib import messages
from django.core import signing
from django.forms import BaseForm
from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

from accounts.http import StaffRequest
from survey.models import Administration
from survey.people.rosters.file_reader import RosterUnreadable, open_list
from survey.people.rosters.list_headers import ListHeader
from survey.people.rosters.table import RosterTable

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

SALT = "survey.checked_files"
# A checked file can be confirmed for an hour.
VALID_FOR = 60 * 60
# Changes and problems on the page of a checked file.
MOST_SHOWN = 200
R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePages:
    """Routes, templates and titles of the pages for one kind of file."""

    # Name of the form's route and template; that of the confirmation ends with _save,
    # and the template of a checked file with _checked.
    upload: str
    # The page to which both belong.
    under: str
    under_name: StrOrPromise
    title: StrOrPromise
    checked_title: StrOrPromise
    # The folder of both.
    templates: str = "survey/console"

    def render_form(
        self,
        request: StaffRequest,
        administration: Administration,
        form: BaseForm,
        **context: object,
    ) -> HttpResponse:
        return render(
            request,
            f"{self.templates}/{self.upload}.html",
            {"administration": administration, "form": form, "pages": self, **context},
        )

    def render_checked(
        self,
        request: StaffRequest,
        administration: Administration,
        report: object,
        *,
        changes: Sequence[object],
        problems: Sequence[object],
        content: Mapping[str, object],
        **context: object,
    ) -> HttpResponse:
        """Show what a file would change; the page carries `content`."""
        signed = signed_content(request, [self.upload, administration.pk], content)
        return render(
            request,
            f"{self.templates}/{self.upload}_checked.html",
            {
                "administration": administration,
                "pages": self,
                "report": report,
                "changes": changes[:MOST_SHOWN],
                "change_count": len(changes),
                "problems": problems[:MOST_SHOWN],
                "problem_count": len(problems),
                "most_shown": MOST_SHOWN,
                "checked": signed,
                **context,
            },
        )

    def confirmed_content(
        self, request: StaffRequest, administration: Administration
    ) -> dict[str, Any] | None:
        """Return what a page carried; None and a message if it is too old."""
        return confirmed_content(request, [self.upload, administration.pk])


def signed_content(
    request: StaffRequest, key: list[object], content: Mapping[str, object]
) -> str:
    """Return what the page of a checked file carries for this user."""
    owned = {**content, "for": [*key, request.user.pk]}
    return signing.dumps(owned, salt=SALT, compress=True)


def confirmed_content(
    request: StaffRequest, key: list[object]
) -> dict[str, Any] | None:
    """Return what a page carried; None and a message if it is too old."""
    signed = request.POST.get("checked", "")
    with suppress(signing.BadSignature):
        content = signing.loads(signed, salt=SALT, max_age=VALID_FOR)
        if content["for"] == [*key, request.user.pk]:
            return dict(content)
    messages.error(request, _("This page is too old. Upload the file again."))
    return None


def check_file(
    form: BaseForm,
    header: ListHeader,
    check: Callable[[RosterTable], R],
) -> R | None:
    """Return what `check` finds in a form's file; None if the form has to be shown."""
    if not form.is_valid():
        return None
    try:
        content = form.cleaned_data["file"].file
        with open_list(content, header) as table:
            return check(table)
    except RosterUnreadable as error:
        form.add_error("file", str(error))
        return None
