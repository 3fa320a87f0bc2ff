"""Why a roster file as a whole is refused."""

from __future__ import annotations


class RosterUnreadable(ValueError):
    """Tell a person why the file as a whole cannot be read."""


class TooLarge(RosterUnreadable):
    pass
