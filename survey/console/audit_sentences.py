"""What the audit log says about people, rosters, surveys and codes."""

from __future__ import annotations

from collections.abc import Collection

from django.urls import reverse

from accounts.console.audit_sentences import (
    Label,
    Subjects,
    add_sentences,
    add_subjects,
)
from accounts.permissions import Capability, Permissions
from survey.models import Administration, Respondent

PEOPLE = {
    "show an access code": "{who} showed the access code of {subject}",
    "reissue an access code": "{who} issued a new access code for {subject}",
    "reissue access codes": "{who} issued new access codes for {subject}",
    "add a person": "{who} added {subject}",
    "correct a person": "{who} corrected {subject}",
    "withdraw a person": "{who} withdrew {subject}",
    "bring back a person": "{who} brought back {subject}",
    "reopen a finished survey": "{who} reopened the survey for {subject}",
    "opt out a person": "{who} opted out {subject}",
    "take back an opt-out": "{who} took back the opt-out of {subject}",
    "opt out people of a list": "{who} opted out people of a list in {subject}",
    "keep opt-outs for later rosters": (
        "{who} kept opt-outs for later rosters of {subject}"
    ),
    "remove a kept opt-out": "{who} removed a kept opt-out in {subject}",
    "confirm join of records": "{who} confirmed that two records are one person",
    "join records": "The records that {who} confirmed were joined",
    "ask for cards again": "{who} had login cards made again: {subject}",
    "ask for cards": "{who} had login cards made: {subject}",
    "ask for new access codes": "{who} had new access codes made: {subject}",
    "download cards": "{who} downloaded login cards: {subject}",
    "download a roster": "{who} downloaded the roster of {subject}",
}
ROSTERS = {
    "upload roster": "{who} uploaded a roster: {subject}",
    "choose roster columns": "{who} chose the columns of a roster: {subject}",
    "confirm roster": "{who} confirmed a roster: {subject}",
    "apply roster": "The roster that {who} confirmed was applied: {subject}",
    "cancel roster": "{who} cancelled a roster: {subject}",
    "start roster again": "{who} started a roster again: {subject}",
    "undo roster": "{who} started to undo a roster: {subject}",
    "roster undone": "The roster that {who} wanted to undo was undone: {subject}",
    "import roster": "{who} imported a roster into {subject}",
    "add feed": "{who} added the feed {subject}",
    "change feed": "{who} changed the feed {subject}",
    "remove feed": "{who} removed the feed {subject}",
    "accept host key": "{who} accepted a new host key of the feed {subject}",
    "confirm feed scan": "{who} confirmed a scan of the feed {subject}",
    "cancel feed scan": "{who} cancelled a scan of the feed {subject}",
    "upload schools": "{who} uploaded a list of schools: {subject}",
    "confirm schools": "{who} confirmed a list of schools: {subject}",
    "cancel schools": "{who} cancelled a list of schools: {subject}",
    "import schools": "{who} imported schools",
    "check merge": "{who} checked a merge: {subject}",
    "confirm merge": "{who} confirmed a merge: {subject}",
    "cancel merge": "{who} cancelled a merge: {subject}",
    "choose records": "{who} chose between records of one person: {subject}",
    "merge of school": "The schools of a merge that {who} confirmed are one: {subject}",
    "merge of district": (
        "The districts of a merge that {who} confirmed are one: {subject}"
    ),
}
SURVEYS = {
    "open administration": "{who} planned {subject}",
    "change administration": "{who} changed {subject}",
    "close administration": "{who} closed {subject}",
    "reopen administration": "{who} reopened {subject}",
    "correct texts of administration": "{who} corrected texts of {subject}",
    "change texts of draft": "{who} changed texts of the draft {subject}",
    "upload survey": "{who} uploaded the survey {subject}",
    "publish survey": "{who} published the survey {subject}",
    "publish correction": "{who} published corrected texts of {subject}",
    "download survey": "{who} downloaded the survey {subject}",
    "delete survey": "{who} deleted the survey {subject}",
    "retire survey": "{who} retired the survey {subject}",
    "bring back survey": "{who} brought back the survey {subject}",
    "create wave": "{who} created the wave {subject}",
    "rename wave": "{who} renamed the wave {subject}",
    "delete wave": "{who} deleted the wave {subject}",
    "add holiday": "{who} added a holiday: {subject}",
    "remove holiday": "{who} removed a holiday: {subject}",
    "change contact person": "{who} changed the contact person of {subject}",
    "change weekend": "{who} changed the weekend",
    "change count": "{who} changed the number of people of {subject}",
    "import counts": "{who} imported numbers of people for {subject}",
    "cancel job": "{who} stopped a job: {subject}",
}
MESSAGES = {
    "plan e-mails": "{who} planned the e-mails of {subject}",
    "write an e-mail": "{who} wrote an e-mail of {subject}",
    "confirm e-mails": "{who} confirmed the e-mails of {subject}",
    "pause e-mails": "{who} paused the e-mails of {subject}",
    "resume e-mails": "{who} resumed the e-mails of {subject}",
    "cancel e-mails": "{who} cancelled the e-mails of {subject}",
    "create open code": "{who} created an open code: {subject}",
    "create open codes for all schools": (
        "{who} created open codes for all schools of {subject}"
    ),
    "revoke open code": "{who} revoked an open code: {subject}",
    "replace open code": "{who} replaced an open code: {subject}",
    "make a file with open codes": "{who} made a file with open codes: {subject}",
    "download a file with open codes": (
        "{who} downloaded a file with open codes: {subject}"
    ),
    "delete starts without answers": "Starts without answers of {subject} were deleted",
    "add message platform": "{who} added the message platform {subject}",
    "remove message platform": "{who} removed the message platform {subject}",
    "create API key": "{who} created an API key of {subject}",
    "revoke API key": "{who} revoked an API key of {subject}",
    "download keys of people": "{who} downloaded keys of people for {subject}",
}
VIEWS = {
    "look at people": "{who} looked at people of {subject}",
    "look at a person": "{who} looked at {subject}",
    "see roster samples": "{who} saw values of a roster: {subject}",
    "preview an e-mail": "{who} previewed an e-mail of {subject}",
    "show open code": "{who} showed an open code: {subject}",
}


