"""List a person's answers for the review: page by page, in words. 0 SQL."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time

from django.utils import translation
from django.utils.formats import date_format, time_format

from survey.instrument.definitions.piping import fill_pipes
from survey.instrument.definitions.rules import RuleState
from survey.instrument.definitions.schema import SELECTS, SurveyDefinition, Texts
from survey.taking import messages
from survey.taking.published import Published, SurveyTexts

# In a text that repeats an answer; see `survey.instrument.definitions.piping`.
REPEATS = "${"
# Lines are kept for each option: of a question with more, few are chosen twice.
MOST_OPTIONS = 20
# As the language in use writes them.
MOMENTS: dict[str, Callable[[str], str]] = {
    "date": lambda text: date_format(date.fromisoformat(text), "DATE_FORMAT"),
    "time": lambda text: time_format(time.fromisoformat(text), "TIME_FORMAT"),
    # Without a time zone: it is where the respondent is.
    "datetime": lambda text: ", ".join(
        date_format(datetime.fromisoformat(text), style)
        for style in ("DATE_FORMAT", "TIME_FORMAT")
    ),
}


@dataclass(slots=True)
class ReviewedItem:
    name: str
    label: str
    # Empty if the question was left blank.
    answer: str
    # Its line of the page, written at the first rendering.
    line: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class ReviewedPage:
    number: int
    # Among the pages that this person sees.
    place: int
    title: str
    # The questions that this person sees.
    names: list[str]
    # How many of them have a row: were answered, or passed with Next.
    stored: int
    # Empty for a page that was not opened: then it is one line, because a
    # survey of which little is answered would be a long list of nothing.
    items: list[ReviewedItem]

    @property
    def is_unopened(self) -> bool:
        return bool(self.names) and not self.stored

    @property
    def is_stored(self) -> bool:
        return self.stored == len(self.names)

    @property
    def blank(self) -> list[str]:
        """The questions without an answer."""
        if self.is_unopened:
            return self.names
        return [item.name for item in self.items if not item.answer]


@dataclass(frozen=True, slots=True)
class Gap:
    """A page on which a required answer is missing, or an answer breaks a rule."""

    page: int
    # Among the pages that this person sees.
    place: int
    page_title: str
    items: list[dict[str, str]]


def reviewed_pages(
    published: Published,
    state: RuleState,
    visible: Container[int],
    stored: Container[str],
    language: str,
) -> list[ReviewedPage]:
    """List the pages that this person sees. `stored` are the items with a row."""
    definition = published.definition
    texts = published.texts_in(language)
    values = state.values
    pages: list[ReviewedPage] = []
    for number, page in enumerate(definition["pages"], start=1):
        if number not in visible:
            continue
        names = [
            name for name in published.answerable[number - 1] if state.relevant[name]
        ]
        have_rows = sum(map(stored.__contains__, names))
        items = [
            texts.reviewed[name].get(values[name])
            or reviewed_item(texts, state, name, language)
            for name in (names if have_rows else ())
        ]
        title = text_in(definition, page["title"], language)
        place = len(pages) + 1
        pages.append(ReviewedPage(number, place, title, names, have_rows, items))
    return pages


def reviewed_item(
    texts: SurveyTexts, state: RuleState, name: str, language: str
) -> ReviewedItem:
    """Return a question with its answer; keep it if it is the same for everyone."""
    value = state.values[name]
    label, option = texts.labels[name], texts.options[name].get(value, "")
    item = ReviewedItem(
        name,
        fill_pipes(label, state.values),
        fill_pipes(option, state.values) or answer_in_words(state, name, language),
    )
    # Neither what people type nor what repeats it, nor a list of all schools.
    is_short = len(texts.options[name]) <= MOST_OPTIONS
    if is_short and option and REPEATS not in label and REPEATS not in option:
        texts.reviewed[name][value] = item
    return item


def find_gaps(
    definition: SurveyDefinition,
    problems: Mapping[str, str],
    language: str,
    values: Mapping[str, str],
    visible: Collection[int],
) -> list[Gap]:
    """Group the items that have problems by page, with texts in `language`.

    `visible` are the numbers of the pages that this person sees.
    """
    if not problems:
        return []
    gaps = []
    for n, page in enumerate(definition["pages"], start=1):
        items = [
            {
                "name": name,
                "label": label_of(definition, name, language, values),
                "problem": problems[name],
            }
            for block in page["blocks"]
            for name in block["items"]
            if name in problems
        ]
        if items:
            title = text_in(definition, page["title"], language)
            place = sum(number <= n for number in visible)
            gaps.append(Gap(page=n, place=place, page_title=title, items=items))
    return gaps


def label_of(
    definition: SurveyDefinition, name: str, language: str, values: Mapping[str, str]
) -> str:
    """Return an item's label as plain text, with the answers that it repeats."""
    label = text_in(definition, definition["items"][name].get("label", {}), language)
    return fill_pipes(label or name, values)


def text_in(definition: SurveyDefinition, texts: Texts, language: str) -> str:
    default = definition["languages"][0]["code"]
    return texts.get(language) or texts.get(default, "")


def answer_in_words(state: RuleState, name: str, language: str) -> str:
    value = state.values[name]
    kind = state.definition["items"][name]["kind"]
    if not value:
        return ""
    if kind in SELECTS:
        return state.choice_label(name, value)
    if kind == "acknowledge":
        return messages.MESSAGES[messages.language_for(language)]["acknowledge"]
    if kind in MOMENTS:
        with translation.override(messages.language_for(language)):
            return MOMENTS[kind](value)
    return value
