"""Controls that several forms of the console use."""

from __future__ import annotations

from typing import Any

from django import forms


class LanguageSelect(forms.Select):
    """A menu of languages, whose names a screen reader speaks in each language.

    The values are language codes; the empty one has a text for the reader.
    """

    def create_option(
        self, name: str, value: Any, *args: Any, **options: Any
    ) -> dict[str, Any]:
        option = super().create_option(name, value, *args, **options)
        if value:
            option["attrs"]["lang"] = str(value)
        return option
