"""Django's forms, whose text fields refuse control characters.

Import this instead of `django.forms`, which has fields and widgets but no such rule.
"""

from __future__ import annotations

from django.forms import *  # noqa: F403
from django.forms import (
    BaseForm,
    CharField,
    PasswordInput,
    Textarea,
    ValidationError,
)
from django.forms import Form as DjangoForm  # noqa: TID251

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
