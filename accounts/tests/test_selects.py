"""Lists of options, which are joined in Python."""

from __future__ import annotations

import pytest
from django.forms import Select as DjangoSelect
from django.utils.html import strip_spaces_between_tags

from accounts import forms

OPTIONS = [
    ("", "All <districts>"),
    ('3" onclick="x', "Lake & Shore"),
    ("Earlier", [(4, "Fall"), (5, "Spring")]),
]


@pytest.mark.parametrize("chosen", ["", '3" onclick="x', "5", None])
def test_options_are_the_same_as_from_djangos_templates(chosen):
    attributes = {"id": "id_place", "required": True, "disabled": False}
    fast, slow = (
        widget(choices=OPTIONS).render("place", chosen, attributes)
        for widget in (forms.Select, DjangoSelect)
    )
    # Django's templates end lines between tags.
    slow = strip_spaces_between_tags(slow.replace(">\n", ">").replace("\n  ", ""))
    assert fast.replace("\n", "") == slow.replace("\n", "")
    assert "<districts>" not in fast


def test_forms_of_pages_have_them():
    assert isinstance(forms.ChoiceField(choices=OPTIONS).widget, forms.Select)
