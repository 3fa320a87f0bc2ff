"""Keep the catalogs of translations complete: the console's and the respondents'.

Translators edit `.po` files with any gettext editor; the compiled `.mo` beside each
is what is read. For each language of the console there is
`settings/locale/<language>/LC_MESSAGES/django.po`, with texts extracted from
templates and Python. Reports of schools are in more languages: their texts alone are
in `reports/locale/<language>/LC_MESSAGES/django.po`. Respondents have
`survey/taking/locale/…/respondents.po`, with the texts of
`survey/taking/messages.json`, and in languages that address adults differently
`adults.po`, with only the texts that differ.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog, Message
from babel.messages.extract import DEFAULT_KEYWORDS, extract
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from django.conf import settings
from django.utils.translation.template import templatize

from survey.taking import messages

SOURCES = ("accounts", "reports", "settings", "survey")
# Read by engineers, or not the console's.
LEFT_OUT = frozenset(("tests", "migrations", "management", "simulation"))
# All texts of a school's report, and of public pages; `settings.LOCALE_PATHS` has
# their languages.
REPORT_SOURCES = frozenset(
    (
        "templates/reports/_school_report.html",
        "templates/reports/_report_groups.html",
        "templates/reports/_published_errors.html",
        "templates/reports/_band_key.html",
        "templates/reports/_highlights.html",
        "templates/reports/_print_measure.html",
        "templates/reports/_report_figures.html",
        "templates/reports/_report_reading.html",
        "templates/reports/_score_average.html",
        "templates/reports/_score_lines.html",
        "templates/reports/_score_methods.html",
        "templates/reports/_theme_legend.html",
        "templates/reports/_theme_notes.html",
        "templates/reports/_theme_rows.html",
        "templates/reports/_theme_title.html",
        "templates/reports/school_report_print.html",
        "templates/reports/_hidden_figures.html",
        "templates/reports/_question_highlights.html",
        "templates/reports/_question_list.html",
        "templates/reports/_results_change.html",
        "templates/reports/_results_chart.html",
        "templates/reports/public/_charts.html",
        "templates/reports/public/_measure.html",
        "templates/reports/public/_scores.html",
        "templates/reports/public/base.html",
        "templates/reports/public/gone.html",
        "templates/reports/public/hidden.html",
        "templates/reports/public/list.html",
        "templates/reports/public/of_school.html",
        "templates/reports/public/place.html",
        "templates/reports/public/unknown.html",
        "reports/answers/texts.py",
        "reports/charts/changes.py",
        "reports/charts/chart_rows.py",
        "reports/charts/charts.py",
        "reports/charts/highlights.py",
        "reports/charts/sentences.py",
        "reports/publishing/page.py",
        "reports/school_report/overview.py",
        "reports/school_report/parts.py",
        "reports/school_report/report.py",
        "reports/scores/benchmark_titles.py",
        "reports/scores/spans.py",
        "reports/results/menu.py",
        "reports/school_report/gap_panels.py",
        "reports/scores/words.py",
        "reports/suppression/explanation.py",
        "reports/rates/rate_lines.py",
        "reports/rates/thresholds.py",
        "survey/models/administration.py",
        # The public page of a survey's questions.
        "templates/survey/console/_questionnaire.html",
        "templates/survey/console/_questionnaire_page.html",
        "survey/console/surveys/contents.py",
        "survey/console/surveys/questionnaire.py",
        "survey/console/surveys/rule_words.py",
        "survey/instrument/drafts/rule_sentences.py",
    )
)
KEYWORDS = {
    **DEFAULT_KEYWORDS,
    "gettext_lazy": None,
    "gettext_noop": None,
    "ngettext_lazy": (1, 2),
    "pgettext_lazy": ((1, "c"), 2),
    "npgettext_lazy": ((1, "c"), 2, 3),
}
CALL = re.compile(r"\b(?:_|n?gettext|n?pgettext)\(")
PLACEHOLDER = re.compile(r"%\(\w+\)[a-z]|%[sd]|\{\w*\}|</?[a-z][^>]*>")

# (file, texts, context); several texts are singular and plural.
Found = tuple[str, str | tuple[str, ...], str | None]


def console_files() -> list[Path]:
    return sorted(settings.LOCALE_PATHS[0].glob("*/LC_MESSAGES/django.po"))


def report_files() -> list[Path]:
    return sorted(settings.LOCALE_PATHS[1].glob("*/LC_MESSAGES/django.po"))


def respondents_files() -> list[Path]:
    return sorted(messages.LOCALE.glob("*/LC_MESSAGES/*.po"))


def respondents_texts() -> Catalog:
    """Return a catalog without translations of the respondents' messages."""
    catalog = Catalog(fuzzy=False)
    for key, text in messages.ENGLISH.items():
        catalog.add(text, locations=[("survey/taking/messages.json", 1)], context=key)
    return catalog


