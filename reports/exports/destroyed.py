"""Say which rounds of an export have no answers or names any more."""

from __future__ import annotations

from collections.abc import Iterable

from django.utils.translation import gettext as _

from survey.models import Administration


def destroyed_message(
    administrations: Iterable[Administration], with_names: bool
) -> str:
    """Return why there can be no such file of these rounds, or ""."""
    for administration in administrations:
        if administration.answers_destroyed_at is not None:
            words = _(
                "The answers of %(title)s were destroyed at the end of their retention"
                " period. Its results stay."
            )
            return words % {"title": administration.title}
        if with_names and administration.identities_destroyed_at is not None:
            words = _(
                "The names of %(title)s were destroyed at the end of their retention"
                " period. Leave names out."
            )
            return words % {"title": administration.title}
    return ""
