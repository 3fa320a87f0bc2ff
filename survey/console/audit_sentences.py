"""What the audit log says about people, rosters, surveys and codes."""

from __future__ import annotations

from collections.abc import Collection

from django.urls import reverse
from django.utils.translation import gettext_lazy, gettext_noop

from accounts.console.audit_sentences import (
    Label,
    Subjects,
    add_sentences,
    add_subjects,
    add_words,
)
from accounts.models import AuditEntry
from accounts.permissions import Capability, Permissions
from survey.models import Administration, Respondent

PEOPLE = {
    "show an access code": gettext_noop("{who} showed the access code of {subject}"),
    "reissue an access code": gettext_noop(
        "{who} issued a new access code for {subject}"
    ),
    "reissue access codes": gettext_noop("{who} issued new access codes for {subject}"),
    "add a person": gettext_noop("{who} added {subject}"),
    "correct a person": gettext_noop("{who} corrected {subject}"),
    "withdraw a person": gettext_noop("{who} withdrew {subject}"),
    "bring back a person": gettext_noop("{who} brought back {subject}"),
    "reopen a finished survey": gettext_noop("{who} reopened the survey for {subject}"),
    "opt out a person": gettext_noop("{who} opted out {subject}"),
    "take back an opt-out": gettext_noop("{who} took back the opt-out of {subject}"),
    "opt out people of a list": gettext_noop(
        "{who} opted out people of a list in {subject}"
    ),
    "keep opt-outs for later rosters": gettext_noop(
        "{who} kept opt-outs for later rosters of {subject}"
    ),
    "remove a kept opt-out": gettext_noop("{who} removed a kept opt-out in {subject}"),
    "record a consent": gettext_noop("{who} recorded the consent for {subject}"),
    "record consents of a list": gettext_noop(
        "{who} recorded consents of a list in {subject}"
    ),
    "keep consents for later rosters": gettext_noop(
        "{who} kept consents for later rosters of {subject}"
    ),
    "remove a kept consent": gettext_noop("{who} removed a kept consent in {subject}"),
    "confirm join of records": gettext_noop(
        "{who} confirmed that two records are one person"
    ),
    "join records": gettext_noop("The records that {who} confirmed were joined"),
    "ask for a file about a person": gettext_noop(
        "{who} requested a file with all that is stored about {subject}"
    ),
    "make a file about a person": gettext_noop(
        "A file with all that is stored about a person was made for {who}: {subject}"
    ),
    "download a file about a person": gettext_noop(
        "{who} downloaded all that is stored about a person: {subject}"
    ),
    "delete a file about a person": gettext_noop(
        "A file with all that is stored about a person was deleted: {subject}"
    ),
    "order the erasing of people": gettext_noop(
        "{who} ordered the erasing of people: {subject}"
    ),
    "erase people": gettext_noop(
        "The people whom {who} wanted to erase were erased: {subject}"
    ),
    "complete an erasure": gettext_noop(
        "The files of erased people were deleted: {subject}"
    ),
    "issue a certificate of destruction": gettext_noop(
        "A certificate of destruction was issued: {subject}"
    ),
    "download a certificate of destruction": gettext_noop(
        "{who} downloaded a certificate of destruction: {subject}"
    ),
    "replay an erasure": gettext_noop(
        "People who were erased before a restore were erased again: {subject}"
    ),
    "ask for cards again": gettext_noop("{who} had login cards made again: {subject}"),
    "ask for cards": gettext_noop("{who} had login cards made: {subject}"),
    "ask for new access codes": gettext_noop(
        "{who} had new access codes made: {subject}"
    ),
    "download cards": gettext_noop("{who} downloaded login cards: {subject}"),
    "download a roster": gettext_noop("{who} downloaded the roster of {subject}"),
}
ROSTERS = {
    "upload roster": gettext_noop("{who} uploaded a roster: {subject}"),
    "choose roster columns": gettext_noop(
        "{who} chose the columns of a roster: {subject}"
    ),
    "choose schools of a roster": gettext_noop(
        "{who} chose which schools a roster means: {subject}"
    ),
    "confirm roster": gettext_noop("{who} confirmed a roster: {subject}"),
    "apply roster": gettext_noop(
        "The roster that {who} confirmed was applied: {subject}"
    ),
    "cancel roster": gettext_noop("{who} cancelled a roster: {subject}"),
    "cancel abandoned roster": gettext_noop(
        "A roster that nobody confirmed was cancelled: {subject}"
    ),
    "start roster again": gettext_noop("{who} started a roster again: {subject}"),
    "undo roster": gettext_noop("{who} started to undo a roster: {subject}"),
    "roster undone": gettext_noop(
        "The roster that {who} wanted to undo was undone: {subject}"
    ),
    "import roster": gettext_noop("{who} imported a roster into {subject}"),
    "add feed": gettext_noop("{who} added the roster sync {subject}"),
    "change feed": gettext_noop("{who} changed the roster sync {subject}"),
    "remove feed": gettext_noop("{who} removed the roster sync {subject}"),
    "accept host key": gettext_noop(
        "{who} accepted a new host key of the roster sync {subject}"
    ),
    "confirm feed scan": gettext_noop(
        "{who} confirmed a scan of the roster sync {subject}"
    ),
    "cancel feed scan": gettext_noop(
        "{who} cancelled a scan of the roster sync {subject}"
    ),
    "upload schools": gettext_noop("{who} uploaded a list of schools: {subject}"),
    "confirm schools": gettext_noop("{who} confirmed a list of schools: {subject}"),
    "cancel schools": gettext_noop("{who} cancelled a list of schools: {subject}"),
    "import schools": gettext_noop("{who} imported schools"),
    "check merge": gettext_noop("{who} checked a merge: {subject}"),
    "confirm merge": gettext_noop("{who} confirmed a merge: {subject}"),
    "cancel merge": gettext_noop("{who} cancelled a merge: {subject}"),
    "choose records": gettext_noop(
        "{who} chose between records of one person: {subject}"
    ),
    "merge of school": gettext_noop(
        "The schools of a merge that {who} confirmed are one: {subject}"
    ),
    "merge of district": gettext_noop(
        "The districts of a merge that {who} confirmed are one: {subject}"
    ),
}
SURVEYS = {
    "begin survey day": gettext_noop("{who} began a survey day: {subject}"),
    "end survey day": gettext_noop("{who} ended a survey day: {subject}"),
    "open administration": gettext_noop("{who} planned {subject}"),
    "change administration": gettext_noop("{who} changed {subject}"),
    "close administration": gettext_noop("{who} closed {subject}"),
    "reopen administration": gettext_noop("{who} reopened {subject}"),
    "remove administration": gettext_noop("{who} removed {subject}"),
    "stop module": gettext_noop("{who} stopped {subject}, which a district asks"),
    "allow module": gettext_noop("{who} allowed {subject}, which a district asks"),
    "correct texts of administration": gettext_noop(
        "{who} corrected texts of {subject}"
    ),
    "start survey draft": gettext_noop("{who} started the survey {subject}"),
    "upload survey": gettext_noop("{who} uploaded the survey {subject}"),
    "publish survey": gettext_noop("{who} published the survey {subject}"),
    "publish correction": gettext_noop("{who} published corrected texts of {subject}"),
    "make test link": gettext_noop("{who} made a test link of the survey {subject}"),
    "download survey": gettext_noop("{who} downloaded the survey {subject}"),
    "delete survey": gettext_noop("{who} deleted the survey {subject}"),
    "retire survey": gettext_noop("{who} retired the survey {subject}"),
    "bring back survey": gettext_noop("{who} brought back the survey {subject}"),
    "add bank question": gettext_noop("{who} added to the question bank: {subject}"),
    "retire bank question": gettext_noop(
        "{who} retired a question of the bank: {subject}"
    ),
    "bring back bank question": gettext_noop(
        "{who} brought back a question of the bank: {subject}"
    ),
    "create wave": gettext_noop("{who} created the season {subject}"),
    "rename wave": gettext_noop("{who} renamed the season {subject}"),
    "delete wave": gettext_noop("{who} deleted the season {subject}"),
    "add holiday": gettext_noop("{who} added a holiday: {subject}"),
    "remove holiday": gettext_noop("{who} removed a holiday: {subject}"),
    "change contact person": gettext_noop(
        "{who} changed the contact person of {subject}"
    ),
    "change response rate thresholds": gettext_noop(
        "{who} changed the response rate thresholds"
    ),
    "change minimum group": gettext_noop("{who} changed the minimum group"),
    "change retention settings": gettext_noop("{who} changed how long data are kept"),
    "change retention": gettext_noop(
        "{who} changed how long data of {subject} are kept"
    ),
    "warn of the end of data": gettext_noop(
        "Administrators were warned that data of {subject} will be destroyed"
    ),
    "place a hold": gettext_noop("{who} placed a hold on the data of {subject}"),
    "lift a hold": gettext_noop("{who} lifted a hold on the data of {subject}"),
    "order a destruction": gettext_noop(
        "{who} ordered that data of {subject} are destroyed"
    ),
    "destroy data": gettext_noop("Data of {subject} were destroyed, as {who} ordered"),
    "change smallest percentage": gettext_noop(
        "{who} changed the smallest percentage of results"
    ),
    "change who reads the help": gettext_noop("{who} changed who may read the help"),
    "change whether questions are public": gettext_noop(
        "{who} changed whether the questions of surveys are public"
    ),
    "change a public page": gettext_noop(
        "{who} changed the page on privacy or accessibility"
    ),
    "change name and logo": gettext_noop("{who} changed the name, logo or color"),
    "change time zone": gettext_noop("{who} changed the time zone of {subject}"),
    "change weekend": gettext_noop("{who} changed the weekend"),
    "change count": gettext_noop("{who} changed the number of people of {subject}"),
    "import counts": gettext_noop("{who} imported numbers of people for {subject}"),
    "cancel job": gettext_noop("{who} stopped a job: {subject}"),
}
MESSAGES = {
    "plan e-mails": gettext_noop("{who} planned the e-mails of {subject}"),
    "write an e-mail": gettext_noop("{who} wrote an e-mail of {subject}"),
    "confirm e-mails": gettext_noop("{who} confirmed the e-mails of {subject}"),
    "pause e-mails": gettext_noop("{who} paused the e-mails of {subject}"),
    "resume e-mails": gettext_noop("{who} resumed the e-mails of {subject}"),
    "cancel e-mails": gettext_noop("{who} cancelled the e-mails of {subject}"),
    "create open code": gettext_noop("{who} created a school link: {subject}"),
    "create open codes for all schools": gettext_noop(
        "{who} created school links for all schools of {subject}"
    ),
    "publish open code": gettext_noop(
        "{who} showed a school link on the school's public page: {subject}"
    ),
    "unpublish open code": gettext_noop(
        "{who} removed a school link from the school's public page: {subject}"
    ),
    "revoke open code": gettext_noop("{who} revoked a school link: {subject}"),
    "replace open code": gettext_noop("{who} replaced a school link: {subject}"),
    "make a file with open codes": gettext_noop(
        "{who} made a file with school links: {subject}"
    ),
    "download a file with open codes": gettext_noop(
        "{who} downloaded a file with school links: {subject}"
    ),
    "delete starts without answers": gettext_noop(
        "Starts without answers of {subject} were deleted"
    ),
    "add message platform": gettext_noop("{who} added the message platform {subject}"),
    "remove message platform": gettext_noop(
        "{who} removed the message platform {subject}"
    ),
    "create API key": gettext_noop("{who} created an API key of {subject}"),
    "revoke API key": gettext_noop("{who} revoked an API key of {subject}"),
    "download keys of people": gettext_noop(
        "{who} downloaded keys of people for {subject}"
    ),
}
VIEWS = {
    "look at people": gettext_noop("{who} looked at people of {subject}"),
    "look at a person": gettext_noop("{who} looked at {subject}"),
    "see roster samples": gettext_noop("{who} saw values of a roster: {subject}"),
    "preview an e-mail": gettext_noop("{who} previewed an e-mail of {subject}"),
    "show open code": gettext_noop("{who} showed a school link: {subject}"),
}
WORDS = {
    "IDs": gettext_lazy("IDs"),
    "a minute": gettext_lazy("e-mails a minute"),
    "added": gettext_lazy("added"),
    "administration": gettext_lazy("survey round"),
    "administrations": gettext_lazy("survey rounds"),
    "all of its owner's schools": gettext_lazy("all schools of its owner"),
    "answers can be joined with other waves": gettext_lazy(
        "answers can be joined with other seasons"
    ),
    "back": gettext_lazy("brought back"),
    "by a later roster": gettext_lazy("by a later roster"),
    "closes": gettext_lazy("closes"),
    "codes": gettext_lazy("access codes"),
    "codes show earlier answers on new devices": gettext_lazy(
        "codes show earlier answers on new devices"
    ),
    "consent is required": gettext_lazy("consent is required"),
    "people can decline on the first page": gettext_lazy(
        "people can decline on the first page"
    ),
    "questions may be public": gettext_lazy("questions may be public"),
    "coordinators see who has finished": gettext_lazy(
        "coordinators see who has finished"
    ),
    "corrects": gettext_lazy("corrects"),
    "count": gettext_lazy("number of people"),
    "created": gettext_lazy("added"),
    "answers_days": gettext_lazy("days until answers are destroyed"),
    "answers_least_days": gettext_lazy("answers: shortest period"),
    "answers_most_days": gettext_lazy("answers: longest period"),
    "data": gettext_lazy("data"),
    "day": gettext_lazy("day"),
    "credentials": gettext_lazy("credentials"),
    "digest": gettext_lazy("fingerprint of the survey"),
    "draft": gettext_lazy("draft"),
    "e-mail": gettext_lazy("e-mail"),
    "e-mails": gettext_lazy("e-mails"),
    "email": gettext_lazy("e-mail"),
    "feed": gettext_lazy("roster sync"),
    "file": gettext_lazy("file"),
    "finished only": gettext_lazy("only people who have finished"),
    "first": gettext_lazy("first day"),
    "format": gettext_lazy("format"),
    "given by": gettext_lazy("given by"),
    "given on": gettext_lazy("given on"),
    "holder": gettext_lazy("held by"),
    "host_key": gettext_lazy("host key"),
    "identities_days": gettext_lazy("days until names and codes are destroyed"),
    "identities_least_days": gettext_lazy("names and codes: shortest period"),
    "identities_most_days": gettext_lazy("names and codes: longest period"),
    "identities": gettext_lazy("with names"),
    "identity": gettext_lazy("column that identifies a person"),
    "issue": gettext_lazy("number of the code"),
    "key": gettext_lazy("key"),
    "kind": gettext_lazy("kind"),
    "label": gettext_lazy("label"),
    "language": gettext_lazy("language"),
    "last": gettext_lazy("last day"),
    "limit": gettext_lazy("limit"),
    "message platforms get access codes": gettext_lazy(
        "message platforms get access codes"
    ),
    "message platforms get names": gettext_lazy("message platforms get names"),
    "minimum group in exports": gettext_lazy("minimum group in exports"),
    "moved": gettext_lazy("moved"),
    "of": gettext_lazy("counted are"),
    "offered in": gettext_lazy("offered in"),
    "opens": gettext_lazy("opens"),
    "panel": gettext_lazy("panel"),
    "parent": gettext_lazy("parents"),
    "places": gettext_lazy("places"),
    "reason": gettext_lazy("reason"),
    "recipients": gettext_lazy("recipients"),
    "rejected": gettext_lazy("rejected rows"),
    "requested by": gettext_lazy("requested by"),
    "requested on": gettext_lazy("requested on"),
    "respondents": gettext_lazy("people"),
    "response rates by": gettext_lazy("response rates by"),
    "responses": gettext_lazy("answers"),
    "roster": gettext_lazy("roster"),
    "rows": gettext_lazy("rows"),
    "schools": gettext_lazy("schools"),
    "sha256": gettext_lazy("fingerprint of the file"),
    "starts": gettext_lazy("starts"),
    "stays": gettext_lazy("record that stays"),
    "student": gettext_lazy("students"),
    "subgroups": gettext_lazy("subgroups"),
    "survey": gettext_lazy("survey"),
    "teacher": gettext_lazy("teachers"),
    "texts": gettext_lazy("texts"),
    "title": gettext_lazy("title"),
    "unchanged": gettext_lazy("unchanged"),
    "version": gettext_lazy("version"),
    "wave": gettext_lazy("season"),
    "weekend": gettext_lazy("weekend"),
    "window": gettext_lazy("time of the scan"),
    "withdrawn": gettext_lazy("withdrawn"),
}


