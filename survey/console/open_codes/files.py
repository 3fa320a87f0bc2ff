"""The pages to make posters, letters and lists of open codes."""

from __future__ import annotations

from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.text import slugify
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from accounts.access import needs
from accounts.console.listing import Listing
from accounts.http import StaffRequest
from accounts.permissions import Capability as C
from survey.console.login_cards.forms import EXCEL
from survey.console.open_codes.forms import CodeFileForm
from survey.console.open_codes.scope import open_code_or_404, parse_key
from survey.console.rosters.forms import UploadPlace, upload_places
from survey.fieldwork.administrations.queries import administration_or_404
from survey.fieldwork.login_cards.card_text import card_languages
from survey.fieldwork.open_codes.code_files import files_for, order_file
from survey.models import Administration, OpenCode, OpenCodeFile
from survey.work.job_turns import TooManyJobs
from survey.work.requested_files import has_file, order_again, record, send

Format = OpenCodeFile.Format


@needs(C.MANAGE_ROSTERS)
def open_code_files(request: StaffRequest, pk: int) -> HttpResponse:
    """Order posters, letters and lists, and list those made so far."""
    administration = administration_or_404(request.permissions, pk, C.MANAGE_ROSTERS)
    code = None
    if key := request.GET.get("open_code"):
        code = open_code_or_404(request, administration, parse_key(key))
    form = CodeFileForm(
        request.POST or None,
        languages=card_languages(administration),
        places={} if code else _places(request, administration),
    )
    if form.is_bound and form.is_valid():
        try:
            file = _order(request, administration, form, code)
        except TooManyJobs as refused:
            form.add_error(None, str(refused))
        else:
            return redirect("open_code_file", pk, file.pk)
    files = files_for(request.permissions, administration)
    if code:
        files = files.filter(open_code=code)
    listing = Listing(
        request,
        files.select_related("school", "district", "open_code", "by", "job"),
        sorts={"created": ("-created_at",)},
        per_page=20,
    )
    return listing.render(
        "survey/console/open_code_files.html",
        {"administration": administration, "code": code, "form": form},
    )


def _places(
    request: StaffRequest, administration: Administration
) -> dict[str, UploadPlace]:
    """Return the user's places, and each district for users of the state."""
    places = upload_places(request.permissions)
    if "state" in places:
        districts = request.permissions.districts(C.MANAGE_ROSTERS).order_by("name")
        if administration.district_id is not None:
            districts = districts.filter(pk=administration.district_id)
        places |= {f"district-{row.pk}": (row, None) for row in districts}
    return places


def _order(
    request: StaffRequest,
    administration: Administration,
    form: CodeFileForm,
    code: OpenCode | None,
) -> OpenCodeFile:
    cleaned = form.cleaned_data
    is_excel = cleaned["format"] == EXCEL
    district, school = (None, None) if code else form.chosen_place()
    with transaction.atomic():
        file = order_file(
            administration=administration,
            by=request.user,
            format=Format.CSV if is_excel else cleaned["format"],
            open_code=code,
            school=school,
            district=district,
            language=cleaned.get("language", ""),
            marked=is_excel,
        )
        record("make a file with open codes", file, request)
    return file


@needs(C.MANAGE_ROSTERS)
@require_safe
def open_code_file(request: StaffRequest, pk: int, code_file: int) -> HttpResponse:
    administration = administration_or_404(request.permissions, pk, C.MANAGE_ROSTERS)
    file = _file_or_404(request, administration, code_file)
    return render(
        request,
        "survey/console/open_code_file.html",
        {
            "administration": administration,
            "file": file,
            "job": file.job,
            "is_mine": file.job is not None and file.job.by_id == request.user.pk,
        },
    )


@needs(C.MANAGE_ROSTERS)
@require_POST
def open_code_file_again(
    request: StaffRequest, pk: int, code_file: int
) -> HttpResponse:
    """Start the job again after it was cancelled or failed."""
    administration = administration_or_404(request.permissions, pk, C.MANAGE_ROSTERS)
    file = _file_or_404(request, administration, code_file)
    order_again(file, request=request, action="make a file with open codes")
    return redirect("open_code_file", pk, file.pk)


@needs(C.MANAGE_ROSTERS)
@require_safe
def open_code_file_download(
    request: StaffRequest, pk: int, code_file: int
) -> HttpResponseBase:
    administration = administration_or_404(request.permissions, pk, C.MANAGE_ROSTERS)
    file = _file_or_404(request, administration, code_file)
    if not has_file(file):
        messages.error(request, _("This file no longer exists. Make a new one."))
        return redirect("open_code_file", pk, file.pk)
    name = f"{slugify(f'{file.format} {file.scope}')}-{file.pk}"
    action = "download a file with open codes"
    return send(file, request, action=action, as_name=name)


def _file_or_404(
    request: StaffRequest, administration: Administration, pk: int
) -> OpenCodeFile:
    files = files_for(request.permissions, administration)
    related = ("school", "district", "by", "job", "administration", "open_code")
    return get_object_or_404(files.select_related(*related), pk=pk)
