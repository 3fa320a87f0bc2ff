"""Forms to add, change and remove a feed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import forms
from accounts.models import District
from accounts.permissions import Permissions
from survey.console.feeds.credentials_form import (
    credential_fields,
    missing_credentials,
    text_field,
)
from survey.console.feeds.scope import MANAGE
from survey.console.rosters.views import LONGEST_KEY
from survey.models import Administration, RosterFeed
from survey.people.rosters.feeds.download_types import DownloadFailed
from survey.people.rosters.feeds.outgoing import ascii_host, look_up

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

Kind = RosterFeed.Kind
KIND_LABELS = {
    Kind.ZIP: gettext_lazy("A OneRoster ZIP file at a web address (HTTPS)"),
    Kind.SFTP: gettext_lazy("OneRoster ZIP files in a folder (SFTP)"),
    Kind.REST: gettext_lazy("A OneRoster API (REST)"),
}
ADDRESSES = {
    Kind.ZIP: (
        gettext_lazy("Address of the ZIP file"),
        gettext_lazy("It begins with https://."),
    ),
    Kind.SFTP: (
        gettext_lazy("Server"),
        gettext_lazy("Such as sftp.example.org, or sftp.example.org:2222."),
    ),
    Kind.REST: (
        gettext_lazy("Address of the API"),
        gettext_lazy("It begins with https:// and ends before /ims/oneroster/."),
    ),
}
# By the words that `RosterFeed.identity` begins with.
IDENTITIES = {
    "sourcedId": gettext_lazy(
        "sourcedId: the system's own ID. Some systems give a person a new one in"
        " each school."
    ),
    "identifier": gettext_lazy("identifier: usually the student or staff number."),
    "userIds": gettext_lazy("userIds: one of several IDs, whose type is named below."),
}
AUTHORIZATIONS = {
    "oauth2": gettext_lazy("OAuth 2 client credentials"),
    "oauth1": "OAuth 1.0a",
    "bearer": gettext_lazy("A bearer token that does not change"),
}
SCHEDULE_HELP = gettext_lazy(
    "Times of day by the district’s clocks. Leave both empty to scan only when"
    " somebody starts it."
    " Nothing begins after the end."
)


class NewFeedForm(forms.Form):
    """Ask for the district and the kind, on which the other questions depend."""

    district = forms.ModelChoiceField(
        District.objects.none(),
        label=gettext_lazy("District"),
        empty_label=gettext_lazy("Choose a district"),
        error_messages={"required": gettext_lazy("Choose a district.")},
    )
    kind = forms.ChoiceField(
        label=gettext_lazy("What the system offers"),
        choices=list(KIND_LABELS.items()),
        widget=forms.RadioSelect,
        error_messages={"required": gettext_lazy("Choose what the system offers.")},
    )

    def __init__(self, data: QueryDict | None, *, permissions: Permissions) -> None:
        super().__init__(data)
        districts = permissions.districts(MANAGE).order_by("name", "pk")
        cast(forms.ModelChoiceField, self.fields["district"]).queryset = districts
        few = list(districts[:2])
        self.only_district = few[0] if len(few) == 1 else None
        if self.only_district:
            del self.fields["district"]


class AdministrationsField(forms.ModelMultipleChoiceField):
    widget = forms.CheckboxSelectMultiple

    def clean(self, value: Any) -> Any:
        # A database refuses keys that are longer than its integers.
        if any(len(str(key)) > LONGEST_KEY for key in value or ()):
            raise ValidationError(_("Choose one of the survey rounds listed here."))
        return super().clean(value)

    def label_from_instance(self, administration: Any) -> str:
        return f"{administration.title} ({administration.name})"


class FeedForm(forms.Form):
    """All settings of a feed of one kind and district."""

    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=100,
        help_text=gettext_lazy("Such as the student information system's name."),
    )
    address = forms.CharField(max_length=1000)
    identity = forms.ChoiceField(
        label=gettext_lazy("What identifies a person"),
        help_text=gettext_lazy(
            "Choose the ID that a person keeps when they change schools, and that"
            " earlier rosters used."
        ),
        choices=list(IDENTITIES.items()),
        widget=forms.RadioSelect,
        initial="identifier",
    )
    identity_type = text_field(
        gettext_lazy("Type of userIds"),
        gettext_lazy("Such as SIS or stateId."),
        max_length=80,
    )
    administrations = AdministrationsField(
        Administration.objects.none(),
        label=gettext_lazy("Survey rounds"),
        help_text=gettext_lazy(
            "The roster sync brings the people of each survey round's audience."
        ),
        error_messages={"required": gettext_lazy("Choose at least one survey round.")},
    )
    window_begins = forms.TimeField(
        required=False,
        label=gettext_lazy("Scan window begins"),
        widget=forms.TimeInput(attrs={"type": "time"}, format="%H:%M"),
        error_messages={"invalid": gettext_lazy("Write a time of day, such as 01:00.")},
    )
    window_ends = forms.TimeField(
        required=False,
        label=gettext_lazy("Scan window ends"),
        widget=forms.TimeInput(attrs={"type": "time"}, format="%H:%M"),
        error_messages={"invalid": gettext_lazy("Write a time of day, such as 04:00.")},
    )

    def __init__(
        self,
        data: QueryDict | None,
        *,
        kind: str,
        administrations: QuerySet[Administration],
        feed: RosterFeed | None = None,
        samples: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.kind, self.feed = kind, feed
        super().__init__(data, initial=_initial(feed) if feed else None)
        fields = self.fields
        address = fields["address"]
        address.label, address.help_text = ADDRESSES[Kind(kind)]
        address.widget.attrs |= {"autocomplete": "off", "spellcheck": "false"}
        self.option_names = tuple(_add_option_fields(fields, kind))
        credentials = credential_fields(kind)
        self.credential_names = tuple(credentials)
        fields |= credentials
        cast(AdministrationsField, fields["administrations"]).queryset = administrations
        fields["window_begins"].help_text = SCHEDULE_HELP
        if samples:
            cast(forms.ChoiceField, fields["identity"]).choices = [
                (value, _with_samples(value, label, samples))
                for value, label in IDENTITIES.items()
            ]

    def rows(self, *names: str) -> list[forms.BoundField]:
        return [self[name] for name in names if name in self.fields]

    @property
    def has_administrations(self) -> bool:
        field = cast(AdministrationsField, self.fields["administrations"])
        return bool(field.queryset)

    @property
    def place_rows(self) -> list[forms.BoundField]:
        return self.rows("name", "address", *self.option_names)

    @property
    def credential_rows(self) -> list[forms.BoundField]:
        return self.rows(*self.credential_names)

    @property
    def people_rows(self) -> list[forms.BoundField]:
        return self.rows("identity", "identity_type", "administrations")

    @property
    def schedule_rows(self) -> list[forms.BoundField]:
        return self.rows("window_begins", "window_ends")

    def clean_address(self) -> str:
        return check_address(self.cleaned_data["address"], self.kind)

    def clean_token_url(self) -> str:
        address: str = self.cleaned_data["token_url"]
        return check_address(address, Kind.REST) if address.strip() else ""

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        self._check_identity(cleaned)
        self._check_window(cleaned)
        self._check_credentials(cleaned)
        needs_token = cleaned.get("authorization") == "oauth2"
        if needs_token and not cleaned.get("token_url", "refused before"):
            self.add_error("token_url", _("OAuth 2 needs the address of tokens."))
        return cleaned

    def _check_identity(self, cleaned: dict[str, Any]) -> None:
        if cleaned.get("identity") != "userIds":
            return
        if not cleaned.get("identity_type"):
            self.add_error(
                "identity_type", _("Enter the type, or choose another ID above.")
            )
        else:
            cleaned["identity"] = f"userIds:{cleaned['identity_type'].strip()}"

    def _check_window(self, cleaned: dict[str, Any]) -> None:
        begins, ends = cleaned.get("window_begins"), cleaned.get("window_ends")
        if {"window_begins", "window_ends"} & self.errors.keys():
            return
        if (begins is None) != (ends is None):
            empty = "window_begins" if begins is None else "window_ends"
            self.add_error(empty, _("Enter both times, or none."))
        elif begins is not None and begins == ends:
            self.add_error(
                "window_ends", _("The window must end later than it begins.")
            )

    def _check_credentials(self, cleaned: dict[str, Any]) -> None:
        """Set `credentials` to what was typed, or to None to keep the old ones."""
        typed = {
            name: cleaned[name] for name in self.credential_names if cleaned.get(name)
        }
        if typed or not (self.feed and self.feed.credentials):
            authorization = str(cleaned.get("authorization", ""))
            problems = missing_credentials(self.kind, authorization, typed)
            for name, words in problems.items():
                self.add_error(name, words)
            cleaned["credentials"] = typed
            return
        cleaned["credentials"] = None

    @property
    def values(self) -> dict[str, Any]:
        """Return the checked settings under the names of `create_feed`."""
        cleaned = self.cleaned_data
        names = ("name", "address", "identity", "administrations")
        return {
            **{name: cleaned[name] for name in names},
            "credentials": cleaned["credentials"],
            "options": {name: cleaned[name] for name in self.option_names},
            "window_begins": cleaned["window_begins"],
            "window_ends": cleaned["window_ends"],
        }


def _add_option_fields(fields: dict[str, forms.Field], kind: str) -> list[str]:
    added: dict[str, forms.Field] = {}
    if kind == Kind.SFTP:
        added["folder"] = text_field(
            _("Folder"), _("Empty: the folder after logging in.")
        )
        added["pattern"] = text_field(
            _("File names"), _("The newest file that fits is read."), initial="*.zip"
        )
    elif kind == Kind.REST:
        added["version"] = forms.ChoiceField(
            label=_("Version"),
            choices=(("1.1", "OneRoster 1.1"), ("1.2", "OneRoster 1.2")),
            widget=forms.RadioSelect,
            initial="1.1",
        )
        added["authorization"] = forms.ChoiceField(
            label=_("How Groundswell logs in"),
            choices=list(AUTHORIZATIONS.items()),
            widget=forms.RadioSelect,
            initial="oauth2",
        )
        added["token_url"] = text_field(
            _("Token address"), _("For OAuth 2. It begins with https://.")
        )
        added["scope"] = text_field(
            _("Scopes"),
            _("For OAuth 2, separated by spaces. Empty: those of the standard."),
        )
        added["per_school"] = forms.BooleanField(
            required=False,
            label=_("Fetch school by school"),
            help_text=_(
                "For systems that can't list all people of a district at once."
            ),
        )
    fields |= added
    return list(added)


def _initial(feed: RosterFeed) -> dict[str, Any]:
    identity, _, identity_type = feed.identity.partition(":")
    return {
        **feed.options,
        "name": feed.name,
        "address": feed.address,
        "identity": identity,
        "identity_type": identity_type,
        "administrations": list(feed.administrations.values_list("pk", flat=True)),
        "window_begins": feed.window_begins,
        "window_ends": feed.window_ends,
    }


def identity_in_words(identity: str) -> str:
    name, _colon, identity_type = identity.partition(":")
    if identity_type:
        return _("userIds of the type %(identity_type)s") % {
            "identity_type": identity_type
        }
    return IDENTITIES.get(name, name).partition(".")[0]


def options_in_words(feed: RosterFeed) -> list[tuple[str, str]]:
    """Return the labels and texts of a feed's options that are set."""
    fields: dict[str, forms.Field] = {}
    pairs = []
    for name in _add_option_fields(fields, feed.kind):
        value, field = feed.options.get(name), fields[name]
        if isinstance(field, forms.ChoiceField):
            value = dict(cast(Any, field.choices)).get(value)
        if value:
            pairs.append((str(field.label), _("Yes") if value is True else str(value)))
    return pairs


