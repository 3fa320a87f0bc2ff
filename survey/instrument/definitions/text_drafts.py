"""Drafts of corrections that are written in the console, text by text.

A draft is a copy of a published survey, whose texts can be changed one after
another. It is compared and published like the draft of a corrected workbook
(`survey.instrument.definitions.corrections`), which checks that nothing but texts
differs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, cast

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Prefetch, QuerySet
from django.http import HttpRequest
from django.utils import translation
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import audit
from accounts.models import User
from survey.instrument.definitions.measures import measures_of
from survey.instrument.definitions.publishing import lock_survey
from survey.instrument.definitions.schema import (
    ITEM_TEXTS,
    EssentialDefinition,
    ItemDefinition,
    ItemRules,
    MeasureDefinition,
    SurveyDefinition,
    Texts,
    load_definition,
)
from survey.instrument.xlsform.columns import SurveyRow
from survey.instrument.xlsform.draft import (
    BlockDraft,
    Draft,
    ItemDraft,
    OptionDraft,
    PageDraft,
)
from survey.instrument.xlsform.importing import import_survey
from survey.instrument.xlsform.names import has_open_reference, normalised, quoted_names
from survey.models import (
    Block,
    Item,
    Option,
    Page,
    PublishedSurvey,
    Survey,
    SurveyMeasures,
)

# As long as a cell of a workbook.
LONGEST_TEXT = 32_767
# Of a section, so that a form has less than a thousand fields in six languages.
MOST_TEXTS = 120
NO_RULES = {"id", "page", "kind", "label", "hint", "guidance", "option_set", "local"}

FIELD_WORDS = {
    "description": gettext_lazy("description"),
    "hint": gettext_lazy("hint"),
    "guidance": gettext_lazy("guidance"),
    "required_message": gettext_lazy("message if it is required"),
    "constraint_message": gettext_lazy("message if it is not valid"),
}

TextHolder = Survey | Page | Block | Item | Option


class TextsChanged(ValidationError):
    """Somebody else has changed these texts, or published them."""


@dataclass(frozen=True, slots=True)
class EditableText:
    """A text in all languages, and the row and field that it is stored in."""

    place: str
    row: TextHolder
    field: str

    @property
    def key(self) -> str:
        return f"{self.row._meta.model_name}{self.row.pk}-{self.field}"

    @property
    def texts(self) -> Texts:
        if self.field in ("required_message", "constraint_message"):
            return cast(Item, self.row).rules.get(self.field, {})
        return cast(Texts, getattr(self.row, self.field))

    def set(self, texts: Texts) -> None:
        if self.field in ("required_message", "constraint_message"):
            item = cast(Item, self.row)
            item.rules = {**item.rules, self.field: texts}
            item.save(update_fields=["rules"])
        else:
            setattr(self.row, self.field, texts)
            self.row.save(update_fields=[self.field])


@dataclass(frozen=True, slots=True)
class MeasureText:
    """The label or description of a measure or essential, in all languages.

    `entry` is a part of the content of `row`.
    """

    place: str
    row: SurveyMeasures
    entry: EssentialDefinition | MeasureDefinition
    field: Literal["label", "description"]

    @property
    def key(self) -> str:
        return f"measure-{self.entry['name']}-{self.field}"

    @property
    def texts(self) -> Texts:
        return self.entry[self.field]

    def set(self, texts: Texts) -> None:
        self.entry[self.field] = texts
        self.row.save(update_fields=["content"])


SurveyText = EditableText | MeasureText


@dataclass(frozen=True, slots=True)
class TextSection:
    """Texts that are edited together: of a page, a set of options, or measures."""

    name: str
    texts: Sequence[SurveyText]

    @property
    def digest(self) -> str:
        content = json.dumps([(text.key, text.texts) for text in self.texts])
        return hashlib.sha256(content.encode()).hexdigest()[:16]


# Start ----------------------------------------------------------------------------


@transaction.atomic
def start_text_draft(
    *, corrects: PublishedSurvey, by: User, request: HttpRequest | None = None
) -> Survey:
    """Copy a published survey, or return the copy that is not published yet."""
    original = lock_survey(corrects.survey)
    waiting = text_drafts().filter(corrects=corrects).order_by("pk").last()
    if waiting is not None:
        return waiting
    definition = load_definition(corrects.definition)
    return import_survey(
        draft=replace(
            _draft_of(definition, _next_version(original)),
            measures=measures_of(original),
        ),
        district=original.district,
        corrects=corrects,
        by=by,
        request=request,
    )


def text_drafts() -> QuerySet[Survey]:
    """Return the drafts that were made here, not from a workbook or in the editor."""
    return Survey.objects.filter(
        corrects__isnull=False, published_at=None, source=None, last_change=0
    ).defer("source")


def _next_version(survey: Survey) -> str:
    taken = set(
        Survey.objects.filter(
            name=survey.name, district=survey.district_id
        ).values_list("version", flat=True)
    )
    numbers = (f"{survey.version[:56]}.{n}" for n in range(1, len(taken) + 2))
    return next(version for version in numbers if version not in taken)


def _draft_of(definition: SurveyDefinition, version: str) -> Draft:
    items = definition["items"]
    return Draft(
        name=definition["name"],
        version=version,
        title=definition["title"],
        languages=definition["languages"],
        option_sets={
            name: [
                OptionDraft(option["value"], option["label"], option["attributes"])
                for option in options
            ]
            for name, options in definition["option_sets"].items()
        },
        pages=[
            PageDraft(
                page["name"],
                page["title"],
                [
                    BlockDraft(
                        block["label"],
                        block["grid"],
                        [_item_draft(name, items[name]) for name in block["items"]],
                    )
                    for block in page["blocks"]
                ],
            )
            for page in definition["pages"]
        ],
    )


def _item_draft(name: str, item: ItemDefinition) -> ItemDraft:
    rules = {key: part for key, part in item.items() if key not in NO_RULES}
    return ItemDraft(
        name=name,
        kind=item["kind"],
        # It has none: only the reader of workbooks uses it.
        row=cast(SurveyRow, None),
        label=item.get("label", {}),
        hint=item.get("hint", {}),
        guidance=item.get("guidance", {}),
        option_set=item.get("option_set", ""),
        rules=cast(ItemRules, rules),
    )


# Edit -----------------------------------------------------------------------------


def sections_of(survey: Survey) -> list[TextSection]:
    """Return all texts: of pages, sets of options and measures. 6 statements."""
    blocks = Block.objects.prefetch_related(
        Prefetch("items", queryset=Item.objects.all())
    )
    title = EditableText(_("title"), survey, "title")
    sections = [TextSection(_("Title"), [title])]
    pages = survey.pages.prefetch_related(Prefetch("blocks", queryset=blocks))
    for number, page in enumerate(pages, 1):
        words = _("Page %(number)s: %(title)s") % {
            "number": number,
            "title": page.title.get(survey.language_to_read) or page.name,
        }
        sections += _parts(words, list(_texts_of_page(page)))
    sets = survey.option_sets.order_by("pk").prefetch_related("options")
    for option_set in sets:
        options = option_set.options.all()
        texts = [EditableText(row.value, row, "label") for row in options if row.label]
        sections += _parts(_("Options %(name)s") % {"name": option_set.name}, texts)
    measures = SurveyMeasures.objects.filter(survey=survey).first()
    if measures is not None:
        sections += _parts(_("Measures"), list(_texts_of_measures(measures)))
    return sections


def _texts_of_page(page: Page) -> Iterator[EditableText]:
    if page.title:
        yield EditableText(_("title of the page"), page, "title")
    for number, block in enumerate(page.blocks.all(), 1):
        if block.label:
            yield EditableText(
                _("heading %(number)s") % {"number": number}, block, "label"
            )
        for item in block.items.all():
            for field in ITEM_TEXTS:
                words = FIELD_WORDS.get(field)
                place = f"{item.name}, {words}" if words else item.name
                text = EditableText(place, item, field)
                if text.texts:
                    yield text


def _texts_of_measures(row: SurveyMeasures) -> Iterator[MeasureText]:
    fields: tuple[Literal["label"], Literal["description"]] = ("label", "description")
    for entry in [*row.content["essentials"], *row.content["measures"]]:
        for field in fields:
            words = FIELD_WORDS.get(field)
            place = f"{entry['name']}, {words}" if words else entry["name"]
            text = MeasureText(place, row, entry, field)
            if text.texts:
                yield text


def _parts(name: str, texts: Sequence[SurveyText]) -> Iterator[TextSection]:
    for start in range(0, len(texts), MOST_TEXTS):
        more = f" ({start // MOST_TEXTS + 1})" if start else ""
        yield TextSection(f"{name}{more}", texts[start : start + MOST_TEXTS])


@transaction.atomic
def save_texts(
    *,
    survey: Survey,
    number: int,
    seen: str,
    texts: Mapping[str, Texts],
    by: User,
    request: HttpRequest | None = None,
) -> int:
    """Change texts of a section of a draft, by key; return how many differ.

    `seen` is the digest of the section that was edited. Raises TextsChanged, and
    ValidationError with a message for each "key-language".
    """
    survey = lock_survey(survey)
    if survey.published_at is not None:
        raise TextsChanged(_("This correction was published meanwhile."))
    # The audit log names the texts in the same language for everyone.
    with translation.override("en"):
        section = sections_of(survey)[number]
    if section.digest != seen:
        raise TextsChanged(
            _(
                "Somebody else has changed these texts meanwhile. Check them,"
                " then make your changes again."
            )
        )
    names = dict(survey.items.values_list("name", "kind"))
    codes = [language["code"] for language in survey.languages]
    errors: dict[str, str] = {}
    changed = []
    for row in section.texts:
        new = {code: _clean(texts[row.key].get(code, "")) for code in codes}
        for code, text in new.items():
            required = code == codes[0] and bool(row.texts.get(code))
            # What was there already was good enough for the workbook.
            if text == row.texts.get(code, ""):
                continue
            if problem := _problem_of(text, names, required=required):
                errors[f"{row.key}-{code}"] = problem
        written = {code: text for code, text in new.items() if text}
        if written != row.texts:
            changed.append((row, written))
    if errors:
        raise ValidationError(errors)
    for row, written in changed:
        row.set(written)
    if changed:
        audit.record(
            "change texts of draft",
            by=by,
            request=request,
            subject=survey,
            district=survey.district,
            after={"texts": [f"{section.name}: {row.place}" for row, text in changed]},
        )
    return len(changed)


def _clean(text: str) -> str:
    return normalised(text.replace("\r\n", "\n").replace("\r", "\n").strip())


def _problem_of(text: str, kinds: Mapping[str, str], *, required: bool) -> str:
    """Return why a workbook with this text would be refused, or an empty text."""
    if not text:
        return (
            _("Enter a text: this is the survey's first language.") if required else ""
        )
    if len(text) > LONGEST_TEXT:
        return _("Use at most %(longest_text)s characters.") % {
            "longest_text": f"{LONGEST_TEXT:,}"
        }
    if not all(sign.isprintable() or sign in "\n\t\u200e\u200f\u00a0" for sign in text):
        return _("Remove the characters that cannot be seen.")
    if has_open_reference(text):
        return _("A ${ is never closed. Write a name like ${name}.")
    for name in quoted_names(text):
        if name not in kinds:
            return _("There is no question ${%(name)s} in this survey.") % {
                "name": name
            }
        if kinds[name] == Item.Kind.NOTE:
            return _("${%(name)s} is a note, which has no answer.") % {"name": name}
    return ""
