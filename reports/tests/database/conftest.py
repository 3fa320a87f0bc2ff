"""Import fixtures of other apps that these tests need."""

from __future__ import annotations

from survey.tests.conftest import (  # noqa: F401
    administration,
    empty_caches,
    lincoln,
    maya,
    publish,
)
from survey.tests.database.test_partitions import granted  # noqa: F401
from survey.tests.database_flush import quick_flush  # noqa: F401
