"""Regular expressions that mean the same in Python and in the browser.

The patterns of `regex()` are rewritten in one portable form: a true regular
language, which can be matched in linear time by RE2 in Python and by the
matcher of expressions.js, which follows all states at once. Neither
backtracks, so no pattern and no answer can hang a worker or a tab.
"""

from __future__ import annotations

import re
import string
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import re2

# The browser's matcher takes at most (states x characters) steps. The worst
# pattern within these bounds takes half a second for the longest answer on a
# laptop; an e-mail address takes microseconds.
MAX_STATES = 1000
MAX_PATTERN_LENGTH = 1000
MAX_INPUT_LENGTH = 5000
MAX_GROUP_DEPTH = 20

SPACES = r" \x09-\x0D"
NOT_SPACES = "\\x00-\\x08\\x0E-\\x1F!-\U0010ffff"
LINE_ENDS = "\\x0A\\x0D\x85\u2028\u2029"
CLASSES = {
    "d": "0-9",
    "w": "A-Za-z0-9_",
    "s": SPACES,
    "D": r"\D",
    "W": r"\W",
    "S": NOT_SPACES,
}
CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v"}
CATEGORIES = {"L", "Lu", "Ll", "Lt", "Lm", "Lo", "M", "N", "Nd", "P", "S", "Z", "Zs"}
REFUSED_ESCAPES = {
    "b": "the word boundary \\b",
    "B": "the word boundary \\B",
    "k": "a backreference",
    **dict.fromkeys("123456789", "a backreference"),
}
REFUSED_GROUPS = {
    "(?=": "look-ahead",
    "(?!": "look-ahead",
    "(?<=": "look-behind",
    "(?<!": "look-behind",
    "(?>": "an atomic group",
    "(?#": "a comment",
}
GROUP = re.compile(r"\((?:\?:|\?P?<[A-Za-z_][A-Za-z0-9_]*>|(?!\?))")
REPEAT = re.compile(r"\{([0-9]{1,4})(?:(,)([0-9]{1,4})?)?\}")
CODE = re.compile(r"x\{([0-9A-Fa-f]{1,6})\}|x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})")
CATEGORY = re.compile(r"([pP])(?:\{(\w+)\}|(\w))")


