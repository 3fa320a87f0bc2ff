"""Catalogs of translations are complete, compiled, and lose no variable."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator

import pytest
from babel.messages.catalog import Catalog
from django.conf import settings as settings_
from django.core.management import CommandError, call_command
from django.template.loader import get_template

from survey.instrument import translations
from survey.taking import messages

# Template tags (block `width` names a class), comments, and what is no text.
NOT_SHOWN = re.compile(
    r"{%\s*blocktranslate\b.*?endblocktranslate\s*%}|{#.*?#}|<!--.*?-->"
    r"|{% block (?:width|\w+_class) %}.*?{% endblock|{%.*?%}|{{.*?}}"
    r"|<(script|style|code)\b.*?</\1>",
    re.DOTALL,
)
SHOWN_ATTRIBUTE = re.compile(r'\b(?:title|placeholder|aria-label|alt)="([^"]*)"')
UNITS = frozenset(("ms", "– ms"))
# Files that are read with English names of columns, and no text at all.
IN_ENGLISH = (
    *("codebook.html", "technical_report.html", "js_file.html"),
    *("return_questionnaire.html", "return_readme.txt"),
)


@pytest.fixture(scope="module")
def texts() -> Catalog:
    return translations.console_texts()


def test_texts_are_found_in_templates_and_python(texts):
    assert texts.get("This language is not offered.") is not None
    files = {file for message in texts for file, _ in message.locations}
    assert "templates/console/_account_menu.html" in files
    assert not any("/tests/" in file for file in files)


def test_calls_in_templates_are_found_whatever_surrounds_them(settings, tmp_path):
    settings.BASE_DIR = tmp_path
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "page.html").write_text(
        """{% load i18n %}<p title='{% translate "open" context "door" %}'>don't (
        {% blocktranslate trimmed count n=n with name=x.name %}
          One child of <b>{{ name }}</b>'s
        {% plural %}{{ n }} children{% endblocktranslate %} gettext(
        {% translate "100 %" %}{% include "x" with text=_("Argument") %}"""
    )
    marked = {(m.context, m.id) for m in translations.console_texts() if m.id}
    assert marked == {
        ("door", "open"),
        (None, ("One child of <b>%(name)s</b>'s", "%(n)s children")),
        (None, "100 %%"),
        (None, "Argument"),
    }


def test_every_template_compiles():
    """Some are shown only after an error or in a letter, where no page test looks."""
    templates = settings_.BASE_DIR / "templates"
    for path in sorted(templates.rglob("*.*")):
        if path.suffix in (".html", ".txt"):
            get_template(str(path.relative_to(templates)))


def test_every_text_of_the_consoles_templates_is_marked_for_translation():
    templates = settings_.BASE_DIR / "templates"
    unmarked = [
        (str(path.relative_to(templates)), text.strip())
        for path in sorted(templates.rglob("*.*"))
        # Engineers read English, as in Django's admin.
        if path.parent not in (templates, templates / "survey", templates / "engineers")
        and path.name not in IN_ENGLISH
        for text in unmarked_texts(path.read_text("utf-8"))
    ]
    assert unmarked == []
    assert list(unmarked_texts("<p title='x'>{% translate 'Yes' %} {{ no }}</p>")) == []
    assert list(unmarked_texts('<p title="Left out">{{ x }} was</p>')) == [
        "Left out",
        " was",
    ]


def unmarked_texts(template: str) -> Iterator[str]:
    """Yield words outside of template tags and HTML tags, and of attributes."""
    text = NOT_SHOWN.sub("", template)
    for part in [*SHOWN_ATTRIBUTE.findall(text), *re.split(r"<[^>]*>", text)]:
        words = " ".join(part.replace("Groundswell", "").split())
        if re.search(r"[A-Za-z]{2,}", words) and words not in UNITS:
            yield part


@pytest.mark.parametrize(
    "file",
    [
        *translations.console_files(),
        *translations.report_files(),
        *translations.respondents_files(),
    ],
    ids=lambda file: "/".join((file.parts[-5], file.parts[-3], file.name)),
)
def test_every_text_is_translated(file, texts):
    """If this fails: run manage.py update_translations, and translate what it lists."""
    sources = translations.respondents_texts()
    if file in translations.console_files():
        sources = texts
    elif file in translations.report_files():
        sources = translations.report_texts()
    catalog = translations.updated(file, sources)
    partial = file.stem == messages.ADULTS
    assert list(translations.problems(catalog, partial=partial)) == []
    assert file.with_suffix(".mo").read_bytes() == translations.compiled(catalog)


def test_missing_translations_and_lost_variables_are_problems():
    catalog = Catalog("es")
    catalog.add("%(name)s <b>left</b>", "%(nombre)s se fue", locations=[("a", 1)])
    catalog.add("Save", "Guardar", locations=[("a", 1)])
    catalog.add("Close", "", locations=[("b", 1)])
    catalog.add("Open", "Abrir", locations=[("b", 1)], flags=["fuzzy"])
    lost = "a: '%(name)s <b>left</b>': variables and tags differ from the English text"
    missing = [f"b: {text!r} has no translation" for text in ("Close", "Open")]
    assert list(translations.problems(catalog)) == [lost, *missing]
    assert list(translations.problems(catalog, partial=True)) == [lost, missing[1]]


def test_a_translator_gets_a_new_file_and_sends_it_back(
    settings, monkeypatch, tmp_path, capsys
):
    locale = shutil.copytree(messages.LOCALE, tmp_path / "respondents")
    monkeypatch.setattr(messages, "LOCALE", locale)
    settings.LOCALE_PATHS = [tmp_path / "console", tmp_path / "reports"]
    call_command("update_translations", console="fr", respondents="fr")
    file = locale / "fr" / "LC_MESSAGES" / "respondents.po"
    assert f"{file}: {len(messages.ENGLISH)} texts" in capsys.readouterr().out
    text = file.read_text("utf-8")
    english = messages.ENGLISH["next"]
    untranslated = f'msgctxt "next"\nmsgid "{english}"\nmsgstr ""'
    assert untranslated in text
    file.write_text(text.replace(untranslated, untranslated[:-1] + 'Suivant"'), "utf-8")
    call_command("update_translations")
    assert "'Next'" not in capsys.readouterr().out
    assert dict(messages._translated(file.with_suffix(".mo"))) == {"next": "Suivant"}
    console = tmp_path / "console" / "fr" / "LC_MESSAGES" / "django.po"
    assert "This language is not offered." in console.read_text("utf-8")


def test_an_unknown_language_is_refused():
    with pytest.raises(CommandError, match="xyz is not a language"):
        call_command("update_translations", console="xyz")
