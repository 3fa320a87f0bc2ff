"""Rewrite what expressions call fields to the names of items.

XPath has more ways to say what is read than `${name}`: paths (`../x`, `/data/g/x`),
metadata, and names that several groups have. They are rewritten before an
expression is compiled, so that the engines in Python and in the browser know
`${name}` alone.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field

from django.utils.translation import gettext as _

from survey.instrument.xlsform.columns import SurveyRow
from survey.instrument.xlsform.names import quoted_names
from survey.instrument.xlsform.problems import Findings
from survey.instrument.xlsform.rules import straight_quotes, yes_or_no
from survey.instrument.xlsform.types import parse_type

NAME = r"[^\W\d][\w.-]*"
PART = re.compile(
    rf"""'[^']*'|"[^"]*"
    |\$\{{\s*(?P<reference>[^{{}}]*?)\s*\}}
    |(?<![^\s(,=<>+*-])(?P<path>
        (?P<current>current\(\)/)?(?P<up>(?:\.\./)+){NAME}(?:/{NAME})*
        |/{NAME}(?:/{NAME})+)
    |(?P<word>{NAME})(?P<call>\s*\()?(?P<empty>\s*\))?""",
    re.VERBOSE,
)
# pyxform's name of the root, which all paths begin with.
ROOT = "data"
# Functions of other programs that tell something of the device.
DEVICE = re.compile(
    r"(once\()?(device-info|duration|username|version|phone-call-duration)\(\)\)?"
)


@dataclass
class Fields:
    """`names` are items' names by path; `metadata` are types by name."""

    names: dict[tuple[str, ...], str] = field(default_factory=dict)
    metadata: dict[str, str] = field(default_factory=dict)
    ambiguous: dict[str, str] = field(default_factory=dict)
    roots: set[str] = field(default_factory=lambda: {ROOT})

    def read(self, rows: list[SurveyRow], form: Collection[str]) -> None:
        """Place every row in its groups, and qualify names that are used twice."""
        groups: list[str] = []
        items: dict[str, list[SurveyRow]] = defaultdict(list)
        for row in rows:
            type_ = parse_type(row.get("type"))
            name = row.get("name")
            if yes_or_no(row.get("disabled")) or not row.get("type"):
                continue
            if type_.kind == "end":
                row.path = tuple(groups)
                del groups[-1:]
                continue
            row.path, row.fields = (*groups, name), self
            if type_.kind == "begin":
                groups.append(name)
            elif type_.kind == "metadata":
                self.metadata[name] = type_.canonical
            elif name:
                items[name].append(row)
        for name, rows_of_name in items.items():
            if len({row.path for row in rows_of_name}) > 1:
                self.ambiguous[name] = "/".join(("", ROOT, *rows_of_name[0].path))
        for name, rows_of_name in items.items():
            for row in rows_of_name:
                if name in self.ambiguous and len(row.path) > 1:
                    row.values["name"] = self.qualified(row.path, items.keys())
                self.names.setdefault(row.path, row.get("name"))
        tops = {path[0] for path in self.names if len(path) > 1}
        self.roots |= {root for root in form if root not in tops}

    def qualified(self, path: tuple[str, ...], taken: Collection[str]) -> str:
        """Return `group_name`, with as many groups as make it unique."""
        if path in self.names:
            return self.names[path]
        used = {*taken, *self.names.values()}
        for start in range(len(path) - 2, -1, -1):
            name = "_".join(path[start:])
            if name not in used:
                return name
        return path[-1]

    def rewritten(
        self, row: SurveyRow, key: str, findings: Findings, columns: Collection[str]
    ) -> str | None:
        """Return the expression in a column; None if it was refused."""
        refused: list[str] = []

        def replace(match: re.Match[str]) -> str:
            if match["path"]:
                name = self.name_at(row, match, is_filter=bool(columns))
                if not name:
                    reason = _("there is no question at the path %(path)s")
                    refused.append(reason % {"path": match["path"]})
                return self.reference(row, key, name or "", match[0], findings)
            # Also in quotes: the second argument of jr:choice-name().
            for name in self.ambiguous.keys() & quoted_names(match[0]):
                refused.append(self.why_ambiguous(name))
            if match["reference"] is not None:
                name = match["reference"]
                return self.reference(row, key, name, match[0], findings)
            return read_word(row, key, match, findings, columns)

        text = PART.sub(replace, straight_quotes(row.get(key)))
        for reason in refused:
            row.refuse(findings, key, reason)
        return None if refused else text.strip()

    def name_at(
        self, row: SurveyRow, match: re.Match[str], *, is_filter: bool
    ) -> str | None:
        parts = [part for part in match["path"].split("/") if part]
        if not match["up"]:
            path = tuple(parts[1:]) if parts[0] in self.roots else ()
        # In a choice filter a bare `..` is the list of options.
        elif is_filter and not match["current"]:
            path = ()
        else:
            steps = parts.count("..")
            below = tuple(parts[parts.index("..") + steps :])
            path = (*row.path[:-steps], *below) if steps <= len(row.path) else ()
        if path and path[-1] in self.metadata and path not in self.names:
            return path[-1]
        return self.names.get(path)

    def reference(
        self, row: SurveyRow, key: str, name: str, text: str, findings: Findings
    ) -> str:
        """Write `${name}`, or for metadata what is known of it."""
        kind = self.metadata.get(name)
        # A duration until now would be zero.
        reads_now = re.search(r"\b(now|today)\s*\(", row.get(key))
        words = (kind or "end").split()
        if {"end", "audit"} & set(words) or ("start" in words and reads_now):
            return f"${{{name}}}" if name else text
        function = "today()" if "today" in words else "now()" * ("start" in words)
        if function:
            reason = _("read as %(function)s: the time when the rule is applied")
        else:
            reason = _("read as blank: %(kind)s is not collected")
        values = {"function": function, "kind": kind}
        row.warn(findings, key, reason % values, text)
        return function or "''"

    def why_ambiguous(self, name: str) -> str:
        return _(
            "${%(name)s} is in several groups: write its path, such as %(path)s"
        ) % {"name": name, "path": self.ambiguous[name]}


def read_word(
    row: SurveyRow,
    key: str,
    match: re.Match[str],
    findings: Findings,
    columns: Collection[str],
) -> str:
    """Read TRUE and TRUE(), as spreadsheet programs write true(), and null."""
    word = match["word"]
    if word is None or word in columns:
        return match[0]
    if word.lower() == "null" and not match["call"]:
        row.warn(findings, key, _("read as blank: an answer that is not given"), word)
        return "''" + (match["empty"] or "")
    if word.lower() not in ("true", "false"):
        return match[0]
    is_call = bool(match["call"] and match["empty"])
    if match["call"] and not is_call:
        return match[0]
    written = f"{word.lower()}()"
    if not is_call or word != word.lower():
        reason = _("read as %(written)s") % {"written": written}
        row.warn(findings, key, reason, word)
    return written + ("" if is_call else match["empty"] or "")
