"""Update the catalogs of translations; see `survey.instrument.translations`."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from babel.core import Locale, UnknownLocaleError
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from survey.instrument import translations
from survey.taking import messages


class Command(BaseCommand):
    help = (
        "Extract the texts of the console, of reports and of respondents' pages, update"
        " the .po files of all languages and compile them. Lists texts without"
        " translation."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--console", metavar="fr", help="add a language")
        parser.add_argument("--reports", metavar="fr", help="add a language")
        parser.add_argument("--respondents", metavar="fr", help="add a language")

    def handle(self, *args: Any, **options: Any) -> None:
        console = translations.console_files()
        if options["console"]:
            folder = _new_folder(settings.LOCALE_PATHS[0], options["console"])
            console.append(folder / "django.po")
        reports = translations.report_files()
        if options["reports"]:
            folder = _new_folder(settings.LOCALE_PATHS[1], options["reports"])
            reports.append(folder / "django.po")
        respondents = translations.respondents_files()
        if options["respondents"]:
            folder = _new_folder(messages.LOCALE, options["respondents"])
            respondents.append(folder / f"{messages.DOMAIN}.po")
        for files, texts in (
            (console, translations.console_texts()),
            (reports, translations.report_texts()),
            (respondents, translations.respondents_texts()),
        ):
            for file in files:
                catalog = translations.updated(file, texts)
                translations.write(file, catalog)
                partial = file.stem == messages.ADULTS
                for problem in translations.problems(catalog, partial=partial):
                    self.stdout.write(problem)
                self.stdout.write(f"{file}: {len(catalog)} texts")


def _new_folder(root: Path, language: str) -> Path:
    try:
        Locale.parse(language)
    except (ValueError, UnknownLocaleError) as error:
        raise CommandError(f"{language} is not a language: {error}") from error
    return root / language / "LC_MESSAGES"
