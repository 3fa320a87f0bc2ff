"""Say in plain words what the tables and columns about a person hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy as _

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

TABLES: Mapping[str, StrOrPromise] = {
    "survey_identity": _("Name and contact data"),
    "survey_respondent": _("Record on the roster"),
    "survey_response": _("Answers"),
    "survey_countedgroup": _("Groups in which the person counts in response rates"),
    "survey_devicelogin": _("Devices on which the access code was used"),
    "survey_consent": _("Consents"),
    "survey_optout": _("Opt-outs"),
    "survey_listedid": _("ID on a list of opt-outs or consents"),
    "survey_recordjoin": _("Records that were joined with this one"),
    "survey_pairchoice": _("Choices when districts were merged"),
    "survey_rosterchange": _("Earlier data, kept to undo a roster"),
    "survey_rostermissing": _("Rosters that would withdraw the person"),
    "survey_emaildelivery": _("E-mails"),
    "survey_cardset": _("Login cards of this person alone"),
    "survey_erasedrecord": _("Order to erase the person"),
    "survey_personfile": _("Files about this person that staff requested"),
    "survey_opencodeseat": _("Seat of a school link"),
    "accounts_auditentry": _("Who looked at the record or changed it"),
}

# Columns without a label are keys and digests: numbers that say nothing by themselves.
COLUMNS: Mapping[str, StrOrPromise] = {
    "at": _("Time"),
    "action": _("What was done"),
    "after_finishing": _("Used only after finishing"),
    "attempts": _("Attempts"),
    "attributes": _("Groups"),
    "awaits_consent": _("Consent is missing"),
    "birth_date": _("Birth date"),
    "change": _("What a roster changed"),
    "changed_at": _("Changed at"),
    "claimed_at": _("Time"),
    "classroom": _("Class"),
    "completed_at": _("Finished at"),
    "declined_at": _("Declined at"),
    "created_at": _("Requested at"),
    "deleted_at": _("Deleted at"),
    "email": _("E-mail address"),
    "ended_at": _("Ended at"),
    "erased_at": _("Erased at"),
    "external_id": _("ID in the school’s system"),
    "family_name": _("Family name"),
    "first_at": _("First used at"),
    "forgets": _("Stopped for now on it"),
    "format": _("Format"),
    "given_by": _("Given by"),
    "given_name": _("Given name"),
    "given_on": _("Date"),
    "grade": _("Grade"),
    "has_left": _("Said to have left"),
    "issue": _("Access codes issued"),
    "keep": _("Record that stays"),
    "kind": _("Kind"),
    "language": _("Language"),
    "made_at": _("Made at"),
    "message": _("Message"),
    "note": _("Note"),
    "opted_out_at": _("Opted out at"),
    "reason": _("Reason"),
    "recorded_at": _("Recorded at"),
    "requested_at": _("Requested at"),
    "requested_by": _("Requested by"),
    "requested_on": _("Date of the request"),
    "response_language": _("Language of the answers"),
    "retry_at": _("Tried again at"),
    "saved_at": _("Saved at"),
    "school": _("School"),
    "started_at": _("Started at"),
    "state": _("State"),
    "value": _("Answer"),
    "was_withdrawn_at": _("Withdrawn before, at"),
    "withdrawn_at": _("Withdrawn at"),
}
