"""Join JavaScript modules into one file per page.

In development the browser loads each module. For production, compressor
concatenates them in the order of their script tags, so that every name is
already in scope and the imports can be removed. This requires a few
conventions, which `survey/tests/javascript/test_modules.py` checks: named
imports on one line, `export` before a declaration, and no name twice.
"""

from __future__ import annotations

import re

from compressor.filters import FilterBase

IMPORT = re.compile(r'^import \{[^}]*\} from "\./[\w-]+\.js";\n', re.MULTILINE)
EXPORT = re.compile(
    r"^export (?=(?:async function|function|class|const|let)\b)", re.MULTILINE
)


class BundledModule(FilterBase):
    """Remove a module's imports and exports."""

    def input(self, **kwargs: object) -> str:
        return EXPORT.sub("", IMPORT.sub("", self.content))
