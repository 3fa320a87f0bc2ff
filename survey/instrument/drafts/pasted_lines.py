"""Divide a pasted questionnaire into lines, and read what stands before their texts.

Word processors, web pages and e-mails put marks before the lines of lists: numbers,
letters, bullets, boxes to tick. Each pattern reads a line from its start or passes
over it once, so that a line of 200,000 characters takes as long as many short ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from survey.instrument.drafts.pasting import BULLET
from survey.instrument.xlsform.workbook import MAX_TEXT

MOST_BYTES = 200_000
MOST_LINES = 3_000

# The marks of a line: who writes a number or a letter starts a question or an answer,
# a box may be ticked beside others, and of round ones one is chosen.
NUMBER, LETTER, DOT, BOX, ROUND = "number", "letter", "bullet", "box", "round"
ANSWER_MARKS = frozenset((DOT, BOX, ROUND))

BREAKS = str.maketrans(dict.fromkeys("\r\v\f\x85\u2028\u2029", "\n"))
# Invisible: soft hyphens, zero-width spaces, marks of directions, other controls.
INVISIBLE = dict.fromkeys(
    [
        *(code for code in range(0x20) if chr(code) not in "\t\n"),
        *range(0x7F, 0xA0),
        *(0xAD, 0x61C, 0x200B, 0x200E, 0x200F, 0x2060, 0xFEFF),
        *range(0x202A, 0x202F),
        *range(0x2066, 0x206A),
    ]
)
SPACES = dict.fromkeys(map(ord, "\xa0\u1680\u202f\u205f\u3000"), " ")
SPACES |= dict.fromkeys(range(0x2000, 0x200B), " ")
# Letters in the fonts of symbols, as Word copies them.
SYMBOLS = {
    **dict.fromkeys((0xF0B7, 0xF0A7, 0xF0D8, 0xF076, 0xF0FC), "•"),
    **dict.fromkeys((0xF0A8, 0xF06F, 0xF071, 0xF0FE, 0xF072), "☐"),
    0xF0A1: "○",
}
CLEAN = str.maketrans({**INVISIBLE, **SPACES, **SYMBOLS})

BOXES = r"[☐☑☒□▢❏❑❐◻⬜]|\[ {0,3}[xX✓]? {0,3}\]"
CIRCLES = r"[○◯⚪◌⭕◎⚬]|\( {0,3}\)"
GLYPH = re.compile(f"{BOXES}|{CIRCLES}")
BLANK_CELL = re.compile(rf"(?:{BOXES}|{CIRCLES}|[oOxX]|\d{{1,2}}|_{{0,20}})")
AT_START = (
    (BOX, re.compile(rf"(?:{BOXES})\s*(?=\S)")),
    (ROUND, re.compile(rf"(?:{CIRCLES})\s*(?=\S)")),
    # A line to write a cross on.
    (ROUND, re.compile(r"_{2,12} {1,4}(?=[^\s_])")),
    (DOT, re.compile(BULLET.pattern.removeprefix(r"\s*"))),
)
ASKED = re.compile(
    r"(?:Question|Pregunta|Preg|Item|السؤال|سؤال|[QPس])\s?\.?\s?#?(\d{1,3})"
    r"(?:\s?[.):–-]\s*|\s+)(?=\S)",
    re.IGNORECASE,
)
COUNTED = re.compile(
    r"(\(?)(\d{1,3})(?:(\s?[.):])(?!\d)|(\s?[-–])(?=\s+\D)|(\s?=)(?=\s*\D))\s*(?=\S)"
)
ALONE = re.compile(
    r"(?:(?:Question|Pregunta|السؤال|سؤال|[QP])\s?\d{1,3}\s?[.):]?|\d{1,3}\s?[.)])",
    re.IGNORECASE,
)
COUNTED_CELL = re.compile(r"(\d{1,3})\t\s*(?=\S)")
LETTERED = re.compile(r"(\(?)([A-Za-zأبتثجحخدهوزطيكل]|[ivx]{2,4})([.)])(?:\s+)(?=\S)")
STAR = re.compile(r"\*\s*(?=\S)")

# What lines to write on are drawn with.
WRITE_ON = frozenset("_.… \t")
DRAWN = ("___", "....", "……")
WIDE = re.compile(r"\s{3,}|\t")
VALUED = re.compile(r"(?:^|(?<=[\s,;(]))(\d{1,2})\s?=\s?")
ALPHABET = "abcdefghijkl"
LETTERED_PART = re.compile(r"(?:^|(?<=\s\s)|(?<=\t))\(?([A-La-l])[.)](?=\s*\S)\s?")
MOST_PARTS = 12
LONGEST_PART = 60
QUESTION_SIGNS = "?؟？"


@dataclass(frozen=True, slots=True)
class Line:
    """A line with text. `gap` is the number of blank lines above it.

    `mark` is what stood before `text`, of the `label` (3) and `style` ("1)"); `raw`
    has it. `parts` are answers that are in one line; `is_row` is that of a table,
    whose other cells are blank. `source` counts the lines of the text from 1.
    """

    number: int
    source: int
    raw: str
    text: str
    mark: str = ""
    label: str = ""
    style: str = ""
    gap: int = 0
    parts: tuple[str, ...] = ()
    is_row: bool = False
    # The top of a table, whose first cell is blank.
    is_header: bool = False
    # Of a row whose cells have the numbers to circle.
    cells: tuple[str, ...] = ()
    is_starred: bool = False

    @property
    def asks(self) -> bool:
        """Whether it has a question mark, and at most a remark behind it."""
        end = max(self.text.rfind(sign) for sign in QUESTION_SIGNS)
        rest = self.text[end + 1 :].strip(" *_.")
        if end < 1 or not rest:
            return end > 0
        return len(rest) <= LONGEST_PART and (rest[0] in "([" or rest[0].isupper())

    @property
    def is_slashed(self) -> bool:
        """Whether its answers may be one: "Parent/guardian"."""
        return bool(self.parts) and "/" in self.raw and not GLYPH.search(self.raw)

    @property
    def is_drawn(self) -> bool:
        """Whether the text ends with a line to write on."""
        return self.text.endswith(DRAWN) and not WRITE_ON.issuperset(self.text)

    @property
    def is_to_write_on(self) -> bool:
        return len(self.raw) > 2 and WRITE_ON.issuperset(self.raw)

    @property
    def is_wordless(self) -> bool:
        return not any(sign.isalnum() for sign in self.raw)


class TextTooLong(ValueError):
    """The text has too many signs or lines to be read; the message says which."""


def read_lines(text: str) -> list[Line]:
    """Divide a text into its lines; those without a visible sign are left out.

    Raises TextTooLong.
    """
    if len(text.encode("utf-8", "replace")) > MOST_BYTES:
        raise TextTooLong(
            _("Paste at most %(most)s KB of text at a time.")
            % {"most": MOST_BYTES // 1000}
        )
    text = text.replace("\r\n", "\n").translate(BREAKS).translate(CLEAN)
    written = [
        (source, line)
        for source, line in enumerate(text.split("\n"), 1)
        if line.strip(" \t")
    ]
    if len(written) > MOST_LINES:
        raise TextTooLong(
            _("Paste at most %(most)s lines at a time. This text has %(count)s.")
            % {"most": f"{MOST_LINES:,}", "count": f"{len(written):,}"}
        )
    for source, line in written:
        if len(line) > MAX_TEXT:
            raise TextTooLong(
                _("Line %(line)s has more than %(most)s characters. Divide it.")
                % {"line": f"{source:,}", "most": f"{MAX_TEXT:,}"}
            )
    lines: list[Line] = []
    gap = 0
    before, number = 0, ""
    for place, (source, raw) in enumerate(written):
        after = written[place + 1][1] if place + 1 < len(written) else ""
        gap = source - before - 1 if not number else gap
        if after and len(raw) <= LONGEST_PART and ALONE.fullmatch(raw.strip()):
            # A number above its question.
            number, before = raw.strip(), source
            continue
        raw, number = f"{number} {raw.strip()}" if number else raw, ""
        for content, parts in _divided(raw, after):
            lines.append(_read(content, parts, len(lines) + 1, source, gap))
            gap = 0
        before = source
    return lines


def _divided(raw: str, after: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Divide a question and the answers that stand in one line with it."""
    cells = [cell.strip() for cell in raw.split("\t")]
    if len(cells) > 2 and len(_row_cells(after)) == len(cells) and cells[0]:
        labels = tuple(cell for cell in cells[1:] if cell)
        if len(labels) > 1 and not _is_row(raw):
            yield cells[0], ()
            yield "\t".join(labels), labels
            return
    if boxed := _boxed(raw):
        stem, labels = boxed
        if stem:
            yield stem, ()
        yield raw[len(stem) :].strip() if stem else raw, labels
        return
    end = max(raw.rfind(sign) for sign in QUESTION_SIGNS) + 1
    rest = raw[end:].strip(" *")
    bare = rest[1:-1] if rest.startswith("(") and rest.endswith(")") else rest
    if end and rest and (labels := answers_in(bare)):
        yield raw[:end], ()
        yield rest, labels
        return
    end = raw.rfind(":") + 1
    spaced = re.split(r"\s[/|]\s", raw[end:].strip())
    is_spaced = len(spaced) > 1 and all(0 < len(part.split()) < 4 for part in spaced)
    scale = spaced if is_spaced else _scale_of_numbers(raw[end:])
    if end and (labels := tuple(scale)):
        yield raw[:end], ()
        yield raw[end:], labels
        return
    yield raw, ()


