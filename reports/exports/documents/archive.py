"""Write the documents of an export into a ZIP file."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from reports.exports.documents import data_package, ddi, syntax
from reports.exports.documents.described_file import DescribedFile
from reports.exports.row_builder import RowBuilder
from reports.models.exports import Export


def documents_of(export: Export, rows: RowBuilder, data: Path) -> dict[str, bytes]:
    """Return DDI, a data package and syntax; `data` is the file that they describe."""
    file = DescribedFile(export, rows, data)
    return {
        "ddi-codebook.xml": ddi.document(file),
        "datapackage.json": data_package.document(file),
        **{name: text.encode() for name, text in syntax.programs(file)},
    }


def write(path: Path, *, export: Export, rows: RowBuilder, data: Path) -> None:
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for name, content in documents_of(export, rows, data).items():
            # With the earliest date of the format, as other files have a fixed one.
            info = ZipInfo(name)
            info.compress_type = ZIP_DEFLATED
            archive.writestr(info, content)
