"""Serve the help site at /help/: to staff, and to everyone where the state allows it.

It is built before the server starts (provisioning/help_site): these views look files
up and change nothing.
"""

from __future__ import annotations

import hashlib
import json
import mimetypes
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.utils.cache import get_conditional_response
from django.utils.http import quote_etag
from django.utils.translation import get_language
from django.views.decorators.http import require_safe

from accounts.access import staff_unless
from accounts.console.help_topics import topic_of
from accounts.place_settings import help_is_public

FALLBACK = "en"
# Not known to every machine's list of types.
TYPES = {
    ".webp": "image/webp",
    ".woff2": "font/woff2",
    ".js": "text/javascript",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}
# Seconds for which nginx and browsers keep a page that everyone may read.
PUBLIC_SECONDS = 60


@dataclass(frozen=True, slots=True)
class HelpSection:
    page: str
    heading: str
    # Words that people search for who read about it there.
    synonyms: str
    address: str


@staff_unless(help_is_public)
@require_safe
def help_home(request: HttpRequest) -> HttpResponse:
    """Lead to the first page in the reader's language."""
    response = redirect(help_address(""))
    response["Cache-Control"] = "private, no-cache"
    return response


@staff_unless(help_is_public)
@require_safe
def help_file(request: HttpRequest, path: str) -> HttpResponseBase:
    """Send a page, image or workbook of the site. No statement of its own."""
    files = site_files()
    file = files.get(f"{path}index.html" if path.endswith("/") else path)
    if file is None:
        if f"{path}/index.html" in files:
            return redirect("help_file", path=f"{path}/")
        raise Http404
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        # A new site was put in its place in this moment.
        raise Http404 from None
    etag = quote_etag(hashlib.sha256(content).hexdigest()[:20])
    response = get_conditional_response(request, etag=etag)
    if response is None:
        response = HttpResponse(content, content_type=_type_of(file))
    response["ETag"] = etag
    # Without names or figures: a browser may keep it, and asks whether it has changed.
    response["Cache-Control"] = (
        "private, no-cache"
        if getattr(request, "is_personal", False)
        else f"public, max-age={PUBLIC_SECONDS}"
    )
    return response


def help_address(topic: str) -> str:
    """Return the address of a page such as "coordinators/#before".

    In the reader's language, or in English where the page is not translated.
    """
    page, _hash, anchor = topic.partition("#")
    language = get_language() or FALLBACK
    languages = [language, language.partition("-")[0], FALLBACK]
    files = site_files()
    for code in languages:
        if f"{code}/{page}index.html" in files:
            break
    return f"/help/{code}/{page}" + (f"#{anchor}" if anchor else "")


def help_sections() -> list[HelpSection]:
    """Return the sections of the site in the reader's language, else in English."""
    language = (get_language() or FALLBACK).partition("-")[0]
    files = site_files()
    rows = []
    for code in dict.fromkeys((language, FALLBACK)):
        if index := files.get(f"assets/search.{code}.json"):
            rows += _sections(index, index.stat().st_mtime_ns)
    translated = {row.address for row in rows if f"/{FALLBACK}/" not in row.address}
    here = f"/help/{language}/"
    return [
        row
        for row in rows
        if row.address.startswith(here)
        or row.address.replace(f"/{FALLBACK}/", f"/{language}/", 1) not in translated
    ]


def site_files() -> dict[str, Path]:
    """Return all files of the site, by their addresses: no path leads to others."""
    try:
        changed = settings.HELP_FOLDER.stat().st_mtime_ns
    except FileNotFoundError:
        return {}
    return _files(settings.HELP_FOLDER, changed)


@lru_cache(maxsize=2)
def _files(folder: Path, changed: int) -> dict[str, Path]:
    return {
        path.relative_to(folder).as_posix(): path
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


@lru_cache(maxsize=4)
def _sections(index: Path, changed: int) -> list[HelpSection]:
    return [
        HelpSection(
            page=row["page"],
            heading=row["heading"],
            synonyms=row["synonyms"],
            address=f"/help/{row['place']}",
        )
        for row in json.loads(index.read_text())
    ]


def _type_of(file: Path) -> str:
    kind = TYPES.get(file.suffix) or mimetypes.guess_type(file.name)[0]
    if kind and kind.startswith("text/"):
        return f"{kind}; charset=utf-8"
    return kind or "application/octet-stream"


def help_of_screen(route: str) -> str:
    """Return the address of the page that explains a screen, by its route's name."""
    return help_address(topic_of(route))
