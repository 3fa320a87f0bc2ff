"""Addresses of the console pages of this app."""

from __future__ import annotations

from django.urls import path, register_converter

from survey.console import jobs
from survey.console.administrations import (
    devices,
    edit_views,
    modules,
    open_views,
    retention,
    waves,
)
from survey.console.administrations import views as administrations
from survey.console.calendar import views as calendar
from survey.console.emails import texts as email_texts
from survey.console.emails import views as emails
from survey.console.feeds import scan_views, window_views
from survey.console.feeds import views as feeds
from survey.console.login_cards import views as cards
from survey.console.merging import views as merging
from survey.console.merging.people import merge_people
from survey.console.message_platforms import views as platforms
from survey.console.open_codes import batches, files
from survey.console.open_codes import views as open_codes
from survey.console.people import urls as people
from survey.console.rosters import missing_people
from survey.console.rosters import views as rosters
from survey.console.rosters.columns import roster_columns
from survey.console.rosters.schools import roster_schools
from survey.console.rosters.undo import roster_undo
from survey.console.school_counts import views as counts
from survey.console.schools import views as schools
from survey.console.settings import place_views as place_pages
from survey.console.settings import public_pages
from survey.console.settings import retention as place_retention
from survey.console.settings import views as settings
from survey.console.settings.scope import PlaceConverter
from survey.console.survey_day import views as survey_day
from survey.console.surveys import (
    bank,
    check,
    comments,
    corrections,
    downloads,
    history,
    measures,
    preview,
    questionnaire,
    starting,
    text_files,
    texts,
    trial_link,
    upload,
)
from survey.console.surveys import views as surveys
from survey.console.surveys.editor import pasted_views as pasted
from survey.console.surveys.editor import presence
from survey.console.surveys.editor import views as editor

CARDS = "administrations/<int:pk>/cards/"
EMAILS = "administrations/<int:pk>/emails/"
OPEN_CODES = "administrations/<int:pk>/open-codes/"
FILES = f"{OPEN_CODES}files/"
SCAN = "feeds/<int:pk>/scans/<int:scan>/"
COUNTS = "administrations/<int:pk>/counts/"
TRIAL = "try/<str:token>/"

register_converter(PlaceConverter, "place")

