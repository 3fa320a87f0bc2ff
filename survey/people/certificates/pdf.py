"""Draw a certificate as a PDF, with the signed JSON as an attachment."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.utils import formats, timezone
from django.utils.functional import Promise
from django.utils.translation import get_language, ngettext
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from survey.fieldwork.login_cards.drawing import LINE_HEIGHT, Drawing
from survey.people.erasing.words import TABLES

# In millimetres, of letter paper.
LEFT, TOP, WIDTH, BOTTOM = 20.0, 20.0, 176.0, 260.0
LABEL = 44.0
GAP = 2.0
TEXT, SMALL = 9.5, 7.0
MUTED = 80

KINDS: Mapping[str, str | Promise] = {
    "people": lazy("All that was stored of people, in every survey round"),
    "identities": lazy("Names and contact data of survey rounds; the answers stay"),
    "answers": lazy("Answers of survey rounds"),
}
SYSTEMS: Mapping[str, str | Promise] = {
    "database": lazy("Database, primary server"),
    "replica": lazy("Database, replica"),
    "files": lazy("File storage"),
    "object storage": lazy("Object storage"),
    "Redis": lazy("Redis (sessions)"),
    "Memcached": lazy("Memcached"),
    "message queue": lazy("Message queue of jobs (RabbitMQ)"),
    "messages Redis": lazy("Redis of message platforms"),
    "mail queue": lazy("Mail queue"),
}
EFFECTS: Mapping[str, str | Promise] = {
    "deleted": lazy("deleted"),
    "follows": lazy("follows the primary server within seconds"),
    "sessions end": lazy(
        "sessions have a number and no name or answer, and end within four hours"
    ),
    "holds nobody": lazy("stores nothing about people"),
    "empties": lazy("e-mails wait until they are sent or given up, a day at most"),
}
REMAINS: Mapping[str, str | Promise] = {
    "numbers": lazy(
        "A number for each person and round, with the school and the times of starting"
        " and finishing, so that figures of groups stay as they are"
    ),
    "numbers and groups": lazy(
        "A number for each person, with school, grade, groups and the times of starting"
        " and finishing, so that figures of groups stay as they are"
    ),
    "names": lazy("Names and IDs, until they are destroyed as well"),
    "digests of IDs": lazy(
        "Keyed digests of IDs, so that no roster brings anybody back"
    ),
    "answers": lazy("Answers, without names, until they are destroyed as well"),
    "log": lazy("The audit log, which has no names of respondents"),
}


def draw_certificate(content: Mapping[str, Any], document: bytes) -> bytes:
    """Return the PDF of a certificate's content, in the active language."""
    page = _Page(_("Certificate of destruction"))
    page.facts(_facts(content))
    page.heading(_("What was destroyed"))
    for table in content["tables"]:
        words = TABLES.get(table["table"], "")
        page.fact(str(words) or table["table"], _rows(table["rows"]))
        page.digest(f"{table['table']}  {table['digest']}")
    page.fact(_("Files"), formats.number_format(content["files"]))
    page.heading(_("Where"))
    for row in content["systems"]:
        page.fact(str(SYSTEMS[row["system"]]), str(EFFECTS[row["effect"]]))
    page.fact(_("Backups"), backups_sentence(content["backups"]))
    page.heading(_("What remains"))
    for code in content["remains"]:
        page.fact("", str(REMAINS[code]))
    page.heading(_("How to check it"))
    page.fact(
        _("Signature"),
        _(
            "This file is signed. `manage.py verify_certificate` says whether it was"
            " changed; the attached JSON file has the same content and a signature of"
            " its own (Ed25519)."
        ),
    )
    page.fact(_("Key"), content["key"]["id"])
    page.digest(content["key"]["fingerprint"])
    page.fact(
        _("Digests"),
        _(
            "SHA-256 with a random key that ends with the last backup. Until then the"
            " operator can compare them with a backup; they tell nothing about the"
            " content, and do not prove by themselves that it is gone."
        ),
    )
    name = f"certificate-{content['number']}.json"
    page.pdf.embed_file(
        bytes=document,
        basename=name,
        desc="Signed JSON",
        mime_type="application/json",
    )
    return bytes(page.pdf.output())


def backups_sentence(backups: Mapping[str, Any]) -> str:
    """Say when the last backup with these data ends, or that nobody knows it."""
    if backups["ends"] is None:
        return _(
            "It is not known when the last backup ends that has these data: no backup"
            " of this installation says how long it is kept. Ask the operator."
        )
    return _(
        "Backups may have these data until %(date)s at the latest: they are kept for"
        " %(days)s days after the next full backup, which is made each week."
    ) % {"date": _date(backups["ends"]), "days": backups["retention_days"]}


def _facts(content: Mapping[str, Any]) -> dict[str, str]:
    rounds = [f"{each['title']} ({each['number']})" for each in content["rounds"]]
    return {
        _("Number"): content["number"],
        _("Installation"): f"{content['installation']}, {content['software']}",
        _("Destroyed"): str(KINDS[content["kind"]]),
        _("District"): content["district"] or _("Several districts"),
        _("Survey rounds"): "; ".join(rounds),
        _("Destroyed at"): _moment(content["destroyed_at"]),
        _("Ordered by"): content["ordered_by"],
        _("Reason"): content["reason"],
        _("Issued at"): _moment(content["issued_at"]),
    }


def _rows(count: int) -> str:
    number = formats.number_format(count, force_grouping=True)
    return ngettext("%(number)s row", "%(number)s rows", count) % {"number": number}


def _moment(text: str) -> str:
    time = timezone.localtime(datetime.fromisoformat(text))
    return formats.date_format(time, "DATETIME_FORMAT")


def _date(text: str) -> str:
    time = timezone.localtime(datetime.fromisoformat(text))
    return formats.date_format(time, "DATE_FORMAT")


class _Page(Drawing):
    """Headings and facts below one another, on as many pages as they need."""

    def __init__(self, title: str) -> None:
        super().__init__(paper="letter", title=title, language=get_language() or "en")
        self.pdf.add_page()
        self.y = TOP
        self.text(LEFT, self.y, WIDTH, title, size=18, style="B")
        self.y += 12

    def facts(self, facts: Mapping[str, str]) -> None:
        for label, text in facts.items():
            self.fact(label, text)

    def heading(self, text: str) -> None:
        self._make_room(18)
        self.y += 3
        self.text(LEFT, self.y, WIDTH, text, size=12, style="B")
        self.y += 7

    def fact(self, label: str, text: str) -> None:
        self._make_room(14)
        left, width, bottom = LEFT, WIDTH, self.y
        if label:
            left, width = LEFT + LABEL, WIDTH - LABEL
            bottom = self.paragraph(
                LEFT, self.y, LABEL - 2, label, size=TEXT, most_lines=2, grey=MUTED
            )
        self.y = self.paragraph(left, self.y, width, text, size=TEXT, most_lines=12)
        self.y = max(self.y, bottom) + GAP

    def digest(self, text: str) -> None:
        self.y -= GAP / 2
        self.text(LEFT + LABEL, self.y, WIDTH - LABEL, text, size=SMALL, grey=MUTED)
        self.y += SMALL * LINE_HEIGHT + GAP

    def _make_room(self, height: float) -> None:
        if self.y + height > BOTTOM:
            self.pdf.add_page()
            self.y = TOP
