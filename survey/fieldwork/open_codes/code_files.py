"""Files with open codes: ordered by staff, made by a job, deleted after a week."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.csv_injection import escape_formula
from accounts.models import District, School, User
from accounts.permissions import Capability, Permissions
from accounts.place_settings import Brands
from accounts.time_zones import zone_of
from survey.fieldwork.login_cards.card_text import card_language, card_languages
from survey.fieldwork.open_codes.codes import code_of, link_of
from survey.models import Administration, OpenCode, OpenCodeFile
from survey.people.access_codes import format_code
from survey.taking.published import published_survey
from survey.work.job_turns import refuse_many
from survey.work.jobs import JobRefused, Progress
from survey.work.requested_files import keep_files, makes, order

# All pages of a file are in memory until it is written.
MOST_PAGES = 1_000
TOO_MANY = gettext_lazy(
    "There are more than %(most)s codes, which is too many pages"
    " for one file. Make a file for each district."
)
NO_CODES = gettext_lazy(
    "There is no code here that could be used, so there is nothing to print."
)
HEADER = ("school", "label", "language", "link", "code", "opens", "closes")
Format = OpenCodeFile.Format


def files_for(
    permissions: Permissions, administration: Administration
) -> QuerySet[OpenCodeFile]:
    """Return the files whose codes this user may all see."""
    places = permissions.places(Capability.MANAGE_ROSTERS)
    within = OpenCodeFile.within(places)
    return OpenCodeFile.objects.filter(within, administration=administration)


def codes_in(file: OpenCodeFile) -> QuerySet[OpenCode]:
    """Return the codes that the file holds, school by school."""
    codes = OpenCode.objects.filter(administration=file.administration, revoked_at=None)
    if file.open_code_id:
        codes = codes.filter(pk=file.open_code_id)
    elif file.school_id:
        codes = codes.filter(school=file.school_id)
    elif file.district_id:
        codes = codes.filter(school__district=file.district_id)
    return codes.select_related("school__district", "administration").order_by(
        "school__district__name", "school__name", "school", "pk"
    )


@transaction.atomic
def order_file(
    *,
    administration: Administration,
    by: User,
    format: str,
    open_code: OpenCode | None = None,
    school: School | None = None,
    district: District | None = None,
    language: str = "",
    marked: bool = False,
) -> OpenCodeFile:
    """Start the job that makes a file. Raises `job_turns.TooManyJobs`."""
    refuse_many(by)
    file = OpenCodeFile(
        administration=administration,
        open_code=open_code,
        school=open_code.school if open_code else school,
        district=district,
        format=format,
        language=language,
        marked=marked,
        by=by,
    )
    return order(file)


@makes(
    OpenCodeFile, "administration__published", "administration__district", "open_code"
)
def make_file(file: OpenCodeFile, folder: Path, progress: Progress) -> None:
    codes = codes_in(file)
    count = codes.count()
    if not count:
        raise JobRefused(str(NO_CODES))
    is_list = file.format == Format.CSV
    if not is_list and count > MOST_PAGES:
        raise JobRefused(TOO_MANY % {"most": f"{MOST_PAGES:,}"})
    progress.begin_step(_("Preparing the file"), total=count)
    write, suffix = (write_csv, ".csv") if is_list else (write_pdf, ".pdf")
    path = folder / "codes"
    write(file, codes, path, progress)
    keep_files(file, {"file_name": (path, suffix)}, progress, codes=count)


def write_pdf(
    file: OpenCodeFile,
    codes: QuerySet[OpenCode],
    path: Path,
    progress: Progress,
) -> None:
    # Only workers draw: the other processes save the memory of these libraries.
    from survey.fieldwork.login_cards.fonts import printable
    from survey.fieldwork.open_codes.paper import CodePage, draw_pages

    administration = file.administration
    published = published_survey(administration.published_id)
    address = settings.PUBLIC_ADDRESS.partition("://")[2]
    offered = card_languages(administration)
    first = offered[0]
    brands = Brands()

    def pages() -> Iterator[CodePage]:
        for code in codes:
            # A school may have chosen another first language.
            language = card_language(code.language) or first
            second = file.language if file.language in offered else language
            languages = dict.fromkeys((language, second))
            opens_at, closes_at = code.window
            yield CodePage(
                school=code.school.name,
                owner=administration.district.name if administration.district else "",
                role=administration.role,
                # Without a font for it, boxes would be printed.
                titles={
                    tag: printable(published.title_in(tag)) or "" for tag in languages
                },
                code=format_code(code_of(code)),
                link=link_of(code),
                address=f"{address}/open/",
                opens_at=opens_at,
                closes_at=closes_at,
                zone=zone_of(code.school.district),
                limit=code.limit,
                brand=brands.of(code.school.district_id),
            )

    drawn = draw_pages(
        pages(),
        title=str(file),
        languages=[first],
        is_poster=file.format == Format.POSTER,
        advance=progress.advance,
    )
    path.write_bytes(drawn)


def write_csv(
    file: OpenCodeFile,
    codes: QuerySet[OpenCode],
    path: Path,
    progress: Progress,
) -> None:
    with path.open("w", encoding=file.encoding, newline="") as text:
        writer = csv.writer(text)
        writer.writerow(HEADER)
        for code in codes.iterator(chunk_size=1000):
            zone = zone_of(code.school.district)
            window = [f"{at.astimezone(zone):%Y-%m-%d %H:%M}" for at in code.window]
            cells = (code.school.name, code.label, code.language)
            letters = format_code(code_of(code))
            writer.writerow(
                [*map(escape_formula, cells), link_of(code), letters, *window]
            )
            progress.advance()