def _row_cells(raw: str) -> list[str]:
    """Return the cells of a row without that of its number."""
    cells = [cell.strip() for cell in raw.split("\t")] if _is_row(raw) else []
    return cells[1:] if cells and cells[0].rstrip(".)").isdecimal() else cells


def _is_row(raw: str) -> bool:
    """Return whether a line is a row of a table to tick in: one text, blank cells."""
    cells = [cell.strip() for cell in raw.split("\t")]
    if len(cells) > 1 and cells[0].rstrip(".)").isdecimal():
        cells = cells[1:]
    if len(cells) < 3 or not cells[0]:
        return False
    return all(BLANK_CELL.fullmatch(cell) for cell in cells[1:])


def _boxed(raw: str) -> tuple[str, tuple[str, ...]] | None:
    """Return what is before the answers with boxes in one line, and the answers."""
    glyphs = [*GLYPH.finditer(raw)]
    if len(glyphs) < 2:
        return None
    ends = [0, *(glyph.end() for glyph in glyphs)]
    starts = [*(glyph.start() for glyph in glyphs), len(raw)]
    segments = [raw[end:start] for end, start in zip(ends, starts, strict=True)]
    stem, labels = segments[0], segments[1:]
    if not segments[-1].strip() and stem.strip():
        # The boxes are behind their labels.
        end = max(stem.rfind(sign) for sign in f"{QUESTION_SIGNS}:") + 1
        stem, labels = stem[:end], [stem[end:], *segments[1:-1]]
    bare = tuple(" ".join(label.split()).strip(" ,;/") for label in labels)
    return (stem.rstrip(), bare) if all(bare) else None


