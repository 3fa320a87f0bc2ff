"""Write the journal of destructions, which outlives the database.

A restored backup has again what was destroyed after it. So each destruction leaves an
entry among the private files, which are backed up beside the database and apart from
it, and `manage.py replay_erasures` destroys it once more. An entry names respondents
by number and IDs by keyed digest. It is signed, because whoever could write one would
have answers deleted.
"""

from __future__ import annotations

import json
import logging
import secrets
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from survey.models import Administration, DestructionCertificate, Erasure
from survey.people.certificates.documents import Verdict, sign_json, verify
from survey.people.certificates.keys import own_keys, signing_key
from survey.work.files import delete_files, exists, keep, path_of
from survey.work.files_away import FilesAway

logger = logging.getLogger(__name__)
FOLDER = "erasures"
FORMAT = "groundswell-journal-of-destructions/1"


class JournalError(Exception):
    """An entry cannot be read, or nobody knows its signature. The text says so."""


def name_of_erasure(erasure: Erasure) -> str:
    """Return the name of an entry; keys of rows begin anew in a restored database."""
    return f"{FOLDER}/people-{erasure.pk}-{erasure.ordered_at:%Y%m%dT%H%M%S%f}.json"


def name_of_certificate(certificate: DestructionCertificate) -> str:
    return f"{FOLDER}/{certificate.kind}-{certificate.number}.json"


def description_of(administration: Administration) -> dict[str, Any]:
    """Return what tells a round from another of the same number.

    Numbers of rows begin anew in a restored database. Nothing of it changes once people
    have been invited, but the closing, which a replay brings back.
    """
    return {
        "number": administration.pk,
        "name": administration.name,
        "published": administration.published_id,
        "opens_at": administration.opens_at.isoformat(),
        "closes_at": administration.closes_at.isoformat(),
    }


def entry_of_erasure(erasure: Erasure) -> dict[str, Any]:
    """Return whom an erasure erased up to now. 3 statements with district and user."""
    respondents: defaultdict[str, list[int]] = defaultdict(list)
    ids: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    rows = erasure.records.exclude(erased_at=None).select_related("administration")
    records = list(rows.order_by("pk"))
    times = [record.erased_at for record in records if record.erased_at]
    for record in records:
        respondents[str(record.administration_id)].append(record.pk)
        for version, digests in (record.id_digests or {}).items():
            ids[record.administration.role, version].update(digests)
    return {
        "kind": DestructionCertificate.Kind.PEOPLE,
        # Codes and times, because another row may have the number by then.
        "district": {"code": erasure.district.code, "name": erasure.district.name},
        "ordered_at": erasure.ordered_at.isoformat(),
        # Of the last person up to now.
        "erased_at": max(times).isoformat() if times else None,
        "respondents": respondents,
        "ids": [
            {"role": role, "key_version": int(version), "digests": sorted(digests)}
            for (role, version), digests in sorted(ids.items())
        ],
        "requested_on": erasure.requested_on.isoformat(),
        "requested_by": erasure.requested_by,
        "reason": erasure.reason,
        "people": erasure.people,
        "by": {"number": erasure.by_id, "joined": erasure.by.date_joined.isoformat()},
        "digest_key": bytes(erasure.digest_key or b"").hex(),
    }


def write(name: str, entry: dict[str, Any]) -> None:
    """Store an entry as a whole, also in place of an earlier one.

    Raises FilesAway and OSError where files are away.
    """
    path = path_of(f"{FOLDER}/.{secrets.token_hex(8)}")
    path.write_bytes(sign_json({"format": FORMAT, **entry}, signing_key()))
    keep(path, name)


def try_to_write(name: str, entry: dict[str, Any]) -> bool:
    """Store an entry; log it and return False where files are away."""
    try:
        write(name, entry)
    except (FilesAway, OSError):
        logger.exception("The journal of destructions cannot be written")
        return False
    return True


def try_to_delete(name: str) -> bool:
    """Delete an entry; return False as long as it is there, or files are away."""
    delete_files(name)
    try:
        return not exists(name)
    except (FilesAway, OSError):
        return False


def read(paths: list[Path]) -> Iterator[dict[str, Any]]:
    """Read entries of files and folders. Raises JournalError.

    Signed by a key of the settings: who can write rows of the database cannot add one.
    """
    keys = own_keys()
    for path in paths:
        if not path.exists():
            raise JournalError(f"{path} does not exist")
        files = sorted(path.glob("*.json")) if path.is_dir() else [path]
        for file in files:
            yield _read_entry(file, keys)


def _read_entry(path: Path, keys: list[bytes]) -> dict[str, Any]:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise JournalError(f"{path} cannot be read: {error.strerror}") from None
    verdict = verify(content, keys)
    if verdict is Verdict.UNKNOWN_KEY:
        raise JournalError(
            f"{path} is signed by a key that is not in GROUNDSWELL_CERTIFICATE_KEYS:"
            " add the earlier text after the present one"
        )
    if verdict is not Verdict.VALID:
        raise JournalError(f"{path} is not as it was written: {verdict.value}")
    entry: dict[str, Any] = json.loads(content)["certificate"]
    if entry.get("format") != FORMAT:
        raise JournalError(f"{path} is no entry of this release's journal")
    return entry