class PatternError(Exception):
    """A pattern that cannot be made portable; `position` counts from 0."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.message = message
        self.position = position


@dataclass(frozen=True)
class Piece:
    """A part of a portable pattern, its number of states, and its anchors."""

    text: str
    states: int
    starts: bool = False
    ends: bool = False


@dataclass(frozen=True)
class ClassCharacter:
    """One character inside of []; text there is a whole class such as `0-9`."""

    character: str


class CompiledPattern(Protocol):
    def fullmatch(self, text: str) -> object | None: ...


def portable(pattern: str) -> str:
    """Rewrite a pattern in the portable form. Raises PatternError."""
    if len(pattern) > MAX_PATTERN_LENGTH:
        raise PatternError(f"pattern is longer than {MAX_PATTERN_LENGTH} characters", 0)
    text = PatternReader(pattern).pattern()
    try:
        compiled(text)
    except re2.error as refusal:
        raise PatternError("pattern is too large; use smaller counts", 0) from refusal
    return text


def matches(text: str, pattern: str) -> bool:
    """Return whether a portable pattern matches the whole of `text`."""
    if len(text) > MAX_INPUT_LENGTH:
        return False
    try:
        return compiled(pattern).fullmatch(text) is not None
    except UnicodeEncodeError:
        joined = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return compiled(pattern).fullmatch(joined) is not None


def count_states(pattern: str) -> int:
    """Return the states that matching a portable pattern may need at most."""
    try:
        return PatternReader(pattern).alternatives().states
    except PatternError:
        # The portable form cannot always be read again.
        return MAX_STATES


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> CompiledPattern:
    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options)


def _literal(character: str) -> str:
    if character < " " or character == "\x7f":
        return f"\\x{ord(character):02X}"
    return f"\\{character}" if character in r"\^$.*+?()[]{}|" else character


def _member(character: str) -> str:
    return r"\-" if character == "-" else _literal(character)


class PatternReader:
    """Recursive descent parser that writes the portable form."""

    def __init__(self, pattern: str) -> None:
        self.source = pattern
        self.at = 0
        self.depth = 0

    def refuse(self, message: str, at: int | None = None) -> PatternError:
        return PatternError(message, self.at if at is None else at)

    def peek(self) -> str:
        return self.source[self.at : self.at + 1]

    def take(self) -> str:
        character = self.peek()
        if not character:
            raise self.refuse("pattern ends too early")
        self.at += 1
        return character

    def pattern(self) -> str:
        piece = self.alternatives()
        if self.peek():
            raise self.refuse("unmatched )")
        return piece.text

    def alternatives(self) -> Piece:
        branches = [self.branch()]
        while self.peek() == "|":
            self.at += 1
            branches.append(self.branch())
        return self.bounded(
            Piece(
                "|".join(branch.text for branch in branches),
                sum(branch.states for branch in branches),
                any(branch.starts for branch in branches),
                any(branch.ends for branch in branches),
            )
        )

    def branch(self) -> Piece:
        pieces: list[Piece] = []
        while self.peek() not in {"", "|", ")"}:
            at = self.at
            piece = self.repeated()
            if (pieces and piece.starts) or any(before.ends for before in pieces):
                raise self.refuse("^ and $ can only stand at the two ends", at)
            pieces.append(piece)
        return Piece(
            "".join(piece.text for piece in pieces),
            max(1, sum(piece.states for piece in pieces)),
            any(piece.starts for piece in pieces),
            any(piece.ends for piece in pieces),
        )

    def bounded(self, piece: Piece) -> Piece:
        if piece.states > MAX_STATES:
            raise self.refuse("pattern repeats too much; use smaller counts")
        return piece

    def repeated(self) -> Piece:
        at = self.at
        piece = self.atom()
        quantifier = self.quantifier()
        if quantifier is None:
            return piece
        if piece.starts or piece.ends:
            raise self.refuse("^ and $ cannot be repeated", at)
        text, times = quantifier
        return self.bounded(Piece(piece.text + text, piece.states * times))

    def quantifier(self) -> tuple[str, int] | None:
        character = self.peek()
        if character and character in "*+?":
            self.at += 1
            repetition = character, 1
        elif character == "{":
            repetition = self.counts()
        else:
            return None
        self.laziness()
        return repetition

    def counts(self) -> tuple[str, int]:
        match = REPEAT.match(self.source, self.at)
        if match is None:
            raise self.refuse("{ starts a count such as {2,5}; a brace itself is \\{")
        low, high = int(match[1]), int(match[3] or match[1])
        if high < low:
            raise self.refuse("the count's second number is smaller than its first")
        self.at = match.end()
        open_end = bool(match[2]) and match[3] is None
        text = f"{{{low},}}" if open_end else f"{{{low},{high}}}"
        return text, max(1, high + open_end)

    def laziness(self) -> None:
        # A lazy quantifier takes the same whole texts, a possessive one not.
        if self.peek() == "?":
            self.at += 1
        elif self.peek() == "+":
            raise self.refuse("possessive quantifiers are not supported")
        if self.peek() and self.peek() in "*+?{":
            raise self.refuse("two quantifiers in a row")

    def atom(self) -> Piece:
        at = self.at
        character = self.take()
        if character == "(":
            return self.group(at)
        if character == "[":
            return Piece(self.character_class(), 1)
        if character == "\\":
            return Piece(self.escape(), 1)
        if character == "^":
            return Piece("", 0, starts=True)
        if character == "$":
            return Piece("", 0, ends=True)
        if character == ".":
            return Piece(f"[^{LINE_ENDS}]", 1)
        if character in "*+?{":
            raise self.refuse(f"nothing before {character} to repeat", at)
        return Piece(_literal(self.plain(character, at)), 1)

    def plain(self, character: str, at: int) -> str:
        if "\ud800" <= character <= "\udfff":
            raise self.refuse("half of a surrogate pair", at)
        return character

    def group(self, at: int) -> Piece:
        opening = GROUP.match(self.source, at)
        if opening is None:
            raise self.refuse(f"{self.group_name(at)} is not supported", at)
        self.depth += 1
        if self.depth > MAX_GROUP_DEPTH:
            raise self.refuse("groups are nested too deeply", at)
        self.at = opening.end()
        body = self.alternatives()
        if self.peek() != ")":
            raise self.refuse("( is never closed", at)
        self.at += 1
        self.depth -= 1
        return Piece(f"(?:{body.text})", body.states, body.starts, body.ends)

    def group_name(self, at: int) -> str:
        for opening, name in REFUSED_GROUPS.items():
            if self.source.startswith(opening, at):
                return name
        return "a group that begins with (?"

    def escape(self) -> str:
        at = self.at - 1
        character = self.peek()
        if character and character in "dwsS":
            self.at += 1
            return f"[{CLASSES[character]}]"
        if character and character in "DW":
            self.at += 1
            return CLASSES[character]
        return self.category() or _literal(self.escaped_character(at))

    def category(self) -> str | None:
        match = CATEGORY.match(self.source, self.at)
        if match is None:
            return None
        name = match[2] or match[3]
        if name not in CATEGORIES:
            raise self.refuse(f"character category {name} is not supported")
        self.at = match.end()
        return f"\\{match[1]}{{{name}}}"

    def escaped_character(self, at: int) -> str:
        code = CODE.match(self.source, self.at)
        if code is not None:
            self.at = code.end()
            return self.code_point(int(code[1] or code[2] or code[3], 16), at)
        character = self.take()
        if character in REFUSED_ESCAPES:
            raise self.refuse(f"{REFUSED_ESCAPES[character]} is not supported", at)
        if character in CONTROLS:
            return CONTROLS[character]
        if character in string.ascii_letters + string.digits:
            raise self.refuse(f"\\{character} is not supported", at)
        return self.plain(character, at)

    def code_point(self, code: int, at: int) -> str:
        if code > 0x10FFFF:
            raise self.refuse("no such character", at)
        return self.plain(chr(code), at)

    def character_class(self) -> str:
        at = self.at - 1
        negated = "^" if self.peek() == "^" else ""
        self.at += len(negated)
        members = []
        while self.peek() != "]":
            if not self.peek():
                raise self.refuse("[ is never closed", at)
            members.append(self.member_or_range())
        if not members:
            raise self.refuse("[] is empty; a bracket itself is \\[", at)
        self.at += 1
        return f"[{negated}{''.join(members)}]"

    def member_or_range(self) -> str:
        at = self.at
        low = self.member()
        rest = self.source[self.at : self.at + 2]
        if not rest.startswith("-") or rest in {"-", "-]"}:
            return low if isinstance(low, str) else _member(low.character)
        self.at += 1
        high = self.member()
        if isinstance(low, str) or isinstance(high, str):
            # As in JavaScript and Java: the hyphen of [\w-.] is a character.
            return "".join(
                side if isinstance(side, str) else _member(side.character)
                for side in (low, ClassCharacter("-"), high)
            )
        if high.character < low.character:
            raise self.refuse("the range runs backwards", at)
        return f"{_member(low.character)}-{_member(high.character)}"

    def member(self) -> str | ClassCharacter:
        at = self.at
        character = self.take()
        if character == "[" or self.source.startswith("&&", at):
            raise self.refuse(f"inside [] write \\{character}", at)
        if character != "\\":
            return ClassCharacter(self.plain(character, at))
        if self.peek() and self.peek() in CLASSES:
            return CLASSES[self.take()]
        return self.category() or ClassCharacter(self.escaped_character(at))
