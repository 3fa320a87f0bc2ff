"""Make the reports of all schools of a district or the state as one ZIP file.

Reports are read, rendered and added batch by batch; the PDFs of each batch are made
by a process that ends with it. So memory is the same for ten schools and for 4,000.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

from django.db import transaction
from django.http import HttpRequest
from django.utils import translation
from django.utils.text import slugify
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import audit
from accounts.csv_injection import escape_formula
from accounts.models import District, School, User
from accounts.permissions import Permissions, Places
from accounts.place_settings import Brands
from reports.models import GroupResults, ReportArchive, SchoolRate
from reports.rates.visible_rates import rates_for, school_line
from reports.releases.levels import LEVELS
from reports.results.access import capability_for, is_shared, results_for
from reports.school_report.pdf import NoPdf, html_of, pdf_files
from reports.school_report.report import (
    SchoolReport,
    SchoolReports,
    report_language_for,
)
from reports.scores.visible import decided
from survey.models import Administration
from survey.work.jobs import JobRefused, Progress
from survey.work.requested_files import (
    keep_files,
    makes,
    order,
    refuse_above_quota,
)

# WeasyPrint takes half a second to start and some megabytes for each report. A job
# that is cancelled ends after its batch.
BATCH = 20
INDEX = "index.csv"
LONGEST_NAME = 60
PERMISSIONS_CHANGED = gettext_lazy(
    "Your permissions or the results have changed since you requested these reports,"
    " so no file was made. Request them again: you will get what you may see now."
)
NO_REPORTS = gettext_lazy(
    "No school here has a report: none has reached its threshold, or all results are"
    " hidden. The table of scores says what each school needs."
)
NO_PDF = gettext_lazy(
    "The PDF files could not be made. Try again later, and contact your engineers if"
    " it fails again."
)


@transaction.atomic
def request_archive(
    *,
    administration: Administration,
    district: District | None,
    language: str,
    by: User,
    request: HttpRequest | None = None,
) -> ReportArchive:
    """Record an archive and start its job; the caller checks permissions.

    Raises QuotaExceeded if the user has too many unfinished files, or too large ones.
    """
    refuse_above_quota(by)
    archive = order(
        ReportArchive(
            administration=administration, district=district, language=language, by=by
        )
    )
    audit.record(
        "ask for school reports",
        by=by,
        request=request,
        subject=archive,
        district=district,
        after={"administration": administration.name, "language": language},
    )
    return archive


def covers(places: Places, district_id: int | None) -> bool:
    """Return whether a district, or the state without one, is in these places."""
    return places.state if district_id is None else places.has_district(district_id)


def allowed_archives(
    permissions: Permissions, archives: Sequence[ReportArchive]
) -> set[int]:
    """Return the keys of archives that these permissions, as of now, cover.

    They cover each wave in a trend as well, and the state if schools are compared with
    it. 1 statement.
    """
    waves = {
        administration.pk: administration
        for administration in results_for(permissions)
        .filter(pk__in={key for archive in archives for key in _waves_in(archive)})
        .select_related("results_roll_up")
        .only("pk", "results_roll_up__shared_at")
    }
    places = {key: permissions.places(capability_for(waves[key])) for key in waves}
    return {
        archive.pk
        for archive in archives
        if all(
            key in places and covers(places[key], archive.district_id)
            for key in _waves_in(archive)
        )
        and (
            not archive.shows_state
            or places[archive.administration_id].state
            or is_shared(waves[archive.administration_id])
        )
    }


def _waves_in(archive: ReportArchive) -> set[int]:
    return {archive.administration_id, *archive.waves}


def has_reports(
    permissions: Permissions, administration: Administration, district: District | None
) -> bool:
    """Return whether a school has reached its threshold and is shown. 2 statements."""
    rows = rates_for(permissions, administration).select_related("school")
    if district is not None:
        rows = rows.filter(district=district)
    lines = [school_line(row, administration) for row in rows]
    shown = GroupResults.objects.filter(
        administration=administration,
        level=LEVELS.SCHOOL,
        attribute="",
        place_id__in=[line.school.pk for line in lines if line.is_reached],
    )
    return decided(shown).exists()


@makes(ReportArchive, "by", "district", waits=True)
def make_archive(archive: ReportArchive, folder: Path, progress: Progress) -> None:
    permissions = Permissions(archive.by)
    # The user may have lost the role since requesting it.
    if not allowed_archives(permissions, [archive]):
        raise JobRefused(PERMISSIONS_CHANGED)
    administration = (
        results_for(permissions)
        .select_related("published__survey", "wave", "results_roll_up")
        .defer("published__definition", "published__survey__source")
        .get(pk=archive.administration_id)
    )
    path = folder / "reports.zip"
    with translation.override(report_language_for(archive.language)):
        reader = SchoolReports(permissions, administration, archive.language)
        reader.leave_out_waves(archive.district_id)
    writer = ArchiveWriter(archive, reader)
    try:
        writer.write(path, progress)
    except NoPdf as error:
        raise JobRefused(NO_PDF) from error
    if not writer.reports:
        raise JobRefused(NO_REPORTS)
    keep_files(
        archive,
        {"file_name": (path, ".zip")},
        progress,
        after={"schools": writer.schools, "reports": writer.reports},
        waves=[wave.pk for wave in [*reader.waves, administration]],
        shows_state=reader.shows_state,
        schools=writer.schools,
        reports=writer.reports,
    )
    # Not with `begin_step`, which raises if someone cancels: the file is kept.
    words = _("Ready: reports of %(reports)s of %(schools)s schools.")
    progress.message = words % {
        "reports": f"{writer.reports:,}",
        "schools": f"{writer.schools:,}",
    }
    progress.done = progress.total = writer.schools


@dataclass
class ArchiveWriter:
    """Writes the ZIP file: a PDF for each school with a report, and an index."""

    archive: ReportArchive
    reader: SchoolReports
    brands: Brands = field(default_factory=Brands)
    schools: int = 0
    reports: int = 0

    def write(self, path: Path, progress: Progress) -> None:
        """Write a file for each report. 6 statements for each batch of schools."""
        rates = SchoolRate.objects.filter(administration=self.reader.administration)
        if self.archive.district_id:
            rates = rates.filter(school__district=self.archive.district_id)
        ordered = rates.order_by("school__district__name", "school__name", "school_id")
        keys = list(ordered.values_list("school_id", flat=True))
        progress.begin_step(_("Making the reports."), total=len(keys))
        index = path.with_name(INDEX)
        # PDF files are compressed already.
        with (
            ZipFile(path, "w", ZIP_STORED) as zip_file,
            # With a byte order mark, so that Excel shows accents correctly.
            index.open("w", encoding="utf-8-sig", newline="") as file,
        ):
            rows = csv.writer(file)
            columns = "district", "district code", "school", "code", "file", "reason"
            rows.writerow(columns)
            for start in range(0, len(keys), BATCH):
                batch = keys[start : start + BATCH]
                for row in self._write_batch(zip_file, batch):
                    rows.writerow([escape_formula(cell) for cell in row])
                progress.advance(len(batch))
            file.flush()
            zip_file.write(index, INDEX, ZIP_DEFLATED)

    def _write_batch(
        self, zip_file: ZipFile, keys: Sequence[int]
    ) -> Iterator[Sequence[str]]:
        """Add the reports of a batch, and yield a row of the index for each school."""
        by_key = School.objects.select_related("district").in_bulk(keys)
        schools = [by_key[key] for key in keys if key in by_key]
        language = self.archive.language
        with translation.override(report_language_for(language)):
            reports = self.reader.of(schools, with_questions=True)
            documents = {
                str(report.school.pk): html_of(
                    report, self.brands.of(report.school.district_id)
                )
                for report in reports
                if report.has_figures
            }
        files = pdf_files(documents) if documents else {}
        used = set(zip_file.namelist())
        for report in reports:
            name = ""
            content = files.get(str(report.school.pk))
            if content is not None:
                name = file_name(report, used)
                used.add(name)
                zip_file.writestr(name, content)
                self.reports += 1
            self.schools += 1
            school = report.school
            district = school.district
            place = (district.name, district.code, school.name, school.code)
            yield *place, name, report.reason


def file_name(report: SchoolReport, used: set[str]) -> str:
    """Return a name that every system can store, sorted by district and school."""
    school = report.school
    folder, base = _name_of(school.district), _name_of(school)
    name = f"{folder}/{base}-{slugify(report.language)}.pdf"
    # Codes that differ in punctuation alone.
    if name in used:
        name = name.removesuffix(".pdf") + f"-{school.pk}.pdf"
    return name


def _name_of(place: District | School) -> str:
    """Return its name and code as a part of a path, once if both are the same."""
    name, code = slugify(place.name[:LONGEST_NAME]), slugify(place.code)
    parts = [part for part in dict.fromkeys((name, code)) if part]
    return "-".join(parts) or f"{type(place).__name__.lower()}-{place.pk}"