def register() -> None:
    add_words(WORDS)
    for sentences in (PEOPLE, ROSTERS, SURVEYS, MESSAGES):
        add_sentences(sentences)
    add_sentences(VIEWS, are_views=True)
    add_subjects("survey.respondent", Subjects(people_labels, gettext_noop("a person")))
    add_subjects("survey.administration", Subjects(administration_labels, ""))


def people_labels(permissions: Permissions, ids: Collection[int]) -> dict[int, Label]:
    """Return the names of the people whom the user may see. 1 statement."""
    schools = permissions.schools(Capability.SEE_IDENTITIES)
    people = Respondent.objects.filter(pk__in=ids, school__in=schools)
    rows = people.select_related("identity", "administration__published__survey")
    labels = {}
    for person in rows.defer(
        "administration__published__definition",
        "administration__published__survey__source",
    ):
        identity = getattr(person, "identity", None)
        if identity is None:
            continue
        name = f"{identity.given_name} {identity.family_name}".strip()
        labels[person.pk] = Label(
            name or identity.external_id,
            reverse("people_detail", args=[person.administration_id, person.pk]),
            context=person.administration.title,
            is_name=True,
        )
    return labels


def administration_labels(
    permissions: Permissions, ids: Collection[int]
) -> dict[int, Label]:
    """Return titles, which readers of the entries may know. 1 statement.

    1 more if some were removed: the entry about that has the title.
    """
    rows = Administration.objects.filter(pk__in=ids).select_related("published__survey")
    titled = rows.defer("published__definition", "published__survey__source")
    labels = {row.pk: Label(row.title) for row in titled}
    if removed := set(ids) - labels.keys():
        entries = AuditEntry.objects.filter(
            kind="survey.administration",
            subject_id__in=removed,
            action="remove administration",
        )
        labels |= {
            entry.subject_id: Label(entry.before["title"])
            for entry in entries
            if entry.subject_id
        }
    return labels
