"""Decide which scans wait for a person instead of being applied."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.translation import gettext as _

from survey.models import RosterUpload
from survey.people.rosters.missing_people import many_withdrawn

# Rejected rows withdraw nobody, but so many mean that something has changed in the
# source. A few are normal in every school.
MOST_REJECTED = 10
MOST_REJECTED_SHARE = 0.02
# In a district whose people are known, more new people than known ones mean that
# its system numbers them anew: everybody would exist twice.
MOST_NEW_SHARE = 0.5
# A district opens a school now and then; more unknown ones mean other codes.
MOST_NEW_SCHOOLS = 2
MOST_NEW_SCHOOLS_SHARE = 0.1


def reason_to_hold(uploads: Sequence[RosterUpload]) -> str:
    """Return why these checked uploads must be confirmed, or an empty string."""
    if any(upload.must_be_typed for upload in uploads):
        # Of all administrations, as the confirmation asks for this number.
        return many_withdrawn(sum(upload.withdrawn for upload in uploads))
    reasons = (_reason(upload) for upload in uploads)
    return next(filter(None, reasons), "")


def _reason(upload: RosterUpload) -> str:
    rows = upload.report.get("rows", 0)
    if upload.rejected > max(MOST_REJECTED, rows * MOST_REJECTED_SHARE):
        return _("%(rejected)s of %(rows)s rows would be rejected.") % {
            "rejected": f"{upload.rejected:,}",
            "rows": f"{rows:,}",
        }
    schools = list(upload.schools.all())
    known = [school for school in schools if school.people]
    if not known:
        # Nobody of this district is invited yet.
        return ""
    added = upload.report.get("added", 0)
    people = sum(school.people for school in known)
    if added > people * MOST_NEW_SHARE:
        return _(
            "%(added)s people are unknown, and %(people)s are known. If the"
            " source has changed its IDs, change “What identifies a person”"
            " in the roster sync's settings first: otherwise everybody would be"
            " added a second time."
        ) % {"added": f"{added:,}", "people": f"{people:,}"}
    new = [school for school in schools if school.school_id is None]
    if len(new) > max(MOST_NEW_SCHOOLS, len(schools) * MOST_NEW_SCHOOLS_SHARE):
        names = ", ".join(school.name for school in new[:3])
        return _("%(new)s schools are unknown, such as %(names)s.") % {
            "new": f"{len(new):,}",
            "names": names,
        }
    renamed = upload.report.get("renamed", ())
    if len(renamed) > max(MOST_NEW_SCHOOLS, len(schools) * MOST_NEW_SCHOOLS_SHARE):
        return _("%(renamed)s schools have other names than before.") % {
            "renamed": f"{len(renamed):,}"
        }
    return ""
