"""Certify what was destroyed of an administration."""

from __future__ import annotations

import logging

from survey.models import Destruction
from survey.people.certificates.issuing import (
    DestroyedData,
    DestroyedTable,
    issue_certificate,
    orderer,
)
from survey.people.certificates.keys import SigningKeyMissing

log = logging.getLogger(__name__)
ENDED = "The retention period has ended."


def certify(destruction: Destruction) -> None:
    """Issue the certificate in the transaction that destroys.

    Without a key to sign with, the record of the destruction has to do.
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
    try:
        issue_certificate(data)
    except SigningKeyMissing as error:
        log.error("No certificate of destruction %s: %s", destruction.pk, error)
        destruction.digest_key = None
