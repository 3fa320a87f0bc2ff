"""Hooks of the help site: guides of the repository, links, tables, search, styles.

The generator calls these functions by their names. The folder has no imports from the
product: it runs before anything is configured.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tomllib
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

from properdocs.structure.files import File

if TYPE_CHECKING:
    from jinja2 import Environment
    from properdocs.config.defaults import ProperDocsConfig
    from properdocs.structure.files import Files
    from properdocs.structure.nav import Navigation
    from properdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent.parent
GUIDES = ROOT / "docs" / "guides"
DECISIONS = ROOT / "docs" / "decisions"
STATIC = ROOT / "static"
# About the code, not about running it.
FOR_ENGINEERS = {"browser-modules.md"}
# Where guides stand on the site, and the heading of the navigation that gets those
# that it does not list.
OPERATORS = "en/operators"
OPERATORS_HEADING = "For operators"
STYLES = ("tokens", "fonts", "base")
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
WORDS: dict[str, dict[str, str]] = {
    "en": {
        "help": "Help",
        "skip": "Skip to content",
        "contents": "Contents",
        "on_page": "On this page",
        "search": "Search the help",
        "none": "Nothing matches this search.",
        "console": "Back to the console",
        "other": "Español",
        "previous": "Previous",
        "next": "Next",
        "table": "Table",
    },
    "es": {
        "help": "Ayuda",
        "skip": "Ir al contenido",
        "contents": "Contenido",
        "on_page": "En esta página",
        "search": "Buscar en la ayuda",
        "none": "Nada coincide con esta búsqueda.",
        "console": "Volver a la consola",
        "other": "English",
        "previous": "Anterior",
        "next": "Siguiente",
        "table": "Tabla",
    },
}


def language_of(page: Page) -> str:
    return page.file.src_uri.partition("/")[0]


def on_files(files: Files, config: ProperDocsConfig) -> Files:
    """Add the guides, and those that the navigation does not know to its end."""
    listed = json.dumps(config.nav)
    for path in sorted(GUIDES.glob("*.md")):
        if path.name in FOR_ENGINEERS:
            continue
        place = f"{OPERATORS}/{path.name}"
        files.append(File.generated(config, place, abs_src_path=str(path)))
        if f'"{place}"' not in listed:
            _operators_pages(config).append(place)
    return files


def _operators_pages(config: ProperDocsConfig) -> list[Any]:
    nav: Any = config.nav
    for heading in next(entry["en"] for entry in nav if "en" in entry):
        if OPERATORS_HEADING in heading:
            pages: list[Any] = heading[OPERATORS_HEADING]
            return pages
    raise ValueError(f"The navigation has no heading {OPERATORS_HEADING}")


def on_page_markdown(markdown: str, *, page: Page, **_more: object) -> str:
    """Rewrite links, which are those of the repository, to places on the site."""
    source = Path(page.file.abs_src_path or "")
    within_code = re.compile(r"(```.*?```|`[^`\n]*`)", re.DOTALL)
    parts = within_code.split(markdown)
    # A link's text may have code in it: those are found in the whole text.
    if any("](" in part for part in parts[1::2]):
        parts = [
            part
            if number % 2
            else LINK.sub(lambda match: _link(match, source, page), part)
            for number, part in enumerate(parts)
        ]
        return "".join(parts)
    return LINK.sub(lambda match: _link(match, source, page), markdown)


def _link(match: re.Match[str], source: Path, page: Page) -> str:
    image, text, target = match.groups()
    address, _hash, anchor = target.partition("#")
    if image or not address or ":" in address:
        return match[0]
    path = Path(os.path.normpath(source.parent / address))
    if path.is_relative_to(ROOT / "docs" / "help"):
        place = str(path.relative_to(ROOT / "docs" / "help"))
    elif path.parent == GUIDES and path.name not in FOR_ENGINEERS:
        place = f"{OPERATORS}/{path.name}"
    else:
        return _named(text, path)
    here = os.path.dirname(page.file.src_uri)
    hash_ = f"#{anchor}" if anchor else ""
    return f"[{text}]({os.path.relpath(place, here)}{hash_})"


def _named(text: str, path: Path) -> str:
    """Name what is in the repository, and not on the site."""
    if path.parent == DECISIONS:
        return f"{text} (decision {path.name[:4]})"
    name = str(path.relative_to(ROOT))
    return text if name in text else f"{text} (`{name}`)"


def on_page_content(html: str, *, page: Page, **_more: object) -> str:
    """Let keyboards scroll what may be wider than a phone."""
    label = WORDS[language_of(page)]["table"]
    frame = f'<div class="table-frame" tabindex="0" role="region" aria-label="{label}'
    number = 0

    def framed(_match: re.Match[str]) -> str:
        nonlocal number
        number += 1
        # Regions are told apart by their names.
        return f'{frame} {number}"><table>'

    html = re.sub("<table>", framed, html)
    html = html.replace("</table>", "</table></div>")
    return html.replace("<pre>", '<pre tabindex="0">')


def on_env(env: Environment, *, files: Files, **_more: object) -> Environment:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    env.globals["version"] = project["version"]
    env.globals["places"] = {
        file.src_uri: file.page.url for file in files.documentation_pages() if file.page
    }
    env.globals["words"] = WORDS
    env.globals["split"] = split
    return env


def split(content: str) -> tuple[str, str]:
    """Return what stands before the first section of a page, and the rest."""
    start = content.find("<h2")
    return (content, "") if start < 0 else (content[:start], content[start:])


def on_page_context(
    context: dict[str, Any], *, page: Page, nav: Navigation, **_more: object
) -> dict[str, Any]:
    """Say which language the page has, and what its navigation shows."""
    language = language_of(page)
    context["language"] = language
    context["entries"] = next(
        item.children or [] for item in nav.items if item.title == language
    )
    return context


class Sections(HTMLParser):
    """Splits a page at its headings: what the search lists."""

    def __init__(self) -> None:
        super().__init__()
        # Anchor, heading, words that people search for, text.
        self.sections: list[list[str]] = [["", "", "", ""]]
        self.is_heading = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag in ("h2", "h3") and values.get("id"):
            synonyms = values.get("data-synonyms") or ""
            self.sections.append([values["id"] or "", "", synonyms, ""])
        self.is_heading = self.is_heading or tag in ("h1", "h2", "h3")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("h1", "h2", "h3"):
            self.is_heading = False

    def handle_data(self, data: str) -> None:
        self.sections[-1][1 if self.is_heading else 3] += data


def on_post_build(*, config: ProperDocsConfig, **_more: object) -> None:
    """Write the style sheet, the fonts and the mark beside the pages."""
    assets = Path(config.site_dir) / "assets"
    for folder in ("css", "fonts"):
        (assets / folder).mkdir(parents=True, exist_ok=True)
    sheets = [STATIC / "css" / f"{name}.css" for name in STYLES]
    theme = Path(__file__).parent / "theme"
    css = "\n".join(path.read_text() for path in (*sheets, theme / "help.css"))
    (assets / "css" / "help.css").write_text(css)
    for font in STATIC.glob("fonts/*.woff2"):
        shutil.copy(font, assets / "fonts")
    shutil.copy(STATIC / "img" / "mark.svg", assets)
    shutil.copy(theme / "search.js", assets)
    for name in ("help.css", "search.js"):
        (Path(config.site_dir) / name).unlink(missing_ok=True)
    # Without an address of its own, it would list none.
    for name in ("sitemap.xml", "sitemap.xml.gz"):
        (Path(config.site_dir) / name).unlink(missing_ok=True)
    for language, sections in _index.items():
        place = assets / f"search.{language}.json"
        place.write_text(json.dumps(sections, ensure_ascii=False))
    _index.clear()


_index: dict[str, list[dict[str, str]]] = {}


def on_post_page(output: str, *, page: Page, **_more: object) -> str:
    """Collect what the search reads."""
    parser = Sections()
    parser.feed(page.content or "")
    rows = _index.setdefault(language_of(page), [])
    for anchor, heading, synonyms, text in parser.sections:
        place = f"{page.url}#{anchor}" if anchor else page.url
        row = {
            "page": str(page.title),
            "heading": heading if anchor else str(page.title),
            "place": place,
            "synonyms": synonyms or ("" if anchor else page.meta.get("synonyms", "")),
            "text": " ".join(text.split()),
        }
        rows.append(row)
    return output
