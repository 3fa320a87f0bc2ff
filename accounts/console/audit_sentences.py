"""Say in sentences what the entries of the audit log record.

Stored actions and rows never change; this is how the page shows them. Each app adds
the sentences of its actions, and what its objects are called, in `AppConfig.ready`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property
from string import Formatter
from typing import TYPE_CHECKING, NamedTuple

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.translation import gettext, gettext_lazy, gettext_noop

from accounts.models import AuditEntry, User
from accounts.permissions import Permissions

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


class Label(NamedTuple):
    """What an object is called on the page, for one user."""

    text: str
    url: str = ""
    # Such as the survey that a person is invited to.
    context: str = ""
    # Whether the user is shown a name that has to be logged.
    is_name: bool = False


class Subjects(NamedTuple):
    """The names of a kind of objects, and the words for one without a name."""

    labels: Callable[[Permissions, Collection[int]], dict[int, Label]]
    unknown: str


@dataclass(frozen=True, slots=True)
class Sentence:
    """`text` has {who}, and may have {subject}."""

    text: str
    # Nothing was changed: repeated looks are one line, whatever they found.
    is_view: bool = False


_ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
# In an entry of any action, for machines or said by the sentence.
_HIDDEN_DETAILS = frozenset({"page", "searched"})
_FALLBACK = Sentence("{who}: {action} {subject}")
_SENTENCES: dict[str, Sentence] = {}
_SUBJECTS: dict[str, Subjects] = {}
_WORDS: dict[str, StrOrPromise] = {}


def add_sentences(sentences: Mapping[str, str], *, are_views: bool = False) -> None:
    """Register sentences for actions, such as "{who} renamed {subject}".

    They are marked with `gettext_noop`, and translated when the page shows them.
    """
    for action, text in sentences.items():
        _SENTENCES[action] = Sentence(text, are_views)


def add_subjects(kind: str, subjects: Subjects) -> None:
    """Say what objects of a model, such as "survey.respondent", are called."""
    _SUBJECTS[kind] = subjects


def add_words(words: Mapping[str, StrOrPromise]) -> None:
    """Say what stored names of properties, and values such as "none", are called."""
    _WORDS.update(words)


def action_label(action: str) -> str:
    """Return "Renamed the school …", or an action without a sentence as it is."""
    if action not in _SENTENCES:
        return capfirst(action)
    label = gettext(_SENTENCES[action].text).format(who="…", subject="…")
    return capfirst(label.removeprefix("… ").removesuffix(": …"))


def sentence_of(action: str) -> Sentence:
    return _SENTENCES.get(action, _FALLBACK)


def fields_of(action: str) -> set[str]:
    return {
        name for _, name, _, _ in Formatter().parse(sentence_of(action).text) if name
    }


@dataclass
class Line:
    """Entries that follow each other and say the same, the newest first."""

    entries: list[AuditEntry]
    actor: str
    subject: Label
    place: str

    @property
    def entry(self) -> AuditEntry:
        return self.entries[0]

    @property
    def account(self) -> str:
        """Return the e-mail address of a user who is shown by name."""
        is_named = self.entry.user_id is not None and self.actor != self.entry.by
        return self.entry.by if is_named else ""

    @property
    def count(self) -> int:
        return len(self.entries)

    @property
    def first_at(self) -> datetime:
        return self.entries[-1].at

    @cached_property
    def sentence(self) -> SafeString:
        subject: str = format_html("<bdi>{}</bdi>", self.subject.text)
        if self.subject.url:
            subject = format_html(
                '<a href="{}">{}</a>', self.subject.url, self.subject.text
            )
        return format_html(
            gettext(sentence_of(self.entry.action).text),
            who=format_html("<bdi>{}</bdi>", self.actor),
            subject=subject,
            action=self.entry.action,
        )

    @cached_property
    def details(self) -> list[tuple[str, object, object]]:
        """Return (name, before, after) of what the sentence does not say."""
        # Where people are named, so is the survey that they are invited to.
        hidden = {*_HIDDEN_DETAILS, *(["administration"] * bool(self.subject.context))}
        if self.entry.after.get("name") == self.subject.text and not self.entry.before:
            hidden.add("name")
        return [
            (str(_shown(name)), _shown(before), _shown(after))
            for name, before, after in self.entry.changes
            if name not in hidden
            and (self.entry.before or after not in (None, False, "", [], {}))
        ]

    @cached_property
    def key(self) -> tuple[object, ...]:
        entry = self.entry
        day: date = timezone.localdate(entry.at)
        details = ""
        if not sentence_of(entry.action).is_view:
            details = json.dumps(self.details, sort_keys=True, default=str)
        place = entry.district_id, entry.school_id
        thing = entry.kind, entry.subject_id, entry.subject
        return entry.by, entry.action, day, *thing, *place, details


def _shown(value: object) -> object:
    """Spell lists and objects without the brackets and quotes of Python.

    Words that the apps have added are translated; others stay as they are stored.
    """
    if isinstance(value, bool):
        return gettext("yes") if value else gettext("no")
    if isinstance(value, str):
        # Not an invalid date, which somebody may have searched for.
        with suppress(ValueError):
            if _ISO_DATE.fullmatch(value):
                return date_format(date.fromisoformat(value), "DATE_FORMAT")
        return str(_WORDS.get(value, value))
    if isinstance(value, list):
        return ", ".join(str(_shown(part)) for part in value)
    if isinstance(value, dict):
        return ", ".join(
            f"{_shown(name)}: {_shown(part)}" for name, part in value.items()
        )
    return value


def actor(by: User | str) -> str:
    """Return the address of a user, or the command that ran."""
    name = str(by)
    if name.isidentifier():
        return gettext("System (%(command)s)") % {"command": name}
    return name


def lines_of(
    entries: Iterable[AuditEntry],
    permissions: Permissions,
    place_of: Callable[[AuditEntry], str],
) -> list[Line]:
    """Return the lines of a page. 1 statement for users, and 1 for each kind."""
    entries = list(entries)
    names = {
        user.pk: user.name
        for user in User.objects.filter(
            pk__in=[entry.user_id for entry in entries if entry.user_id is not None]
        )
    }
    labels = _labels_of(entries, permissions)
    lines: list[Line] = []
    for entry in entries:
        line = Line(
            [entry],
            names.get(entry.user_id or 0) or actor(entry.by),
            _label(entry, labels),
            place_of(entry),
        )
        if lines and lines[-1].key == line.key:
            lines[-1].entries.append(entry)
        else:
            lines.append(line)
    return lines


def _labels_of(
    entries: Iterable[AuditEntry], permissions: Permissions
) -> dict[str, dict[int, Label]]:
    ids: dict[str, set[int]] = {}
    for entry in entries:
        if entry.subject_id is not None and entry.kind in _SUBJECTS:
            ids.setdefault(entry.kind, set()).add(entry.subject_id)
    return {
        kind: _SUBJECTS[kind].labels(permissions, some) for kind, some in ids.items()
    }


def _label(entry: AuditEntry, labels: Mapping[str, Mapping[int, Label]]) -> Label:
    label = labels.get(entry.kind, {}).get(entry.subject_id or 0)
    if label is not None:
        return label
    if entry.kind in _SUBJECTS and _SUBJECTS[entry.kind].unknown:
        return Label(gettext(_SUBJECTS[entry.kind].unknown))
    return Label(entry.subject or "–")


add_sentences(
    {
        "log in": gettext_noop("{who} logged in"),
        "accept invitation": gettext_noop("{who} accepted the invitation"),
        "set password": gettext_noop("{who} set a password"),
        "change password": gettext_noop("{who} changed the password"),
        "reset password": gettext_noop("{who} reset the password"),
        "refuse password": gettext_noop("Wrong passwords for {subject} were refused"),
        "set up second factor": gettext_noop("{who} set up the second factor"),
        "replace second factor": gettext_noop("{who} replaced the second factor"),
        "make recovery codes": gettext_noop("{who} made new recovery codes"),
        "reset second factor": gettext_noop(
            "{who} reset the second factor of {subject}"
        ),
        "refuse second factor": gettext_noop(
            "Wrong second-factor codes for {subject} were refused"
        ),
        "end session": gettext_noop("{who} ended a session"),
        "end all sessions": gettext_noop("{who} ended all other sessions"),
        "rename school": gettext_noop("{who} renamed the school {subject}"),
        "rename district": gettext_noop("{who} renamed the district {subject}"),
        "close school": gettext_noop("{who} closed the school {subject}"),
        "close district": gettext_noop("{who} closed the district {subject}"),
        "reopen school": gettext_noop("{who} reopened the school {subject}"),
        "reopen district": gettext_noop("{who} reopened the district {subject}"),
        "download audit": gettext_noop("{who} downloaded the list of activity"),
        "resend invitation": gettext_noop(
            "{who} sent the invitation of {subject} again"
        ),
        "withdraw invitation": gettext_noop(
            "{who} withdrew the invitation of {subject}"
        ),
        "appoint state": gettext_noop("{who} made {subject} a state administrator"),
        "appoint district": gettext_noop(
            "{who} made {subject} a district administrator"
        ),
        "appoint coordinator": gettext_noop(
            "{who} made {subject} a school coordinator"
        ),
        "appoint analyst": gettext_noop("{who} made {subject} an analyst"),
        "dismiss state": gettext_noop(
            "{who} dismissed {subject} as state administrator"
        ),
        "dismiss district": gettext_noop(
            "{who} dismissed {subject} as district administrator"
        ),
        "dismiss coordinator": gettext_noop(
            "{who} dismissed {subject} as school coordinator"
        ),
        "dismiss analyst": gettext_noop("{who} dismissed {subject} as analyst"),
    }
)
SAW_NAMES = "see names in the audit log"
add_sentences(
    {SAW_NAMES: gettext_noop("{who} saw names under “Activity”")}, are_views=True
)
add_words(
    {
        "name": gettext_lazy("name"),
        "code": gettext_lazy("code"),
        "people": gettext_lazy("people"),
        "entries": gettext_lazy("entries"),
        "what": gettext_lazy("searched for"),
        "in a row": gettext_lazy("wrong in a row"),
        "contact_name": gettext_lazy("name of the contact person"),
        "contact_email": gettext_lazy("e-mail address of the contact person"),
        "contact_phone": gettext_lazy("phone number of the contact person"),
        "student_percent": gettext_lazy("threshold for students, in percent"),
        "teacher_percent": gettext_lazy("threshold for teachers, in percent"),
        "parent_percent": gettext_lazy("threshold for parents, in percent"),
        "minimum_group": gettext_lazy("minimum group"),
        "coding_threshold": gettext_lazy("smallest percentage"),
        "public_help": gettext_lazy("help without logging in"),
        "public_questions": gettext_lazy("questions on a public page"),
        "hides_questions": gettext_lazy("questions kept off public pages"),
        "logo": gettext_lazy("logo"),
        "logo_id": gettext_lazy("logo"),
        "accent": gettext_lazy("accent color"),
        "time_zone": gettext_lazy("time zone"),
        "district": gettext_lazy("district"),
        "school": gettext_lazy("school"),
        "role": gettext_lazy("role"),
        "state": gettext_lazy("state"),
        "open": gettext_lazy("open"),
        "closed": gettext_lazy("closed"),
        "none": gettext_lazy("none"),
        "changed": gettext_lazy("changed"),
    }
)