def answers_in(text: str, *, is_certain: bool = False) -> tuple[str, ...]:
    """Return the answers in one line, such as "Yes / No"; () if it is a text.

    `is_certain` says that they are some: then also commas divide them.
    """
    if boxed := _boxed(text):
        return boxed[1]
    dividers = (
        _valued(text),
        _lettered(text),
        WIDE.split(text.strip()),
        parts if len(parts := re.split(r"\s[/|]\s", text.strip(" ()"))) > 2 else [],
        _slashed(text.strip(" ()")),
        _scale_of_numbers(text),
        *(
            (re.split("[;؛]", text), re.split("[,،]", text), text.split("/"))
            if is_certain
            else ()
        ),
    )
    for parts in dividers:
        bare = tuple(part for each in parts if (part := " ".join(each.split())))
        fits = 2 <= len(bare) <= MOST_PARTS or (is_certain and len(bare) > 1)
        if fits and (is_certain or not any(map(_is_no_answer, bare))):
            return bare
    return (" ".join(text.split()),) if is_certain else ()


def _is_no_answer(part: str) -> bool:
    ends = (*QUESTION_SIGNS, ":")
    has_words = any(sign.isalnum() for sign in part)
    is_text = has_words and "___" not in part
    return len(part) > LONGEST_PART or part.endswith(ends) or not is_text


def _valued(text: str) -> list[str]:
    """Return the labels of "1 = Never, 2 = Often", with other numbers as they are."""
    matches = [*VALUED.finditer(text)]
    if len(matches) < 2 or matches[0].start() > 1:
        return []
    ends = [*(match.start() for match in matches[1:]), len(text)]
    is_plain = [match[1] for match in matches] == [*map(str, range(1, len(ends) + 1))]
    return [
        text[match.end() if is_plain else match.start() : end].strip(" ,;()")
        for match, end in zip(matches, ends, strict=True)
    ]


