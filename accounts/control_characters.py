"""Find characters that have no place in a text that people type or upload.

One rule for all: forms apply it to each of their text fields (`accounts.forms`), and
readers of files to each cell. A control character is invisible, and something else
for each program that meets it: it ends a line, a cell or a header, or separates what
was joined.

Refused are, besides control characters (C0, DEL and C1):

- the line and paragraph separators U+2028 and U+2029, which end a line for JavaScript,
  Python and e-mail programs. Texts of several lines may have them, as line breaks.
- the overrides U+202D and U+202E. No language needs them: they spell a name backwards,
  so that it looks like another one. The other signs for the direction of text come
  with what people copy from Arabic or from a phone's contacts, and are allowed.
- surrogates and noncharacters, which neither PostgreSQL nor an .xlsx file can store.
"""

from __future__ import annotations

import re

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

_OTHERS = "\\u202d\\u202e\\ud800-\\udfff\\ufdd0-\\ufdef\\ufffe\\uffff"
IN_A_LINE = re.compile(f"[\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029{_OTHERS}]")
# Tabs and line breaks have their place in these.
IN_A_TEXT = re.compile(f"[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f{_OTHERS}]")


def has_control_character(text: str) -> bool:
    """Return whether a cell of a file, or another text of one line, has one."""
    return not text.isprintable() and bool(IN_A_LINE.search(text))


def refuse_control_characters(text: str, *, lines: bool = False) -> None:
    """Raise ValidationError if a text has one. `lines`: it may have line breaks."""
    if match := (IN_A_TEXT if lines else IN_A_LINE).search(text):
        if match[0] in "\r\n":
            raise ValidationError(_("Write this in one line."), code="several_lines")
        raise ValidationError(
            _(
                "Character %(place)s is invisible (%(code)s) and not allowed here."
                " Delete it, or type the text again."
            ),
            code="control_character",
            params={"place": match.start() + 1, "code": f"U+{ord(match[0]):04X}"},
        )
