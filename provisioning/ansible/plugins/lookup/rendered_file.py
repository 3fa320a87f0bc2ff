"""`lookup('rendered_file', path)`: render one template; `template_vars` are further
variables.
"""

from __future__ import annotations

from typing import Any

from ansible.plugins.loader import lookup_loader
from ansible.plugins.lookup import LookupBase


class Variables(dict[str, Any]):
    """Variables that Ansible's lookup copies, to add some to the copy.

    It would copy all that they hold, for each file: a third of the playbook's time.
    """

    def __deepcopy__(self, memo: object) -> dict[str, Any]:
        return dict(self)


class LookupModule(LookupBase):
    def run(
        self,
        terms: list[str],
        variables: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        template = lookup_loader.get(
            "ansible.builtin.template", loader=self._loader, templar=self._templar
        )
        return template.run(terms, Variables(variables or {}), **kwargs)
