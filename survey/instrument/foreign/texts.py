"""Turn texts with markup into plain texts, and say what is lost."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from survey.instrument.foreign.names import set_of_words
from survey.instrument.xlsform.problems import quoted
from survey.instrument.xlsform.workbook import CONTROL, MAX_TEXT

# Texts by language code.
Texts = dict[str, str]

FORMATTING = gettext_noop("formatting is lost")
PICTURES = gettext_noop("pictures, sound and video are not shown")
TABLES = gettext_noop("a table is written as lines")
LINKS = gettext_noop("links are written as addresses")
SCRIPTS = gettext_noop("scripts are dropped")
INPUTS = gettext_noop("controls in a text are dropped")
CUT = gettext_noop("the text is cut: it is too long")
LOSSES = {
    tag: loss
    for loss, tags in (
        (FORMATTING, "b i u s em strong font big small sub sup strike h1 h2 h3 h4 h5"),
        (FORMATTING, "h6 ol ul blockquote center code pre mark"),
        (PICTURES, "img video audio iframe object embed svg picture canvas"),
        (TABLES, "table"),
        (LINKS, "a"),
        (SCRIPTS, "script"),
        (INPUTS, "input select textarea button"),
    )
    for tag in tags.split()
}
# These begin and end a line of their own.
BLOCKS = set_of_words(
    "p div li ul ol tr table h1 h2 h3 h4 h5 h6 blockquote center pre section "
    "article header footer dl dt dd hr form fieldset"
)
UNSEEN = frozenset(["script", "style", "head", "title", "svg"])
# Unfinished tags take the parser of HTML quadratic time: 0.6 s for as many.
LONGEST_MARKUP = 40_000
MARKUP = re.compile(r"<[A-Za-z/!]|&(?:#|[A-Za-z]+;)")
# Around the name of an answer that a text quotes, and around what cannot be quoted;
# private characters of Unicode.
ANSWER, LITERAL = "\ue000{}\ue001", "\ue002{}\ue003"
ANSWERS = re.compile("\ue000([^\ue001]*)\ue001")
LITERALS = re.compile("\ue002([^\ue003]*)\ue003")
PRIVATE = dict.fromkeys(range(0xE000, 0xE004))
BIDI = re.compile("[\u202a-\u202e\u2066-\u2069\ufeff]")


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.losses: dict[str, None] = {}
        self.unseen = 0
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag in LOSSES:
            self.losses[LOSSES[tag]] = None
        elif "style" in values and tag in ("span", "p", "div"):
            self.losses[FORMATTING] = None
        if tag in UNSEEN:
            self.unseen += 1
        elif tag == "br" or tag in BLOCKS:
            self.parts.append("\n")
            self.parts.append("- " if tag == "li" else "")
        elif tag in ("td", "th"):
            self.parts.append(" ")
        elif tag == "img":
            self.parts.append(values.get("alt") or "")
        elif tag == "a":
            self.links.append(values.get("href") or "")

    def handle_endtag(self, tag: str) -> None:
        if tag in UNSEEN:
            self.unseen = max(self.unseen - 1, 0)
        elif tag in BLOCKS:
            self.parts.append("\n\n" if tag == "p" else "\n")
        elif tag == "a" and self.links:
            address = self.links.pop()
            shown = "".join(self.parts[-3:])
            if address.startswith(("http:", "https:")) and address not in shown:
                self.parts.append(f" ({address})")

    def handle_data(self, data: str) -> None:
        if not self.unseen:
            # A line break in markup is a blank.
            self.parts.append(re.sub(r"\s+", " ", data))


def plain_text(text: str) -> tuple[str, list[str]]:
    """Return a text without markup, its paragraphs kept, and what is lost."""
    losses: list[str] = []
    cut = len(text) > LONGEST_MARKUP
    text = text[:LONGEST_MARKUP]
    if MARKUP.search(text):
        reader = _Reader()
        reader.feed(text)
        reader.close()
        text, losses = "".join(reader.parts), [_(loss) for loss in reader.losses]
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = BIDI.sub("", CONTROL.sub("", text.replace("\N{NO-BREAK SPACE}", " ")))
    lines = [re.sub(r"[ \t\f\v]+", " ", line).strip() for line in text.split("\n")]
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
    if cut or len(text) > MAX_TEXT - 100:
        text = text[: MAX_TEXT - 100]
        losses.append(_(CUT))
    return text, losses


def shown_text(texts: Texts, longest: int = 120) -> str:
    """Return one text on one line, to name a question in the report."""
    for text in texts.values():
        if plain := plain_text(text)[0]:
            return quoted(with_references(plain)[0], longest)
    return ""


def quote_answers(
    texts: Texts,
    pattern: re.Pattern[str],
    name_of: Callable[[re.Match[str]], str | None],
) -> Texts:
    """Mark the answers that texts quote.

    `name_of` returns the name of the answer for a match of the pattern, "" if the
    match is an ordinary text, and None if it cannot be quoted here.
    """

    def marked(match: re.Match[str]) -> str:
        name = name_of(match)
        if name is None:
            return LITERAL.format(match[0])
        return ANSWER.format(name) if name else match[0]

    return {
        language: pattern.sub(marked, text.translate(PRIVATE))
        for language, text in texts.items()
    }


def with_references(plain: str) -> tuple[str, list[str]]:
    """Write marked answers as `${name}`; return what cannot be quoted as well."""
    literals = LITERALS.findall(plain)
    # `${` begins the name of an answer only where a converter says so.
    plain = ANSWERS.sub(r"${\1}", plain.replace("${", "{"))
    return plain.translate(PRIVATE), literals
