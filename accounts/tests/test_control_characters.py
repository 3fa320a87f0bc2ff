"""No form, admin page or reader of files takes a control character."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from types import ModuleType

import pytest
from django import forms as django_forms
from django.apps import apps
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db import models
from django.test import RequestFactory

import accounts
import reports
import survey
from accounts import forms
from accounts.control_characters import refuse_control_characters

# No text that is stored or shown: passwords become hashes.
IS_NO_TEXT = (django_forms.PasswordInput,)
IN_A_LINE = [*range(1, 32), *range(127, 160), 0x2028, 0x2029, 0x202D, 0x202E, 0xFFFF]
BREAKS = (0x09, 0x0A, 0x0D, 0x2028, 0x2029)
PROJECT = ("accounts", "survey", "reports")
ALLOWED = "a\u200eb\u200f\u200d\u200c\u2066\u00a0\u00adñ𝒳🙂"


def import_all(package: ModuleType) -> None:
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if ".tests" not in module.name and ".migrations" not in module.name:
            importlib.import_module(module.name)


def all_subclasses(base: type) -> Iterator[type]:
    for subclass in base.__subclasses__():
        yield subclass
        yield from all_subclasses(subclass)


def project_forms() -> list[type[django_forms.BaseForm]]:
    for package in (accounts, survey, reports):
        import_all(package)
    return [
        form
        for form in dict.fromkeys(all_subclasses(django_forms.BaseForm))
        if form.__module__.partition(".")[0] in PROJECT
        and ".tests" not in form.__module__
        and hasattr(form, "base_fields")
    ]


def is_text(field: django_forms.Field | None) -> bool:
    return isinstance(field, django_forms.CharField) and not isinstance(
        field, django_forms.JSONField
    )


def accepted(form: type[django_forms.BaseForm], name: str) -> list[str]:
    """Return which control characters a declared field of a form accepts."""
    field = form.base_fields[name]
    lines = isinstance(field.widget, django_forms.Textarea)
    codes = [code for code in IN_A_LINE if not (lines and code in BREAKS)]
    return [f"U+{code:04X}" for code in codes if accepts(form, name, f"a{chr(code)}b")]


def accepts(form: type[django_forms.BaseForm], name: str, text: str) -> bool:
    """Return whether the field itself takes a text; views' arguments are left out."""
    # Without the form's own methods, which may need a user.
    bare = type("Bare", (form,), {"__init__": django_forms.BaseForm.__init__})
    filled = bare(data={name: text}, prefix=None)
    filled.fields = {name: filled.fields[name]}
    bare._post_clean = bare._clean_form = lambda self: None
    setattr(bare, f"clean_{name}", lambda self: self.cleaned_data[name])
    return name not in filled.errors


FORMS = project_forms()


def test_the_walk_meets_the_forms():
    names = {form.__name__ for form in FORMS}
    assert {"ContactForm", "LoginForm", "ExportForm", "TextForm"} <= names
    assert len(names) > 60


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__qualname__)
def test_no_text_field_of_a_form_takes_a_control_character(form):
    assert issubclass(form, forms.RefusesControlCharacters)
    for name, field in form.base_fields.items():
        if is_text(field) and not isinstance(field.widget, IS_NO_TEXT):
            assert accepted(form, name) == [], name


@pytest.mark.parametrize(
    "model",
    [model for model in apps.get_models() if model.__module__.startswith(PROJECT)],
    ids=lambda model: model._meta.label,
)
def test_no_text_column_of_a_model_takes_one_from_a_form(model):
    made = {
        field.name: field.formfield()
        for field in model._meta.get_fields()
        if hasattr(field, "formfield")
    }
    texts = {name: field for name, field in made.items() if is_text(field)}
    form = type("Made", (forms.Form,), dict(texts))
    for field in model._meta.fields:
        if isinstance(field, models.CharField | models.TextField) and not field.choices:
            assert field.name in texts or not field.editable
    for name in texts:
        assert accepted(form, name) == [], name


def test_without_the_rule_a_contact_takes_one():
    class Unprotected(django_forms.Form):
        email = django_forms.EmailField()

    assert accepts(Unprotected, "email", '"a\x1fb"@example.org')


def test_fields_that_a_form_makes_when_it_is_filled_in_are_checked():
    class Later(forms.Form):
        def __init__(self, *args):
            super().__init__(*args)
            self.fields["word"] = forms.CharField(widget=forms.Textarea)

    form = Later({"word": "a\x7f"})
    message = "Character 2 is invisible (U+007F) and not allowed here."
    assert form.errors["word"] == [f"{message} Delete it, or type the text again."]
    assert Later({"word": f"{ALLOWED}\t\r\n\u2028x"}).is_valid()


@pytest.mark.django_db
def test_no_text_field_of_an_admin_page_takes_a_control_character(staff):
    request = RequestFactory().get("/")
    request.user = staff.state
    request.user.is_superuser = True
    seen = set()
    for model, page in admin.site._registry.items():
        if not page.has_add_permission(request) and not page.has_change_permission(
            request
        ):
            continue
        # Another form adds a user than changes one.
        for form in (page.get_form(request), page.get_form(request, model())):
            for name, field in form.base_fields.items():
                if is_text(field) and not isinstance(field.widget, IS_NO_TEXT):
                    seen.add((model.__name__, name))
                    assert accepted(form, name) == [], (model, name)
    assert {("District", "name"), ("SchoolListing", "contact_email")} <= seen


@pytest.mark.parametrize("code", [0, *IN_A_LINE, 0xD800, 0xFDD0, 0xFFFE])
def test_the_rule_names_the_place_and_the_character(code):
    message = "in one line" if chr(code) in "\r\n" else f"Character 3 .*U.{code:04X}"
    with pytest.raises(ValidationError, match=message):
        refuse_control_characters(f"ab{chr(code)}c")
    if code in BREAKS:
        refuse_control_characters(f"ab{chr(code)}c", lines=True)
    else:
        with pytest.raises(ValidationError):
            refuse_control_characters(f"ab{chr(code)}c", lines=True)


def test_letters_and_signs_for_direction_are_allowed():
    refuse_control_characters(ALLOWED)
