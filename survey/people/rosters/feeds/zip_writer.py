"""Write a ZIP while it is downloaded, and refuse what is none."""

from __future__ import annotations

import hashlib
import re
from typing import BinaryIO

from django.utils.translation import gettext as _

from survey.people.rosters.feeds.download_types import DownloadFailed

# Of any ZIP, and of one without files.
ZIP_BEGINS = (b"PK\x03\x04", b"PK\x05\x06")
# Bytes that are looked at.
BEGINNING = 4096


class ZipWriter:
    def __init__(self, file: BinaryIO, host: str) -> None:
        self._file = file
        self._host = host
        self._beginning = b""
        self._digest = hashlib.sha256()
        self.size = 0

    def write(self, chunk: bytes) -> None:
        """Raise DownloadFailed if the first bytes are not those of a ZIP."""
        if self.size < BEGINNING:
            self._beginning += chunk[:BEGINNING]
            self._check(is_whole=False)
        self._file.write(chunk)
        self._digest.update(chunk)
        self.size += len(chunk)

    def finish(self) -> str:
        """Return the digest of the whole file. Raises DownloadFailed as `write`."""
        self._check(is_whole=True)
        return self._digest.hexdigest()

    def _check(self, *, is_whole: bool) -> None:
        beginning, host = self._beginning, self._host
        if beginning.startswith(ZIP_BEGINS) or (len(beginning) < 4 and not is_whole):
            return
        if not beginning:
            raise DownloadFailed(
                _("%(host)s sent an empty file.") % {"host": host}, may_retry=True
            )
        if re.match(rb"(\xef\xbb\xbf)?\s*<(!doctype html|html|head)", beginning, re.I):
            raise DownloadFailed(
                _(
                    "%(host)s sent a web page and not a ZIP file. The address may"
                    " lead to a page on which people log in: enter the one of the"
                    " file itself."
                )
                % {"host": host}
            )
        raise DownloadFailed(
            _("%(host)s sent something that is not a ZIP file.") % {"host": host}
        )
