"""The form for the archive with which a district gets its data back."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import forms
from reports.console.exports.forms import ExportForm
from reports.exports.return_of_data.encryption import (
    BadPublicKey,
    check_public_key,
    new_password,
    seal_password,
)
from reports.models.exports import IDENTITIES, RETURN, Export

Format = Export.Format
KEY, PASSWORD = "key", "password"
FURTHER = (Format.XLSX, Format.SAV, Format.DTA, Format.PARQUET)


class ReturnForm(ExportForm):
    """Offers districts whose names the user may see with their answers.

    `password` is set once the form is valid, if one opens the archive.
    """

    names_field = "administrations"

    further_formats = forms.MultipleChoiceField(
        label=gettext_lazy("Further file types"),
        choices=[(kind.value, kind.label) for kind in FURTHER],
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=gettext_lazy("The archive always has a CSV file."),
    )
    encryption = forms.ChoiceField(
        label=gettext_lazy("How the district opens the archive"),
        choices=[
            (KEY, gettext_lazy("With its own key (age or SSH)")),
            (PASSWORD, gettext_lazy("With a password, which you see once")),
        ],
        initial=KEY,
        widget=forms.RadioSelect,
    )
    public_key = forms.CharField(
        label=gettext_lazy("Public key of the district"),
        required=False,
        max_length=2000,
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
        help_text=gettext_lazy(
            "Required unless you choose a password. It begins with age1, ssh-ed25519 or"
            " ssh-rsa. Ask by telephone whether it is the district’s."
        ),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("school", "role", "format", "labels", "bom", "identities"):
            self.fields.pop(name, None)
        reason = self.fields["reason"]
        reason.label, reason.required = _("Purpose"), True
        reason.help_text = _(
            "Kept in the archive and in the log. For example: Data returned at the end"
            " of the agreement with the district."
        )

    def _offer_places(self) -> None:
        districts = self.permissions.districts(*IDENTITIES).order_by("name", "pk")
        field = self._model_field("district")
        field.queryset, field.required = districts, True
        field.empty_label = _("Choose a district")
        if len(districts[:2]) == 1:
            self.initial.setdefault("district", districts[0].pk)

    def clean(self) -> dict[str, object]:
        # What the form of exports asks for, and this one knows.
        self.cleaned_data |= {"identities": True, "format": RETURN}
        given = super().clean()
        key = str(given.get("public_key", ""))
        uses_key = given.get("encryption") == KEY
        if uses_key and not key.strip():
            self.add_error("public_key", _("Enter the public key of the district."))
        elif uses_key:
            try:
                key = check_public_key(key)
            except BadPublicKey as error:
                self.add_error("public_key", str(error))
        self.password = "" if uses_key else new_password()
        self.choices["further_formats"] = self.cleaned_data.get("further_formats", [])
        self.choices["recipient"] = key if uses_key else ""
        if self.password:
            self.choices["sealed_password"] = seal_password(self.password)
        return given
