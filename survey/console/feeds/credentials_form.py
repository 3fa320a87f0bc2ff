"""Form fields for the credentials of each kind of feed, which are never shown."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import (
    load_pem_private_key,
    load_ssh_private_key,
)
from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from survey.models import RosterFeed

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

Kind = RosterFeed.Kind
OPENSSH = "-----BEGIN OPENSSH PRIVATE KEY-----"
ACCEPTED_KEYS = gettext_lazy(
    "OpenSSH format without a passphrase, or PEM format (PKCS #8) with or without one."
)


class EmptyTextarea(forms.Textarea):
    """A text area that is empty again when the form is shown with errors."""

    def format_value(self, value: object) -> str:
        return ""


def secret_field(label: str, help_text: str = "") -> forms.CharField:
    # PasswordInput never renders a value.
    attributes = {"autocomplete": "new-password", "spellcheck": "false"}
    return forms.CharField(
        label=label,
        help_text=help_text,
        required=False,
        strip=False,
        max_length=1_000,
        widget=forms.PasswordInput(attrs=attributes),
    )


def text_field(
    label: StrOrPromise, help_text: StrOrPromise = "", **more: Any
) -> forms.CharField:
    attributes = {"autocomplete": "off", "spellcheck": "false"}
    options = {"required": False, "max_length": 500, **more}
    widget = forms.TextInput(attrs=attributes)
    return forms.CharField(label=label, help_text=help_text, widget=widget, **options)


def private_key_field() -> forms.CharField:
    attributes = {"autocomplete": "off", "spellcheck": "false", "rows": 5}
    return forms.CharField(
        label=_("Private key"),
        help_text=_("In place of a password. %(accepted_keys)s")
        % {"accepted_keys": ACCEPTED_KEYS},
        required=False,
        max_length=16_000,
        widget=EmptyTextarea(attrs=attributes),
    )


def credential_fields(kind: str) -> dict[str, forms.CharField]:
    """Return the fields of a kind by the name under which they are sealed."""
    if kind == Kind.SFTP:
        return {
            "username": text_field(_("User name")),
            "password": secret_field(_("Password")),
            "private_key": private_key_field(),
            "passphrase": secret_field(_("Passphrase of the private key")),
        }
    if kind == Kind.REST:
        return {
            "client_id": text_field(_("Client ID or consumer key")),
            "client_secret": secret_field(_("Client secret or consumer secret")),
            "token": secret_field(_("Bearer token")),
        }
    return {
        "username": text_field(_("User name"), _("Only if the address asks for one.")),
        "password": secret_field(_("Password")),
        "token": secret_field(
            _("Bearer token"), _("In place of a user name and password.")
        ),
        "header": text_field(
            _("Name of a header for an API key"), _("Such as X-API-Key.")
        ),
        "key": secret_field(_("API key"), _("Sent in that header.")),
    }


def missing_credentials(
    kind: str, authorization: str, typed: dict[str, str]
) -> dict[str, str]:
    """Return what is wrong with typed credentials, by field."""
    if kind == Kind.SFTP:
        if not typed.get("username"):
            return {"username": _("Enter the user name of the SFTP server.")}
        if bool(typed.get("password")) == bool(typed.get("private_key")):
            return {"password": _("Enter either a password or a private key.")}
        if typed.get("passphrase") and not typed.get("private_key"):
            return {"passphrase": _("A passphrase needs a private key.")}
        if private_key := typed.get("private_key"):
            return _key_problem(private_key, typed.get("passphrase", ""))
        return {}
    if kind == Kind.REST:
        if authorization == "bearer":
            needed = {"token": _("Enter the bearer token.")}
        else:
            needed = {
                "client_id": _("Enter the client ID or consumer key."),
                "client_secret": _("Enter the secret that belongs to it."),
            }
        return {name: words for name, words in needed.items() if not typed.get(name)}
    if typed.get("token") and (typed.get("username") or typed.get("password")):
        return {"token": _("Enter either a token, or a user name and password.")}
    if bool(typed.get("header")) != bool(typed.get("key")):
        return {"key": _("The name of a header and an API key belong together.")}
    if bool(typed.get("username")) != bool(typed.get("password")):
        return {"password": _("A user name and a password belong together.")}
    return {}


def _key_problem(text: str, passphrase: str) -> dict[str, str]:
    text = text.strip().replace("\r\n", "\n") + "\n"
    if text.startswith(OPENSSH):
        if _is_encrypted_openssh(text):
            # To decrypt these, cryptography and asyncssh need one more library.
            return {
                "private_key": _(
                    "OpenSSH keys with a passphrase are not accepted. Convert a"
                    " copy of the key with ssh-keygen -p -m PKCS8 -f COPY, and"
                    " paste that. Accepted: %(accepted_keys)s"
                )
                % {"accepted_keys": ACCEPTED_KEYS}
            }
        password = None
    else:
        password = passphrase.encode() if "ENCRYPTED" in text else None
        if password == b"":
            return {"passphrase": _("This private key has a passphrase. Enter it.")}
    try:
        if text.startswith(OPENSSH):
            load_ssh_private_key(text.encode(), None)
        else:
            load_pem_private_key(text.encode(), password)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        if password:
            return {
                "passphrase": _("The private key can't be read with this passphrase.")
            }
        return {
            "private_key": _("This key can't be read. Accepted: %(accepted_keys)s")
            % {"accepted_keys": ACCEPTED_KEYS}
        }
    return {}


def _is_encrypted_openssh(text: str) -> bool:
    """Return whether the key names a cipher, in the first field of its content."""
    lines = [line for line in text.splitlines() if not line.startswith("-----")]
    try:
        content = base64.b64decode("".join(lines))
    except ValueError:
        return False
    magic, none = b"openssh-key-v1\0", b"\0\0\0\x04none"
    return content.startswith(magic) and not content.startswith(magic + none)
