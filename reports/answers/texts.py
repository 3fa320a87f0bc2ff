"""Find texts of a survey for the language of a page."""

from __future__ import annotations

from django.utils.html import format_html
from django.utils.translation import pgettext_lazy

from survey.instrument.definitions.schema import SurveyDefinition, Texts
from survey.taking import messages
from survey.taking.rendering import Localizer, Text, html_of

# Between parts of a list, such as two scores.
COMMA = pgettext_lazy("list", ", ")
SEMICOLON = pgettext_lazy("list", "; ")


def localizer_for(definition: SurveyDefinition, language: str) -> Localizer:
    """Return a localizer with an ellipsis for the answers that texts repeat."""
    return Localizer.of(definition, language, dict.fromkeys(definition["items"], "…"))


def marked_text(
    localizer: Localizer, texts: Texts | None, language: str, otherwise: str = ""
) -> Text:
    """Return a text as HTML, marked if it is not in the page's language."""
    text, code = localizer.find(texts)
    if not text:
        return Text(html_of(otherwise))
    html = html_of(text, localizer.values)
    if messages.base_of(code) == messages.base_of(language):
        return Text(html)
    direction = messages.direction(code)
    return Text(html, format_html(' lang="{}" dir="{}"', code, direction))
