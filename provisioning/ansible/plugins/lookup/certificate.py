"""`lookup('certificate', folder, host)`: a host's certificate and its key.

Returns both texts by file name, with `to` before it, for `write_files`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.plugins.lookup import LookupBase


class LookupModule(LookupBase):
    def run(
        self,
        terms: list[str],
        variables: dict[str, Any] | None = None,
        to: str = "",
        **kwargs: Any,
    ) -> list[dict[str, str]]:
        folder, host = terms
        return [
            {
                f"{to}certificate.{kind}": Path(folder, f"{host}.{kind}").read_text()
                for kind in ("pem", "key")
            }
        ]
