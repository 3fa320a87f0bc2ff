"""Check the names of items and groups, and find names quoted in texts."""

from __future__ import annotations

import re

from django.utils.translation import gettext as _
from pyxform.parsing.expression import is_xml_tag

from survey.instrument.definitions.expressions.parser import ITEM_NAME

# Attributes of every JavaScript object: `answers["constructor"]` is a function
# there, whatever the survey says.
RESERVED = frozenset(
    [
        "__proto__",
        "__defineGetter__",
        "__defineSetter__",
        "__lookupGetter__",
        "__lookupSetter__",
        "constructor",
        "hasOwnProperty",
        "isPrototypeOf",
        "propertyIsEnumerable",
        "prototype",
        "toLocaleString",
        "toString",
        "valueOf",
    ]
)
# Names made of it (`<name>_other`) must fit in the table's 255 as well.
LONGEST_NAME = 200
# SPSS and Stata cut or refuse longer ones; exports must then shorten them.
LONGEST_EXPORTED = 64

# The blanks inside are stripped in code: a pattern that allows for them takes
# cubic time on a text of 30,000 blanks.
REFERENCE = re.compile(r"\$\{([^{}]*)\}")


def why_not_a_name(name: str) -> str:
    """Explain why this cannot be an item's name; empty if it can."""
    if not name:
        return _("has no name")
    if not is_xml_tag(name) or not ITEM_NAME.fullmatch(name):
        return _(
            "a name begins with a letter or underscore, followed by"
            " letters, digits, hyphens, underscores and periods"
        )
    if name in RESERVED or name == "meta":
        return _("this name is reserved")
    if len(name) > LONGEST_NAME:
        return _("a name is at most %(longest_name)s characters long") % {
            "longest_name": LONGEST_NAME
        }
    return ""


def quoted_names(text: str) -> list[str]:
    return [name.strip() for name in REFERENCE.findall(text)]


def has_open_reference(text: str) -> bool:
    return "${" in REFERENCE.sub("", text)


def normalised(text: str) -> str:
    """Write every `${ name }` as `${name}`."""
    if "${" not in text:
        return text
    return REFERENCE.sub(lambda match: f"${{{match[1].strip()}}}", text)