def _with_samples(
    value: str, label: StrOrPromise, samples: Mapping[str, Sequence[str]]
) -> str:
    shown = [
        f"{name.removeprefix('userIds:')} {', '.join(texts)}"
        if name.startswith("userIds:")
        else ", ".join(texts)
        for name, texts in samples.items()
        if name.partition(":")[0] == value and texts
    ]
    if not shown:
        return _("%(label)s Here: none.") % {"label": label}
    return _("%(label)s Here: %(samples)s.") % {
        "label": label,
        "samples": "; ".join(shown),
    }


def check_address(text: str, kind: str) -> str:
    """Return an address to which a feed may connect. Raises ValidationError.

    Scans check it again each time: a name may lead elsewhere tomorrow.
    """
    text = text.strip()
    try:
        parts = urlsplit(text if "://" in text else f"//{text}")
        host, port, has_user = parts.hostname or "", parts.port, "@" in parts.netloc
    except ValueError:
        raise ValidationError(_("This is no address. Copy it again.")) from None
    if has_user:
        raise ValidationError(
            _(
                "The address has a user name or password in it, which everybody"
                " who may change this roster sync could read. Enter them below instead."
            )
        )
    if kind != Kind.SFTP and parts.scheme not in ("https", "http"):
        raise ValidationError(_("The address must begin with https://."))
    if not host or (kind == Kind.SFTP and parts.scheme not in ("", "sftp")):
        raise ValidationError(_("Enter the name of the server."))
    default = {"http": 80, "https": 443}.get(parts.scheme, 22)
    try:
        look_up(
            ascii_host(host),
            port or default,
            only_allowed_networks=parts.scheme == "http",
        )
    except DownloadFailed as error:
        # Names that can't be looked up now may be found at night.
        if not error.may_retry:
            raise ValidationError(error.message) from None
    return text


class RemoveFeedForm(forms.Form):
    typed = text_field(
        gettext_lazy("Name of the roster sync"),
        gettext_lazy("Type it to confirm."),
        required=True,
    )

    def __init__(self, data: QueryDict | None, *, feed: RosterFeed) -> None:
        super().__init__(data)
        self.feed = feed

    def clean_typed(self) -> str:
        typed: str = self.cleaned_data["typed"].strip()
        if typed.casefold() != self.feed.name.casefold():
            raise ValidationError(
                _("Type the name of the roster sync: %(name)s")
                % {"name": self.feed.name}
            )
        return typed
