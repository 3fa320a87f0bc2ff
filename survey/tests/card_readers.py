"""Read text and QR codes of login cards from the PDF."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pypdfium2
import zxingcpp
from PIL import ImageOps

# Finer than a screen, and coarser than any printer.
DOTS = 120


@dataclass
class ReadPage:
    text: str
    # The contents of the QR codes, from top left to bottom right.
    links: list[str]
    # Part of the page's height under which nothing is printed.
    empty_below: float = 0.0


def read_pages(pdf: bytes | Path) -> list[ReadPage]:
    document = pypdfium2.PdfDocument(pdf)
    try:
        return [_read(page) for page in document]
    finally:
        document.close()


def _read(page: pypdfium2.PdfPage) -> ReadPage:
    image = page.render(scale=DOTS / 72, grayscale=True).to_pil()
    barcodes = zxingcpp.read_barcodes(image)
    barcodes.sort(
        key=lambda code: (code.position.top_left.y // 100, code.position.top_left.x)
    )
    _, _, _, lowest = ImageOps.invert(image.convert("L")).getbbox() or (0, 0, 0, 0)
    return ReadPage(
        empty_below=1 - lowest / image.height,
        text=page.get_textpage().get_text_range(),
        links=[code.text for code in barcodes],
    )
