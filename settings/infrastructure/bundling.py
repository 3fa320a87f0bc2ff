"""Joining the browser's modules into one file per page.

The modules stay plain: in development the browser loads each of them. For
production compressor concatenates them in the order of their script tags, so
that every name is already in scope and the imports can go. That needs a few
habits, held by `survey/tests/javascript/test_modules.py`: named imports on one line,
`export` before a declaration, and no name twice.
"""

from __future__ import annotations

import re

from compressor.filters import FilterBase

IMPORT = re.compile(r'^import \{[^}]*\} from "\./[\w-]+\.js";\n', re.MULTILINE)
EXPORT = re.compile(
    r"^export (?=(?:async function|function|class|const|let)\b)", re.MULTILINE
)


class JoinedModule(FilterBase):
    """One module without its imports and exports."""

    def input(self, **kwargs: object) -> str:
        return EXPORT.sub("", IMPORT.sub("", self.content))
