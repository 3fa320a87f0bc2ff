"""`lookup('certificate', folder)`: this host's certificate and its key.

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
        host = (variables or {})["ansible_host"]
        files = {"certificate.pem": f"{host}.pem", "certificate.key": f"{host}.key"}
        return [
            {
                f"{to}{name}": Path(terms[0], file).read_text()
                for name, file in files.items()
            }
        ]
