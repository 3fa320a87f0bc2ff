"""`lookup('rendered', folder)`: render all templates of a folder.

Returns texts by file name, without .j2 and with `to` before it, for
`write_files`; `template_vars` are further variables.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.plugins.loader import lookup_loader
from ansible.plugins.lookup import LookupBase


class LookupModule(LookupBase):
    def run(
        self,
        terms: list[str],
        variables: dict[str, Any] | None = None,
        to: str = "",
        template_vars: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> list[dict[str, str]]:
        template = lookup_loader.get(
            "rendered_file", loader=self._loader, templar=self._templar
        )
        folder = Path(terms[0])
        files = {}
        for path in sorted(folder.rglob("*.j2")):
            name = str(path.relative_to(folder)).removesuffix(".j2")
            files[to + name] = template.run(
                [str(path)], variables, template_vars=template_vars or {}
            )[0]
        return [files]
