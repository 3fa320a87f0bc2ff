"""The files of OneRoster 1.1 and 1.2, and the columns of each that are kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from survey.models import Role
from survey.people.rosters.unreadable import RosterUnreadable


class OneRosterInvalid(RosterUnreadable):
    """Tell a person which file, line and column cannot be used, and why."""


@dataclass(frozen=True)
class Collection:
    """One kind of object: a CSV file of the ZIP, or an endpoint of the API."""

    name: str
    # Nothing else is stored: no passwords, phone numbers or user names.
    columns: tuple[str, ...]
    # Refused without these. The standard requires more columns, which decide
    # nothing here.
    required: tuple[str, ...]
    # Columns of the standard that are not needed.
    unused: tuple[str, ...] = ()

    @property
    def file_name(self) -> str:
        return f"{self.name}.csv"


def _collection(name: str, columns: str, required: str, unused: str = "") -> Collection:
    return Collection(
        name,
        ("sourcedId", "status", *columns.split()),
        ("sourcedId", *required.split()),
        ("dateLastModified", *unused.split()),
    )


# Required in users.csv of 1.1. In 1.2 they are in roles.csv.
ROLE_COLUMNS = ("role", "orgSourcedIds")
FLAGS = (
    "americanIndianOrAlaskaNative",
    "asian",
    "blackOrAfricanAmerican",
    "nativeHawaiianOrOtherPacificIslander",
    "white",
    "demographicRaceTwoOrMoreRaces",
    "hispanicOrLatinoEthnicity",
)
# Subgroup columns of the flat rows, under their OneRoster names. Place of birth
# is left out: together with the birth date it identifies people.
DEMOGRAPHICS = ("sex", *FLAGS, "countryOfBirthCode", "publicSchoolResidenceStatus")

_ALL = (
    _collection("orgs", "name type identifier parentSourcedId", "name type"),
    _collection(
        "users",
        "orgSourcedIds role userIds givenName familyName identifier email"
        " agentSourcedIds grades preferredGivenName preferredFamilyName"
        # Not in the standard, but in several vendors' files.
        " primaryOrgSourcedId language",
        "givenName familyName",
        "enabledUser username middleName sms phone password userMasterIdentifier"
        " preferredMiddleName resourceSourcedIds pronouns",
    ),
    _collection(
        "roles",
        "userSourcedId roleType role beginDate endDate orgSourcedId",
        "userSourcedId role orgSourcedId",
        "userProfileSourcedId",
    ),
    _collection(
        "academicSessions",
        "startDate endDate",
        "startDate endDate",
        "title type parentSourcedId schoolYear",
    ),
    _collection(
        "classes",
        "title classCode classType schoolSourcedId termSourcedIds",
        "title classType schoolSourcedId",
        "grades courseSourcedId location subjects subjectCodes periods",
    ),
    _collection(
        "enrollments",
        "classSourcedId schoolSourcedId userSourcedId role beginDate endDate",
        "classSourcedId userSourcedId role",
        "primary",
    ),
    _collection(
        "demographics",
        " ".join(("birthDate", *DEMOGRAPHICS)),
        "",
        "stateOfBirthAbbreviation cityOfBirth",
    ),
)
COLLECTIONS: Mapping[str, Collection] = {kind.name: kind for kind in _ALL}
# Files of the standard in which nothing says who is invited where.
_NOT_NEEDED = (
    "courses userProfiles resources classResources courseResources lineItems results"
    " categories userResources lineItemLearningObjectiveIds lineItemScoreScales"
    " resultLearningObjectiveIds resultScoreScales scoreScales"
)
NOT_NEEDED = frozenset(_NOT_NEEDED.split())
ORG_TYPES = ("department", "school", "district", "local", "state", "national")
DATES = frozenset(("beginDate", "endDate", "startDate"))

# Role of OneRoster, in lower case -> role of an administration. Others are not
# invited: a system administrator is often no person, and a relative is not
# responsible for the child.
_ROLES = {
    Role.STUDENT: "student",
    Role.TEACHER: (
        "teacher aide administrator proctor principal counselor siteadministrator"
        " districtadministrator"
    ),
    Role.PARENT: "parent guardian",
}
ROLE_OF: Mapping[str, str] = {
    word: str(role) for role, words in _ROLES.items() for word in words.split()
}

# Spellings seen in real files, without punctuation and case -> column.
ALIASES: Mapping[str, str] = {
    "sourceid": "sourcedId",
    # Of demographics.csv in version 1.0.
    "usersourcedid": "sourcedId",
    "grade": "grades",
    "orgsourcedid": "orgSourcedIds",
    "orgsourceid": "orgSourcedIds",
    "orgsourceids": "orgSourcedIds",
    "agentsourcedid": "agentSourcedIds",
    "agentsourceids": "agentSourcedIds",
    "agents": "agentSourcedIds",
    "firstname": "givenName",
    "lastname": "familyName",
    "emailaddress": "email",
    "preferredlanguage": "language",
    "homelanguage": "language",
    "primarylanguage": "language",
    "termsourcedid": "termSourcedIds",
    "schoolid": "schoolSourcedId",
    "dob": "birthDate",
    "dateofbirth": "birthDate",
    "gender": "sex",
    "parentid": "parentSourcedId",
}
