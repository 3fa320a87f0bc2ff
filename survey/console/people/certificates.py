"""Download certificates of destruction, and the public key that verifies them."""

from __future__ import annotations

from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.utils.http import content_disposition_header
from django.views.decorators.http import require_GET

from accounts import audit
from accounts.access import needs
from accounts.http import StaffRequest
from accounts.permissions import Capability as C
from survey.models import DestructionCertificate
from survey.people.certificates.keys import installation_keys, pem_of


def certificate_or_404(request: StaffRequest, pk: int) -> DestructionCertificate:
    certificates = DestructionCertificate.objects.visible_to(request.permissions)
    return get_object_or_404(certificates.select_related("district"), pk=pk)


@needs(C.MANAGE_ROSTERS)
@require_GET
def certificate_json(request: StaffRequest, certificate: int) -> HttpResponse:
    """Send the signed JSON file, and record it."""
    row = certificate_or_404(request, certificate)
    return _send(request, row, bytes(row.document), "json", "application/json")


@needs(C.MANAGE_ROSTERS)
@require_GET
def certificate_pdf(request: StaffRequest, certificate: int) -> HttpResponse:
    """Send the signed PDF file, and record it."""
    row = certificate_or_404(request, certificate)
    return _send(request, row, bytes(row.pdf), "pdf", "application/pdf")


@needs(C.MANAGE_ROSTERS)
@require_GET
def certificate_keys(request: StaffRequest) -> HttpResponse:
    """Send the public keys by which anybody verifies this installation's certificates.

    Also those of earlier certificates.
    """
    content = pem_of(installation_keys())
    return _attachment(content, "public-keys.pem", "application/x-pem-file")


def _send(
    request: StaffRequest,
    row: DestructionCertificate,
    content: bytes,
    suffix: str,
    content_type: str,
) -> HttpResponse:
    # Committed before the file is sent: no download without its entry.
    with transaction.atomic():
        audit.record(
            "download a certificate of destruction",
            by=request.user,
            request=request,
            subject=row,
            district=row.district,
            after={"format": suffix},
        )
    return _attachment(content, f"certificate-{row.number}.{suffix}", content_type)


def _attachment(content: bytes, name: str, content_type: str) -> HttpResponse:
    response = HttpResponse(content, content_type=content_type)
    disposition = content_disposition_header(True, name)
    response["Content-Disposition"] = disposition or "attachment"
    return response
