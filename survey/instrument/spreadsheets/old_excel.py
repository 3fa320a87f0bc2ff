"""Read .xls files (Excel 97-2003) by converting them to .xlsx."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

from django.utils.translation import gettext as _

from survey.instrument.spreadsheets import xls_to_xlsx
from survey.instrument.spreadsheets.workbook_guard import (
    MIB,
    OLE_SIGNATURE,
    UnsafeWorkbook,
)

# A sheet has at most 65,536 rows: 15 columns of them take 20 MB.
LARGEST_XLS = 50 * MIB
# Of real time; the process is limited to fewer seconds of computing.
LONGEST_SECONDS = 180
ENCRYPTED_PACKAGE = "EncryptedPackage".encode("utf-16-le")


def is_old_excel(start: bytes) -> bool:
    """Whether a file that begins like this is .xls, or has a password."""
    return start.startswith(OLE_SIGNATURE)


@contextmanager
def converted_to_xlsx(file: BinaryIO) -> Iterator[BinaryIO]:
    """Open the .xlsx file that an .xls file is converted to.

    Raises UnsafeWorkbook if the file has a password, is damaged, or takes too
    much memory or time. 65,536 rows of 15 columns take 13 seconds.
    """
    if file.seek(0, io.SEEK_END) > LARGEST_XLS:
        raise UnsafeWorkbook(
            _(
                "An .xls file may have at most %(largest_xls)s MB. Save it as"
                " .xlsx, without a password."
            )
            % {"largest_xls": LARGEST_XLS // MIB}
        )
    file.seek(0)
    content = file.read()
    if ENCRYPTED_PACKAGE in content:
        raise UnsafeWorkbook(
            _("The file is protected by a password. Save it without a password.")
        )
    with TemporaryDirectory(prefix="xls-") as folder:
        source, target = Path(folder) / "source.xls", Path(folder) / "target.xlsx"
        source.write_bytes(content)
        del content
        _convert(source, target)
        with target.open("rb") as opened:
            yield opened


def _convert(source: Path, target: Path) -> None:
    # -I: neither the environment nor the current folder has a say.
    command = [sys.executable, "-I", xls_to_xlsx.__file__, str(source), str(target)]
    try:
        done = subprocess.run(  # noqa: S603
            command,
            capture_output=True,
            cwd=target.parent,
            env={"TMPDIR": str(target.parent)},
            timeout=LONGEST_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        done = None
    if done and done.returncode == 0:
        return
    if done and done.returncode == xls_to_xlsx.REFUSED:
        raise UnsafeWorkbook(_(done.stdout.decode(errors="replace")))
    raise UnsafeWorkbook(
        _(
            "The .xls file is damaged or too large to be read. Open it in"
            " a spreadsheet program and save it as .xlsx."
        )
    )