def console_texts() -> Catalog:
    """Return a catalog without translations of all texts in the source files."""
    catalog = Catalog(fuzzy=False)
    for name, texts, context in [*_in_templates(), *_in_python()]:
        catalog.add(texts, locations=[(name, 1)], context=context)
    return catalog


def report_texts() -> Catalog:
    """Return those of the console's texts that a school's report can have."""
    catalog = Catalog(fuzzy=False)
    for message in console_texts():
        files = {name for name, _line in message.locations} & REPORT_SOURCES
        if files:
            locations = [(name, 1) for name in sorted(files)]
            catalog.add(message.id, locations=locations, context=message.context)
    return catalog


def _in_templates() -> Iterator[Found]:
    for path in sorted((settings.BASE_DIR / "templates").rglob("*.*")):
        name = str(path.relative_to(settings.BASE_DIR))
        code = templatize(path.read_text("utf-8"), origin=name)
        # Not valid Python as a whole, but each call is.
        for match in CALL.finditer(code):
            yield from _in_code(name, code[match.start() :], most=1)


def _in_python() -> Iterator[Found]:
    for folder in SOURCES:
        for path in sorted((settings.BASE_DIR / folder).rglob("*.py")):
            name = path.relative_to(settings.BASE_DIR)
            if LEFT_OUT.isdisjoint(name.parts):
                yield from _in_code(str(name), path.read_text("utf-8"))


def _in_code(name: str, code: str, most: int | None = None) -> Iterator[Found]:
    calls = extract("python", BytesIO(code.encode()), KEYWORDS, strip_comment_tags=True)
    for number, (_line, texts, _comments, context) in enumerate(calls, 1):
        yield name, texts, context
        if number == most:
            return


def updated(file: Path, texts: Catalog) -> Catalog:
    """Return the catalog of a file, with exactly the texts of the source files."""
    language = file.parts[-3]
    if file.exists():
        with file.open("rb") as stream:
            catalog = read_po(stream, locale=language)
    else:
        catalog = Catalog(
            language, project="Groundswell", header_comment="# Groundswell", fuzzy=False
        )
    catalog.update(texts, no_fuzzy_matching=True, update_creation_date=False)
    return catalog


def write(file: Path, catalog: Catalog) -> None:
    # The respondents' messages stay in the order in which they are read.
    sort = file.stem == "django"
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("wb") as stream:
        write_po(
            stream,
            catalog,
            width=88,
            sort_by_file=sort,
            include_lineno=False,
            ignore_obsolete=True,
        )
    file.with_suffix(".mo").write_bytes(compiled(catalog))


def compiled(catalog: Catalog) -> bytes:
    stream = BytesIO()
    write_mo(stream, catalog)
    return stream.getvalue()


def problems(catalog: Catalog, *, partial: bool = False) -> Iterator[str]:
    """Yield what is missing in a catalog, and translations that lost a variable.

    A `partial` catalog need not have all texts.
    """
    for message in catalog:
        if not message.id:
            continue
        ids, translations = _forms(message.id), _forms(message.string or "")
        shown = f"{', '.join(file for file, _ in message.locations)}: {ids[0]!r}"
        if partial and not any(translations):
            continue
        if message.fuzzy or not all(translations):
            yield f"{shown} has no translation"
        elif _lost(message, ids, translations):
            yield f"{shown}: variables and tags differ from the English text"


def _forms(texts: str | tuple[str, ...] | list[str]) -> tuple[str, ...]:
    return (texts,) if isinstance(texts, str) else tuple(texts)


def _lost(message: Message, ids: tuple[str, ...], forms: tuple[str, ...]) -> bool:
    # A singular may leave its number out: "one school".
    needed = [sorted(PLACEHOLDER.findall(text)) for text in ids]
    return any(sorted(PLACEHOLDER.findall(form)) not in needed for form in forms)
