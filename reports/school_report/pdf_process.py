"""Turn HTML files into tagged PDF files, in a process of its own.

WeasyPrint keeps a whole document in memory, and a process gives it back for good.
The process reads no settings, knows no password and has no network: its documents
name nothing but files of one folder.

    python -m reports.school_report.pdf_process FOLDER STATIC_FILES

writes a .pdf beside each .html of the folder.
"""

from __future__ import annotations

import sys
from base64 import b64decode
from mimetypes import guess_type
from pathlib import Path

from weasyprint import HTML
from weasyprint.urls import FatalURLFetchingError, URLFetcher, URLFetcherResponse

# Never looked up: the fetcher below answers for it.
BASE = "https://static.invalid/"
FOLDERS = ("css", "fonts")
# A logo is in the document itself, and reaches nothing else.
PNG = "data:image/png;base64,"


class StaticFileFetcher(URLFetcher):
    """Answer with files below a folder and with PNG pictures in the document.

    All others are refused: addresses in a document can come from texts of a survey.
    """

    def __init__(self, root: Path) -> None:
        super().__init__(allowed_protocols=())
        self.root = root.resolve()

    def fetch(
        self, url: str, headers: dict[str, str] | None = None
    ) -> URLFetcherResponse:
        if url.startswith(PNG):
            picture = b64decode(url.removeprefix(PNG), validate=True)
            return URLFetcherResponse(url, picture, {"Content-Type": "image/png"})
        name = url.removeprefix(BASE)
        path = (self.root / name).resolve()
        allowed = [self.root / folder for folder in FOLDERS]
        if name == url or not any(path.is_relative_to(folder) for folder in allowed):
            raise FatalURLFetchingError(f"Not a static file: {url}")
        kind, _ = guess_type(path.name)
        return URLFetcherResponse(
            url, path.read_bytes(), {"Content-Type": kind or "application/octet-stream"}
        )


def write_pdf(source: Path, static_files: Path) -> None:
    document = HTML(
        string=source.read_text(),
        base_url=BASE,
        url_fetcher=StaticFileFetcher(static_files),
    )
    document.write_pdf(source.with_suffix(".pdf"), pdf_variant="pdf/ua-1")


def main(folder: str, static_files: str) -> None:
    for source in sorted(Path(folder).glob("*.html")):
        write_pdf(source, Path(static_files))


if __name__ == "__main__":
    main(*sys.argv[1:])
