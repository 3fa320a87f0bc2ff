"""What the audit log says about exports and response rates."""

from __future__ import annotations

from accounts.console.audit_sentences import add_sentences


def register() -> None:
    add_sentences(
        {
            "download response rates": "{who} downloaded response rates",
            "ask for export": "{who} asked for an export: {subject}",
            "ask for export with names": "{who} asked for names in {subject}",
            "make export": "The export that {who} asked for was made: {subject}",
            "download export": "{who} downloaded an export: {subject}",
            "delete export": "{who} deleted an export: {subject}",
        }
    )
