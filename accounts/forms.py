"""Django's forms, whose text fields refuse control characters.

Import this instead of `django.forms`, which has fields and widgets but no such rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from django.forms import *  # noqa: F403
from django.forms import (
    BaseForm,
    CharField,
    PasswordInput,
    Textarea,
    ValidationError,
)
from django.forms import ChoiceField as DjangoChoiceField
from django.forms import Form as DjangoForm  # noqa: TID251
from django.forms import Select as DjangoSelect
from django.forms.renderers import BaseRenderer
from django.forms.utils import flatatt
from django.utils.html import escape
from django.utils.safestring import SafeString

from accounts.control_characters import refuse_control_characters


class RefusesControlCharacters(BaseForm):
    """Of a form: refuse control characters in each text field, and say where.

    Also in fields that a form makes when it is filled in. Passwords may have any: they
    are stored as a hash, and shown nowhere.
    """

    def _clean_fields(self) -> None:
        # Before `clean`, and after the field's own method, which may put a pasted
        # name on one line, or refuse it in better words.
        super()._clean_fields()  # type: ignore[misc]
        for name, value in list(self.cleaned_data.items()):
            field = self.fields.get(name)
            if not isinstance(field, CharField) or not isinstance(value, str):
                continue
            if isinstance(field.widget, PasswordInput):
                continue
            lines = isinstance(field.widget, Textarea)
            try:
                refuse_control_characters(value, lines=lines)
            except ValidationError as error:
                self.add_error(name, error)


class Form(RefusesControlCharacters, DjangoForm):  # type: ignore[no-redef]
    pass


class Select(DjangoSelect):  # type: ignore[no-redef]
    """Select whose options are joined in Python.

    Django renders two templates for each option: of a state's districts, they took
    more time than the page around them.
    """

    def render(
        self,
        name: str,
        value: Any,
        attrs: Mapping[str, Any] | None = None,
        renderer: BaseRenderer | None = None,
    ) -> SafeString:
        widget = self.get_context(name, value, dict(attrs or {}))["widget"]
        groups = "".join(self._groups(widget["optgroups"]))
        return SafeString(
            f'<select name="{escape(widget["name"])}"{flatatt(widget["attrs"])}>'
            f"{groups}</select>"
        )

    def _groups(self, groups: Any) -> Iterator[str]:
        for label, options, _index in groups:
            if label:
                yield f'<optgroup label="{escape(label)}">'
            for option in options:
                attributes = flatatt({"value": option["value"], **option["attrs"]})
                yield f"<option{attributes}>{escape(option['label'])}</option>"
            if label:
                yield "</optgroup>"


class ChoiceField(DjangoChoiceField):  # type: ignore[no-redef]
    widget = Select