def register() -> None:
    for sentences in (PEOPLE, ROSTERS, SURVEYS, MESSAGES):
        add_sentences(sentences)
    add_sentences(VIEWS, are_views=True)
    add_subjects("survey.respondent", Subjects(people_labels, "a person"))
    add_subjects("survey.administration", Subjects(administration_labels, ""))


def people_labels(permissions: Permissions, ids: Collection[int]) -> dict[int, Label]:
    """Return the names of the people whom the user may see. 1 statement."""
    schools = permissions.schools(Capability.SEE_IDENTITIES)
    people = Respondent.objects.filter(pk__in=ids, school__in=schools)
    rows = people.select_related("identity", "administration__published__survey")
    labels = {}
    for one in rows.defer(
        "administration__published__definition",
        "administration__published__survey__source",
    ):
        identity = getattr(one, "identity", None)
        if identity is None:
            continue
        name = f"{identity.given_name} {identity.family_name}".strip()
        labels[one.pk] = Label(
            name or identity.external_id,
            reverse("people_detail", args=[one.administration_id, one.pk]),
            context=one.administration.title,
            is_name=True,
        )
    return labels


def administration_labels(
    permissions: Permissions, ids: Collection[int]
) -> dict[int, Label]:
    """Return titles, which readers of the entries may know. 1 statement."""
    rows = Administration.objects.filter(pk__in=ids).select_related("published__survey")
    some = rows.defer("published__definition", "published__survey__source")
    return {one.pk: Label(one.title) for one in some}
