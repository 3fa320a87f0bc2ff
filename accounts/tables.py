"""The base of all models, which declares what other places have to know of a table.

`survey.database.distribution`, `survey.people.merging.references`, what is reported and
erased of a person (`survey.people.erasing.stored`) and the grants of database roles are
derived from it. A test fails for a model without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import ClassVar

from django.apps import apps
from django.db.models import Model


class Reference(Enum):
    """How a merge treats a foreign key to the duplicate."""

    # It points to the other place from then on.
    MOVED = auto()
    # The same, after rows that would break a constraint were adapted.
    ADAPTED = auto()
    # By `survey.people.merging.people`, in batches.
    PEOPLE = auto()
    # By `survey.people.merging.places`: the schools of a merged district.
    SCHOOLS = auto()
    # Deleted with the duplicate: figures that are counted anew, directory entries.
    DELETED = auto()
    # The duplicate of a person stays, withdrawn, with all that refers to it.
    STAYS = auto()


class Erasing(Enum):
    """Say what happens to a table's rows about a person who is erased."""

    DELETED = auto()
    # The reference is set to null: nothing else in the row is about the person.
    RELEASED = auto()
    # The row keeps numbers for figures, and loses all that describes the person.
    EMPTIED = auto()
    # Deleted with the files in which the person may be: `survey.people.erasing.files`.
    WITH_FILES = auto()
    # It leads to nobody once the other rows are gone.
    STAYS = auto()


@dataclass(frozen=True, slots=True)
class Declaration:
    # Why the table lies where it does on a cluster.
    reason: str
    # The distribution key of a table in shards: one with many rows for each person,
    # or with a row that page saves, logins and finishing read.
    key: str
    # Joined with such tables in statements of one person, and seldom written: a write
    # waits for all nodes. Other tables lie on the coordinator, also those with a row
    # for each person where a unique key or a trigger crosses the distribution key.
    on_every_node: bool
    # What two database roles may do with it and with its many-to-many tables: that of
    # the pool that faces the crowd, which deletes nothing and reads no identity, and
    # that of roll-ups and exports, which reads answers but no names.
    grants: Mapping[str, str]
    # By fields that refer to a district, school or respondent.
    references: Mapping[str, Reference]
    # None where nothing in the table is about a single respondent.
    erasing: Erasing | None


class Table(Model):
    """A table; without arguments, one of staff's, on the coordinator."""

    declaration: ClassVar[Declaration]

    class Meta:
        abstract = True

    def __init_subclass__(
        cls,
        *,
        reason: str = "staff's work, some rows for each place",
        key: str = "",
        on_every_node: bool = False,
        taking: str = "",
        reports: str = "",
        erasing: Erasing | None = None,
        **references: Reference,
    ) -> None:
        super().__init_subclass__()
        grants = {"taking": taking, "reports": reports}
        cls.declaration = Declaration(
            reason, key, on_every_node, grants, references, erasing
        )


def tables() -> list[type[Table]]:
    return [model for model in apps.get_models() if issubclass(model, Table)]


def grants_for(role: str) -> list[str]:
    """Return what a database role may do: "SELECT (id, name) ON accounts_district"."""
    grants = []
    for model in tables():
        if granted := model.declaration.grants[role]:
            many = [field.m2m_db_table() for field in model._meta.many_to_many]
            names = ", ".join([model._meta.db_table, *many])
            grants.append(f"{granted} ON {names}")
    return grants
