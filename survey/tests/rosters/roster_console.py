"""A client of the console that uploads rosters, and the people in them."""

from __future__ import annotations

from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from accounts.tests.logging_in import log_in
from survey.models import Identity, Respondent, RosterUpload
from survey.work.files import path_of

HEADER = "district,school,student ID,given name,family name,grade,class"
MAYA = "riverside,lincoln,00123,Maya,Lopez,7,7B"
ALI = "riverside,lincoln,00124,Ali,Diaz,7,7A"
ZOE = "riverside,washington,00125,Zoe,Kim,8,8C"
NOOR = "lakeside,roosevelt,00123,Noor,Haddad,8,8A"
# Rows without an ID, with an unknown grade, and with a formula as a name.
BAD = [
    MAYA.replace("00123", ""),
    ALI.replace(",7,", ",77,"),
    ALI.replace("00124", "00126").replace("Ali", "=1+1").replace(",7,", ",x,"),
]


class ConsoleClient:
    """A user's browser in the console; runs the jobs that its requests start."""

    def __init__(self, user, capture_on_commit):
        self.client = log_in(Client(), user)
        self.capture_on_commit = capture_on_commit

    def post(self, address, **data):
        with self.capture_on_commit(execute=True):
            return self.client.post(address, data)

    def get(self, address, **data):
        return self.client.get(address, data)

    def upload(self, administration, *lines, name="roster.csv", **data):
        content = "\n".join(lines).encode() if lines else data.pop("content")
        response = self.post(
            f"/console/administrations/{administration.pk}/roster/",
            file=SimpleUploadedFile(name, content),
            **{"complete_for": "schools", **data},
        )
        assert response.status_code == 302, errors_of(response)
        # /console/rosters/1/ or, to choose columns, /console/rosters/1/columns/
        return RosterUpload.objects.get(pk=int(response.url.split("/")[3]))

    def confirm(self, upload, typed=""):
        response = self.post(
            f"/console/rosters/{upload.pk}/confirm/",
            seen=upload.withdrawn,
            typed=typed,
        )
        upload.refresh_from_db()
        return response

    def apply(self, administration, *lines, typed="", **data):
        upload = self.upload(administration, *lines, **data)
        self.confirm(upload, typed=typed or str(upload.withdrawn))
        assert upload.state == "applied", upload.message
        return upload


def errors_of(response):
    return response.context["form"].errors if response.context else response.content


def counts(upload):
    names = ("added", "changed", "moved", "back", "withdrawn", "unchanged", "rejected")
    return {name: upload.report[name] for name in names if upload.report[name]}


def reasons(upload):
    return [(cell.row, cell.column, cell.reason) for cell in upload.rejections.all()]


def person(external_id, district="riverside"):
    return Respondent.objects.get(
        identity__external_id=external_id, identity__district__code=district
    )


def all_people():
    return list(Respondent.objects.order_by("pk").values()) + list(
        Identity.objects.order_by("pk").values()
    )


def roster_folder():
    return path_of("rosters/any").parent