def _lettered(text: str) -> list[str]:
    """Return the answers of "a) Yes  b) No"."""
    matches = [*LETTERED_PART.finditer(text)]
    letters = "".join(match[1].lower() for match in matches)
    if len(matches) < 2 or matches[0].start() or letters != ALPHABET[: len(letters)]:
        return []
    ends = [*(match.start() for match in matches[1:]), len(text)]
    return [
        text[match.end() : end].strip()
        for match, end in zip(matches, ends, strict=True)
    ]


def _slashed(text: str) -> list[str]:
    """Divide "Yes/No" and "Parent / guardian", but not a sentence with a slash."""
    if len(text) > LONGEST_PART:
        return []
    spaced = re.split(r"\s[/|]\s", text)
    parts = spaced if len(spaced) > 1 else text.split("/")
    longest = 2 if len(spaced) > 1 else 1
    return parts if all(len(part.split()) <= longest for part in parts) else []


def _scale_of_numbers(text: str) -> list[str]:
    words = text.replace(",", " ").split()
    if not 3 <= len(words) <= MOST_PARTS or not all(
        word.isdecimal() and len(word) < 3 for word in words
    ):
        return []
    numbers = [int(word) for word in words]
    return words if numbers == [*range(numbers[0], numbers[0] + len(words))] else []


def _read(
    content: str, parts: tuple[str, ...], number: int, source: int, gap: int
) -> Line:
    raw = content.strip()
    is_row = _is_row(content.lstrip("\t") if number == 1 else content)
    is_starred = False
    if (star := STAR.match(raw)) and (COUNTED.match(raw[star.end() :])):
        raw, is_starred = raw[star.end() :], True
    parts = parts or tuple(_valued(raw) or _lettered(raw))
    mark, label, style, end = ("", "", "", 0) if parts else _mark_of(raw)
    text = raw[end:]
    cells: tuple[str, ...] = ()
    if (stem := _text_of_glyphs(text)) and not parts:
        text, is_row = stem, True
    elif is_row:
        text, *numbers = text.split("\t")
        cells = tuple(_scale_of_numbers(" ".join(numbers)))
    if not parts and not is_row and not mark:
        parts = answers_in(raw)
    return Line(
        number,
        source,
        _one_line(raw),
        _one_line(text),
        mark,
        label,
        style,
        gap,
        parts,
        is_row,
        bool(parts) and content.startswith("\t"),
        cells,
        is_starred,
    )


def _text_of_glyphs(text: str) -> str:
    """Return the text before two or more boxes without labels; "" for another line."""
    glyphs = [*GLYPH.finditer(text)]
    if len(glyphs) < 2:
        return ""
    ends = [glyph.end() for glyph in glyphs]
    starts = [*(glyph.start() for glyph in glyphs[1:]), len(text)]
    has_labels = any(
        text[end:start].strip() for end, start in zip(ends, starts, strict=True)
    )
    return "" if has_labels else text[: glyphs[0].start()].strip()


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _mark_of(raw: str) -> tuple[str, str, str, int]:
    for mark, pattern in AT_START:
        if match := pattern.match(raw):
            return mark, "", mark, match.end()
    if match := ASKED.match(raw):
        return NUMBER, str(int(match[1])), "Q", match.end()
    if match := COUNTED_CELL.match(raw):
        return NUMBER, str(int(match[1])), "cell", match.end()
    if match := COUNTED.match(raw):
        sign = (match[3] or match[4] or match[5]).strip()
        return NUMBER, str(int(match[2])), f"{match[1]}1{sign}", match.end()
    if match := LETTERED.match(raw):
        case = "A" if match[2].isupper() else "a"
        return LETTER, match[2].lower(), f"{match[1]}{case}{match[3]}", match.end()
    return "", "", "", 0


def is_counted(lines: Sequence[Line]) -> bool:
    """Return whether the marks of lines count from their first one: 1, 2, 3 or a, b."""
    if not lines or len({(line.mark, line.style) for line in lines}) > 1:
        return False
    labels = [line.label for line in lines]
    if lines[0].mark == NUMBER:
        return labels == [str(number) for number in range(1, len(labels) + 1)]
    if lines[0].mark == LETTER:
        return any(labels == [*order[: len(labels)]] for order in LETTER_ORDERS)
    return True


LETTER_ORDERS = (
    "abcdefghijklmnopqrstuvwxyz",
    "أبتثجحخد",
    "أبجدهوزحطيكل",
    ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x"),
)
