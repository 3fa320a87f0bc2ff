"""Certify what was destroyed of an administration."""

from __future__ import annotations

import logging

from django.utils.translation import gettext as _

from survey.models import Destruction
from survey.people.certificates.issuing import (
    DestroyedData,
    DestroyedTable,
    issue_certificate,
    orderer,
)
from survey.people.certificates.keys import SigningKeyMissing, signing_key

log = logging.getLogger(__name__)
ENDED = "The retention period has ended."


def certify(destruction: Destruction) -> None:
    """Issue the certificate in the transaction that destroys.

    Raises SigningKeyMissing.
    """
    administration, by = destruction.administration, destruction.by
    assert destruction.destroyed_at is not None  # noqa: S101
    tables = destruction.tables.items()
    data = DestroyedData(
        kind=destruction.kind,
        administrations=(administration.pk,),
        district=administration.district_id,
        tables=tuple(
            DestroyedTable(name, table["rows"], table["digest"])
            for name, table in tables
        ),
        files=destruction.files,
        ordered_by=orderer(by, administration.district) if by else "retention",
        reason=destruction.reason or ENDED,
        destroyed_at=destruction.destroyed_at,
    )
    issue_certificate(data, destruction=destruction)


def reason_not_to_certify() -> str:
    """Return why nothing is destroyed that could not be certified, or ""."""
    try:
        signing_key()
    except SigningKeyMissing as error:
        log.error("Nothing is destroyed: %s", error)
        return _(
            "Nothing is destroyed, because this installation has no key to sign the"
            " certificate with. Ask your engineers."
        )
    return ""
