"""Compare names without accents, apostrophes, hyphens and case.

`name__folded__startswith="sofia"` finds "Sofía", and "o’connor" finds "O'Connor".
"""

from __future__ import annotations

import unicodedata
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.db.models import CharField, TextField, Transform

# Western and Central European letters, and Vietnamese ones.
_RANGES = ((0x00C0, 0x0180), (0x01A0, 0x01B1), (0x1EA0, 0x1EFA))
_APOSTROPHES = "'\u2018\u2019\u02bb\u02bc`\u00b4"
_HYPHENS = "-\u2010\u2011\u2013"
_NO_DECOMPOSITION = {"Đ": "D", "đ": "D", "Ø": "O", "ø": "O", "Ł": "L", "ł": "L"}


def _letters() -> dict[str, str]:
    letters = dict(_NO_DECOMPOSITION)
    for first, end in _RANGES:
        for letter in map(chr, range(first, end)):
            plain = unicodedata.normalize("NFD", letter)[0]
            if plain != letter and plain.isascii():
                letters[letter] = plain.upper()
    return letters


LETTERS = _letters()
# As in SQL's translate(): characters without a counterpart are removed.
FROM = "".join(LETTERS) + _HYPHENS + _APOSTROPHES
TO = "".join(LETTERS.values()) + " " * len(_HYPHENS)
_TABLE = str.maketrans(FROM[: len(TO)], TO, _APOSTROPHES)


def fold(text: str | None) -> str | None:
    return None if text is None else text.translate(_TABLE).upper()


@CharField.register_lookup
@TextField.register_lookup
class Folded(Transform):
    lookup_name = "folded"
    # What is searched for is folded by the same database.
    bilateral = True
    output_field = TextField()
    function = "groundswell_fold"

    def as_postgresql(
        self, compiler: Any, connection: BaseDatabaseWrapper, **context: Any
    ) -> tuple[str, Any]:
        # As text in the statement: an index needs the same expression.
        return super().as_sql(
            compiler, connection, template=postgresql_fold("%(expressions)s")
        )


def postgresql_fold(expression: str) -> str:
    """Return PostgreSQL's expression, also for indexes."""
    before = FROM.replace("'", "''")
    return f"translate(upper({expression}), '{before}', '{TO}')"


def add_to_sqlite(connection: BaseDatabaseWrapper, **kwargs: Any) -> None:
    """Give a new connection to SQLite the function that it lacks."""
    if connection.vendor == "sqlite":
        connection.connection.create_function(
            Folded.function, 1, fold, deterministic=True
        )


connection_created.connect(add_to_sqlite)
