"""Decide on which nodes of a Citus cluster each table lies, and write the SQL for it.

Every model has to be here: a test compares the two. docs/decisions/0118-citus-layout.md
gives the reasons and prices. One primary needs none of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

from django.apps import apps

from survey.database.sql_files import read_sql


class Place(Enum):
    """Where the rows of a table lie."""

    DISTRIBUTED = "in shards, by a column"
    REFERENCE = "a copy on every node"
    LOCAL = "on the coordinator"


@dataclass(frozen=True, slots=True)
class Layout:
    place: Place
    # The distribution key.
    column: str = ""
    reason: str = ""


def by_respondent(column: str, reason: str) -> Layout:
    return Layout(Place.DISTRIBUTED, column, reason)


# Many rows for each person, or a row that page saves, logins and finishing read.
DISTRIBUTED = {
    "survey_respondent": by_respondent("id", "each save locks its own row"),
    "survey_response": by_respondent("respondent_id", "what page saves write"),
    "survey_devicelogin": by_respondent("respondent_id", "a login writes it"),
    "survey_countedgroup": by_respondent("respondent_id", "joined with all people"),
}
# Joined with distributed tables in statements of one person, and seldom written: a
# write waits for all nodes.
REFERENCE = {
    "survey_administration": Layout(
        Place.REFERENCE, reason="each save reads when it closes"
    ),
}
# Staff's work: some rows for each place, file, survey or staff member. Tables with a
# row for each person stand here too where a unique key or a trigger crosses the
# distribution key; the reason says which.
LOCAL_BY_NECESSITY = {
    "survey_identity": "unique by administration, district and ID; read by staff alone",
    "survey_optout": "a bigint key of its own; a few for each school",
    "survey_consent": "a bigint key of its own; written by staff",
    "survey_recordjoin": "names two respondents, who lie in two shards",
    "survey_pairchoice": "a bigint key of its own; deleted after a merge",
    "survey_opencodeseat": "a free seat is looked for without a respondent",
    "survey_emaildelivery": "unique by step and person; written by the worker alone",
    "survey_rosterchange": "keyed by upload; deleted after 30 days",
    "survey_rostermissing": "keyed by upload; deleted once applied",
    "accounts_school": "a trigger writes the listing of each school",
    "accounts_schoollisting": "written by that trigger",
}
STAFF = Layout(Place.LOCAL, reason="staff's work, some rows for each place")
LOCAL_TABLES = """
    account_emailaddress account_emailconfirmation accounts_auditentry
    accounts_district accounts_districtalias accounts_failedtries
    accounts_invitation accounts_letter accounts_logo accounts_membership
    accounts_placesettings accounts_schoolalias accounts_schoolword accounts_user
    accounts_user_groups accounts_user_user_permissions auth_group
    auth_group_permissions auth_permission django_admin_log django_content_type
    django_session mfa_authenticator reports_calibration reports_countedschool
    reports_curve reports_export reports_export_administrations reports_formerpeople
    reports_graderate reports_groupresults reports_panelproject reports_publication
    reports_publishedplace reports_releaseditem reports_releasedsentence
    reports_reportarchive reports_resultsrollup reports_rollup reports_schoolrate
    reports_scorerow reports_scoring survey_administration_districts
    survey_administration_schools survey_backuprun survey_block survey_cardset
    survey_dayoff
    survey_emailschedule survey_emailstep survey_emailtemplate survey_feedscan
    survey_feedstage survey_item survey_job survey_listedid survey_messageplatform
    survey_messageplatformkey survey_opencode survey_opencodebatch
    survey_opencodefile survey_opendecline survey_option survey_optionset survey_page
    survey_placemerge survey_publishedsurvey survey_retirement survey_rosterfeed
    survey_rosterfeed_administrations survey_rosterlayoutchoice
    survey_rosterrejection survey_rosterschool survey_rosterundo survey_rosterupload
    survey_schoolcount survey_schoolimport survey_suppressedaddress survey_survey
    survey_surveymeasures survey_surveyupload survey_wave usersessions_usersession
"""
LAYOUTS: dict[str, Layout] = {
    **DISTRIBUTED,
    **REFERENCE,
    **{
        table: Layout(Place.LOCAL, reason=reason)
        for table, reason in LOCAL_BY_NECESSITY.items()
    },
    **dict.fromkeys(LOCAL_TABLES.split(), STAFF),
}
SAVE_FUNCTION = (
    "public.survey_save_page(bigint, bigint, integer, bigint, bigint[], text[], text[],"
    " bigint[], boolean)"
)
ARGUMENT = "person"
HOLD_FUNCTION = "public.survey_hold_shard(bigint)"


def distribution_sql() -> Iterator[str]:
    """Yield the statements that distribute a migrated database, for one transaction.

    The database is one of a coordinator that knows its workers.
    """
    # Citus would otherwise use several connections to a node, and refuse to change
    # tables that depend on each other.
    yield "SET LOCAL citus.multi_shard_modify_mode TO 'sequential';"
    yield "SET LOCAL client_min_messages TO warning;"
    yield "SET LOCAL statement_timeout TO 0; SET LOCAL lock_timeout TO 0;"
    distributed = ", ".join(f"'{table}'" for table in DISTRIBUTED)
    yield read_sql("drop_crossing_constraints").replace("{distributed}", distributed)
    for table in REFERENCE:
        yield f"SELECT create_reference_table('public.{table}');"
    for table, layout in DISTRIBUTED.items():
        beside = "none" if table == "survey_respondent" else "public.survey_respondent"
        yield (
            f"SELECT create_distributed_table('public.{table}', '{layout.column}',"
            f" colocate_with => '{beside}');"
        )
    yield read_sql("code_routes")
    yield "SELECT create_distributed_table('public.survey_coderoute', 'digest');"
    yield read_sql("hold_shard")
    yield f"ALTER FUNCTION {HOLD_FUNCTION} OWNER TO groundswell;"
    yield f"SELECT create_distributed_function('{HOLD_FUNCTION}');"
    yield read_sql("save_page")
    yield f"ALTER FUNCTION {SAVE_FUNCTION} OWNER TO groundswell;"
    yield (
        f"SELECT create_distributed_function('{SAVE_FUNCTION}', '{ARGUMENT}',"
        " colocate_with => 'public.survey_respondent');"
    )
    yield read_sql("functions_on_cluster")
    yield read_sql("restart_sequences")
    yield read_sql("role_settings")


def dropped_references() -> list[tuple[str, str]]:
    """Return tables and columns whose foreign keys to people a cluster drops."""
    fields: list[Any] = [
        field for model in apps.get_models() for field in model._meta.local_fields
    ]
    return [
        (field.model._meta.db_table, field.column)
        for field in fields
        if field.many_to_one or field.one_to_one
        if field.db_constraint
        if field.related_model._meta.db_table == "survey_respondent"
    ]