urlpatterns = [
    path("settings/", settings.settings_home, name="settings_home"),
    path("settings/<place:place>/", settings.settings_place, name="settings_place"),
    path(
        "settings/<place:place>/contact/",
        settings.settings_contact,
        name="settings_contact",
    ),
    path(
        "settings/<place:place>/thresholds/",
        settings.settings_thresholds,
        name="settings_thresholds",
    ),
    path(
        "settings/<place:place>/minimum-group/",
        settings.settings_minimum_group,
        name="settings_minimum_group",
    ),
    path(
        "settings/<place:place>/time-zone/",
        settings.settings_time_zone,
        name="settings_time_zone",
    ),
    path(
        "settings/state/smallest-percentage/",
        settings.settings_coding_threshold,
        name="settings_coding_threshold",
    ),
    path("settings/state/help/", settings.settings_help, name="settings_help"),
    path(
        "settings/<place:place>/retention/",
        place_retention.settings_retention,
        name="settings_retention",
    ),
    path(
        "settings/state/pages/",
        public_pages.settings_public_pages,
        name="settings_public_pages",
    ),
    path(
        "settings/state/pages/<slug:kind>/<slug:language>/",
        public_pages.settings_public_page,
        name="settings_public_page",
    ),
    path(
        "settings/<place:place>/questions/",
        settings.settings_questions,
        name="settings_questions",
    ),
    path("settings/<place:place>/name/", settings.settings_name, name="settings_name"),
    path(
        "settings/<place:place>/rename/",
        place_pages.settings_rename,
        name="settings_rename",
    ),
    path(
        "settings/<place:place>/close/",
        place_pages.settings_close,
        name="settings_close",
    ),
    path("settings/calendar/", calendar.calendar_list, name="calendar_list"),
    path("settings/calendar/new/", calendar.calendar_add, name="calendar_add"),
    path(
        "settings/calendar/weekend/", calendar.calendar_weekend, name="calendar_weekend"
    ),
    path(
        "settings/calendar/us-holidays/",
        calendar.calendar_us_holidays,
        name="calendar_us_holidays",
    ),
    path(
        "settings/calendar/<int:pk>/remove/",
        calendar.calendar_remove,
        name="calendar_remove",
    ),
    path("settings/survey-day/", survey_day.survey_day, name="survey_day"),
    path("settings/survey-day/end/", survey_day.survey_day_end, name="survey_day_end"),
    *people.urlpatterns,
    # Login cards of an administration.
    path(CARDS, cards.cards_list, name="cards_list"),
    path(f"{CARDS}reissue/", cards.cards_reissue, name="cards_reissue"),
    path(f"{CARDS}<int:card_set>/", cards.cards_detail, name="cards_detail"),
    path(
        f"{CARDS}<int:card_set>/file/",
        cards.cards_download,
        name="cards_download",
    ),
    path(f"{CARDS}<int:card_set>/again/", cards.cards_again, name="cards_again"),
    # E-mails of an administration.
    path(EMAILS, emails.emails_detail, name="emails_detail"),
    path(f"{EMAILS}progress/", emails.emails_progress, name="emails_progress"),
    path(f"{EMAILS}plan/", emails.emails_plan, name="emails_plan"),
    path(f"{EMAILS}confirm/", emails.emails_confirm, name="emails_confirm"),
    path(f"{EMAILS}pause/", emails.emails_pause, name="emails_pause"),
    path(f"{EMAILS}resume/", emails.emails_resume, name="emails_resume"),
    path(f"{EMAILS}cancel/", emails.emails_cancel, name="emails_cancel"),
    path(
        f"{EMAILS}<int:step>/preview/",
        email_texts.emails_preview,
        name="emails_preview",
    ),
    path(
        f"{EMAILS}<int:step>/<slug:language>/",
        email_texts.emails_text,
        name="emails_text",
    ),
    path(
        f"{EMAILS}<int:step>/<slug:language>/test/",
        email_texts.emails_test,
        name="emails_test",
    ),
    # Open codes of an administration.
    path(OPEN_CODES, open_codes.open_codes_list, name="open_codes_list"),
    path(f"{OPEN_CODES}new/", open_codes.open_codes_new, name="open_codes_new"),
    path(f"{OPEN_CODES}all/", batches.open_codes_all, name="open_codes_all"),
    path(
        f"{OPEN_CODES}all/<int:batch>/",
        batches.open_codes_batch,
        name="open_codes_batch",
    ),
    path(
        f"{OPEN_CODES}all/<int:batch>/again/",
        batches.open_codes_batch_again,
        name="open_codes_batch_again",
    ),
    path(FILES, files.open_code_files, name="open_code_files"),
    path(f"{FILES}<int:code_file>/", files.open_code_file, name="open_code_file"),
    path(
        f"{FILES}<int:code_file>/file/",
        files.open_code_file_download,
        name="open_code_file_download",
    ),
    path(
        f"{FILES}<int:code_file>/again/",
        files.open_code_file_again,
        name="open_code_file_again",
    ),
    path(
        f"{OPEN_CODES}<int:open_code>/",
        open_codes.open_code_detail,
        name="open_code_detail",
    ),
    path(
        f"{OPEN_CODES}<int:open_code>/show/",
        open_codes.open_code_show,
        name="open_code_show",
    ),
    path(
        f"{OPEN_CODES}<int:open_code>/publish/",
        open_codes.open_code_publish,
        name="open_code_publish",
    ),
    path(
        f"{OPEN_CODES}<int:open_code>/revoke/",
        open_codes.open_code_revoke,
        name="open_code_revoke",
    ),
    path(
        f"{OPEN_CODES}<int:open_code>/replace/",
        open_codes.open_code_replace,
        name="open_code_replace",
    ),
    # Numbers of families or students, where there is no roster.
    path(COUNTS, counts.count_list, name="count_list"),
    path(f"{COUNTS}upload/", counts.count_upload, name="count_upload"),
    path(f"{COUNTS}save/", counts.count_upload_save, name="count_upload_save"),
    path(f"{COUNTS}template.csv", counts.count_template, name="count_template"),
    path(f"{COUNTS}<int:school_id>/", counts.count_change, name="count_change"),
    # Background jobs.
    path("jobs/<int:pk>/", jobs.job_progress, name="job_progress"),
    path("jobs/<int:pk>/cancel/", jobs.job_cancel, name="job_cancel"),
    path(
        "administrations/",
        administrations.administration_list,
        name="administration_list",
    ),
    path(
        "administrations/open/",
        open_views.administration_open,
        name="administration_open",
    ),
    path(
        "administrations/open/<str:draft>/<str:step>/",
        open_views.administration_open_step,
        name="administration_open_step",
    ),
    path(
        "administrations/<int:pk>/test-link/",
        trial_link.administration_test_link,
        name="administration_test_link",
    ),
    path(
        "surveys/<int:pk>/test-link/",
        trial_link.survey_test_link,
        name="survey_test_link",
    ),
    path(
        "administrations/<int:pk>/questionnaire/",
        questionnaire.administration_questionnaire,
        name="administration_questionnaire",
    ),
    path(f"{TRIAL}take/", trial_link.trial_take, name="trial_take"),
    path(
        f"{TRIAL}content/<slug:language>/<int:n>/",
        trial_link.trial_content,
        name="trial_content",
    ),
    path(
        f"{TRIAL}complete/",
        trial_link.trial_complete,
        name="trial_complete",
    ),
    path(
        "administrations/<int:pk>/devices/",
        devices.administration_devices,
        name="administration_devices",
    ),
    path(
        "administrations/<int:pk>/district-questions/",
        modules.administration_modules,
        name="administration_modules",
    ),
    path(
        "administrations/<int:pk>/change/",
        edit_views.administration_change,
        name="administration_change",
    ),
    path(
        "administrations/<int:pk>/close/",
        edit_views.administration_close,
        name="administration_close",
    ),
    path(
        "administrations/<int:pk>/reopen/",
        edit_views.administration_reopen,
        name="administration_reopen",
    ),
    path(
        "administrations/<int:pk>/remove/",
        edit_views.administration_remove,
        name="administration_remove",
    ),
    path(
        "administrations/<int:pk>/retention/",
        retention.administration_retention,
        name="administration_retention",
    ),
    path(
        "administrations/<int:pk>/hold/",
        retention.administration_hold,
        name="administration_hold",
    ),
    path(
        "administrations/<int:pk>/holds/<int:hold>/lift/",
        retention.administration_hold_lift,
        name="administration_hold_lift",
    ),
    path(
        "administrations/<int:pk>/destroy/<str:kind>/",
        retention.administration_destroy,
        name="administration_destroy",
    ),
    path("platforms/", platforms.platform_list, name="platform_list"),
    path("platforms/new/", platforms.platform_create, name="platform_create"),
    path("platforms/<int:pk>/", platforms.platform_detail, name="platform_detail"),
    path(
        "platforms/<int:pk>/keys/",
        platforms.platform_key_create,
        name="platform_key_create",
    ),
    path(
        "platforms/<int:pk>/keys/<int:key>/revoke/",
        platforms.platform_key_revoke,
        name="platform_key_revoke",
    ),
    path(
        "platforms/<int:pk>/people/<int:administration>.csv",
        platforms.platform_people,
        name="platform_people",
    ),
    path(
        "platforms/<int:pk>/remove/", platforms.platform_remove, name="platform_remove"
    ),
    # Feeds of rosters.
    path("feeds/", feeds.feed_list, name="feed_list"),
    path("feeds/window/", window_views.feed_window, name="feed_window"),
    path("feeds/new/", feeds.feed_create, name="feed_create"),
    path(
        "feeds/new/<int:district>/<slug:kind>/",
        feeds.feed_create_for,
        name="feed_create_for",
    ),
    path("feeds/<int:pk>/", feeds.feed_detail, name="feed_detail"),
    path("feeds/<int:pk>/change/", feeds.feed_change, name="feed_change"),
    path("feeds/<int:pk>/pause/", feeds.feed_pause, name="feed_pause"),
    path("feeds/<int:pk>/resume/", feeds.feed_resume, name="feed_resume"),
    path("feeds/<int:pk>/remove/", feeds.feed_remove, name="feed_remove"),
    path("feeds/<int:pk>/accept-key/", feeds.feed_accept_key, name="feed_accept_key"),
    path("feeds/<int:pk>/try/", scan_views.feed_try, name="feed_try"),
    path("feeds/<int:pk>/scan/", scan_views.feed_scan_start, name="feed_scan_start"),
    path(SCAN, scan_views.feed_scan, name="feed_scan"),
    path(f"{SCAN}confirm/", scan_views.feed_scan_confirm, name="feed_scan_confirm"),
    path(f"{SCAN}cancel/", scan_views.feed_scan_cancel, name="feed_scan_cancel"),
    path("waves/", waves.wave_list, name="wave_list"),
    path("waves/new/", waves.wave_create, name="wave_create"),
    path("waves/<int:pk>/rename/", waves.wave_rename, name="wave_rename"),
    path("waves/<int:pk>/delete/", waves.wave_delete, name="wave_delete"),
    path("surveys/", surveys.survey_list, name="survey_list"),
    path("surveys/upload/", upload.survey_upload, name="survey_upload"),
    path("surveys/new/", starting.survey_new, name="survey_new"),
    path("surveys/new/empty/", starting.survey_new_empty, name="survey_new_empty"),
    path(
        "surveys/new/template/",
        starting.survey_new_template,
        name="survey_new_template",
    ),
    path("surveys/new/paste/", starting.survey_new_paste, name="survey_new_paste"),
    path("surveys/new/copy/", starting.survey_new_copy, name="survey_new_copy"),
    path("surveys/<int:pk>/copy/", starting.survey_copy, name="survey_copy"),
    path(
        "surveys/<int:pk>/new-version/",
        starting.survey_new_version,
        name="survey_new_version",
    ),
    path(
        "surveys/uploads/<int:pk>/",
        upload.survey_uploaded,
        name="survey_uploaded",
    ),
    path(
        "surveys/uploads/<int:pk>/without/",
        upload.survey_upload_without,
        name="survey_upload_without",
    ),
    path(
        "surveys/uploads/<int:pk>/problems.csv",
        upload.survey_upload_problems,
        name="survey_upload_problems",
    ),
    path(
        "surveys/uploads/<int:pk>/report/",
        upload.survey_upload_report,
        name="survey_upload_report",
    ),
    path(
        "surveys/uploads/<int:pk>/report.csv",
        upload.survey_upload_report_file,
        name="survey_upload_report_file",
    ),
    path("surveys/bank/", bank.bank_list, name="bank_list"),
    path("surveys/bank/<int:pk>/", bank.bank_question, name="bank_question"),
    path("surveys/bank/<int:pk>/version/", bank.bank_version, name="bank_version"),
    path("surveys/bank/<int:pk>/retire/", bank.bank_retire, name="bank_retire"),
    path("surveys/<int:pk>/to-bank/", bank.survey_to_bank, name="survey_to_bank"),
    path(
        "surveys/<int:pk>/edit/paste/",
        pasted.survey_edit_paste,
        name="survey_edit_paste",
    ),
    path("surveys/<int:pk>/edit/bank/", bank.survey_edit_bank, name="survey_edit_bank"),
    path("surveys/<int:pk>/", surveys.survey_detail, name="survey_detail"),
    path("surveys/<int:pk>/edit/", editor.survey_edit, name="survey_edit"),
    path(
        "surveys/<int:pk>/edit/canvas/",
        editor.survey_edit_canvas,
        name="survey_edit_canvas",
    ),
    path(
        "surveys/<int:pk>/edit/change/",
        editor.survey_edit_change,
        name="survey_edit_change",
    ),
    path(
        "surveys/<int:pk>/variables/",
        surveys.survey_variables,
        name="survey_variables",
    ),
    path(
        "surveys/<int:pk>/original/", downloads.survey_original, name="survey_original"
    ),
    path("surveys/<int:pk>/json/", downloads.survey_json, name="survey_json"),
    path(
        "surveys/<int:pk>/questionnaire/",
        downloads.survey_questionnaire,
        name="survey_questionnaire",
    ),
    path("surveys/<int:pk>/compare/", history.survey_compare, name="survey_compare"),
    path("surveys/<int:pk>/check/", check.survey_check, name="survey_check"),
    path(
        "surveys/<int:pk>/edit/history/",
        history.survey_edit_history,
        name="survey_edit_history",
    ),
    path(
        "surveys/<int:pk>/edit/history/compare/",
        history.survey_edit_compare,
        name="survey_edit_compare",
    ),
    path(
        "surveys/<int:pk>/edit/history/<int:number>/",
        history.survey_edit_restore,
        name="survey_edit_restore",
    ),
    path("surveys/<int:pk>/publish/", surveys.survey_publish, name="survey_publish"),
    path("surveys/<int:pk>/retire/", surveys.survey_retire, name="survey_retire"),
    path(
        "surveys/<int:pk>/bring-back/",
        surveys.survey_bring_back,
        name="survey_bring_back",
    ),
    path("surveys/<int:pk>/delete/", surveys.survey_delete, name="survey_delete"),
    path(
        "surveys/<int:pk>/correct/",
        corrections.survey_correct,
        name="survey_correct",
    ),
    path(
        "surveys/<int:pk>/correct/here/",
        texts.survey_correct_here,
        name="survey_correct_here",
    ),
    path(
        "surveys/<int:pk>/edit/texts/",
        texts.survey_edit_texts,
        name="survey_edit_texts",
    ),
    path(
        "surveys/edit/presence/<str:seat>/",
        presence.survey_edit_presence,
        name="survey_edit_presence",
    ),
    path(
        "surveys/<int:pk>/edit/comments/",
        comments.survey_edit_comments,
        name="survey_edit_comments",
    ),
    path(
        "surveys/<int:pk>/edit/comments/count/",
        comments.survey_edit_comments_count,
        name="survey_edit_comments_count",
    ),
    path(
        "surveys/<int:pk>/edit/comments/add/",
        comments.survey_edit_comments_add,
        name="survey_edit_comments_add",
    ),
    path(
        "surveys/<int:pk>/edit/comments/at/<slug:key>/",
        comments.survey_edit_comments_at,
        name="survey_edit_comments_at",
    ),
    path(
        "surveys/<int:pk>/edit/comments/<int:comment>/resolve/",
        comments.survey_edit_comments_resolve,
        name="survey_edit_comments_resolve",
    ),
    path(
        "surveys/<int:pk>/edit/texts/file/",
        text_files.survey_edit_texts_file,
        name="survey_edit_texts_file",
    ),
    path(
        "surveys/<int:pk>/edit/texts/upload/",
        text_files.survey_edit_texts_upload,
        name="survey_edit_texts_upload",
    ),
    path(
        "surveys/<int:pk>/edit/texts/upload/save/",
        text_files.survey_edit_texts_upload_save,
        name="survey_edit_texts_upload_save",
    ),
    path(
        "surveys/<int:pk>/edit/texts/undo/",
        text_files.survey_edit_texts_undo,
        name="survey_edit_texts_undo",
    ),
    path(
        "surveys/<int:pk>/edit/texts/languages/",
        text_files.survey_edit_texts_add,
        name="survey_edit_texts_add",
    ),
    path(
        "surveys/<int:pk>/edit/texts/languages/<slug:language>/remove/",
        text_files.survey_edit_texts_remove,
        name="survey_edit_texts_remove",
    ),
    path(
        "surveys/<int:pk>/measures/",
        measures.survey_measures,
        name="survey_measures",
    ),
    path(
        "surveys/<int:pk>/measures/<int:n>/",
        measures.survey_measure,
        name="survey_measure",
    ),
    path(
        "surveys/<int:pk>/essentials/<int:n>/",
        measures.survey_essential,
        name="survey_essential",
    ),
    path(
        "surveys/<int:pk>/correction/",
        corrections.survey_correction,
        name="survey_correction",
    ),
    path(
        "surveys/<int:pk>/preview/",
        preview.survey_preview,
        name="survey_preview",
    ),
    path(
        "surveys/<int:pk>/preview/<int:seed>/take/",
        preview.survey_preview_take,
        name="survey_preview_take",
    ),
    path(
        "surveys/<int:pk>/preview/<int:seed>/content/<slug:language>/<int:n>/",
        preview.survey_preview_content,
        name="survey_preview_content",
    ),
    path(
        "surveys/<int:pk>/preview/<int:seed>/complete/",
        preview.survey_preview_complete,
        name="survey_preview_complete",
    ),
    path("schools/import/", schools.school_imports, name="school_imports"),
    path("schools/import/<int:pk>/", schools.school_import, name="school_import"),
    path(
        "schools/import/<int:pk>/confirm/",
        schools.school_import_confirm,
        name="school_import_confirm",
    ),
    path(
        "schools/import/<int:pk>/cancel/",
        schools.school_import_cancel,
        name="school_import_cancel",
    ),
    path(
        "schools/import/<int:pk>/rejected.csv",
        schools.school_import_rejected,
        name="school_import_rejected",
    ),
    path("rosters/", rosters.roster_list, name="roster_list"),
    path(
        "administrations/<int:pk>/roster/", rosters.roster_upload, name="roster_upload"
    ),
    path(
        "administrations/<int:pk>/roster/template.csv",
        rosters.roster_template,
        {"ending": "csv"},
        name="roster_template_csv",
    ),
    path(
        "administrations/<int:pk>/roster/template.xlsx",
        rosters.roster_template,
        {"ending": "xlsx"},
        name="roster_template_xlsx",
    ),
    path("rosters/<int:pk>/", rosters.roster_detail, name="roster_detail"),
    path("rosters/<int:pk>/columns/", roster_columns, name="roster_columns"),
    path("rosters/<int:pk>/rejected/", rosters.roster_rejected, name="roster_rejected"),
    path(
        "rosters/<int:pk>/rejected.csv",
        rosters.roster_rejected_file,
        name="roster_rejected_file",
    ),
    path(
        "rosters/<int:pk>/missing/",
        missing_people.roster_missing,
        name="roster_missing",
    ),
    path(
        "rosters/<int:pk>/missing.csv",
        missing_people.roster_missing_file,
        name="roster_missing_file",
    ),
    path(
        "rosters/<int:pk>/missing/<int:school_id>/",
        missing_people.roster_missing_school,
        name="roster_missing_school",
    ),
    path(
        "rosters/<int:pk>/missing/<int:school_id>.csv",
        missing_people.roster_missing_file,
        name="roster_missing_school_file",
    ),
    path("rosters/<int:pk>/schools/", roster_schools, name="roster_schools"),
    path("rosters/<int:pk>/confirm/", rosters.roster_confirm, name="roster_confirm"),
    path("rosters/<int:pk>/cancel/", rosters.roster_cancel, name="roster_cancel"),
    path("rosters/<int:pk>/again/", rosters.roster_again, name="roster_again"),
    path("rosters/<int:pk>/undo/", roster_undo, name="roster_undo"),
    # Duplicate districts and schools.
    path("merges/", merging.merge_list, name="merge_list"),
    path("merges/new/", merging.merge_new, name="merge_new"),
    path("merges/<int:pk>/", merging.merge_detail, name="merge_detail"),
    path("merges/<int:pk>/people/", merge_people, name="merge_people"),
    path("merges/<int:pk>/confirm/", merging.merge_confirm, name="merge_confirm"),
    path("merges/<int:pk>/cancel/", merging.merge_cancel, name="merge_cancel"),
]
