"""Addresses of the console pages of this app."""

from __future__ import annotations

from django.urls import path, register_converter

from accounts.routes import page
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
    page("settings/", settings.settings_home),
    page("settings/<place:place>/", settings.settings_place),
    page("settings/<place:place>/contact/", settings.settings_contact),
    page("settings/<place:place>/thresholds/", settings.settings_thresholds),
    page("settings/<place:place>/minimum-group/", settings.settings_minimum_group),
    page("settings/<place:place>/time-zone/", settings.settings_time_zone),
    page("settings/state/smallest-percentage/", settings.settings_coding_threshold),
    page("settings/state/help/", settings.settings_help),
    page("settings/<place:place>/retention/", place_retention.settings_retention),
    page("settings/state/pages/", public_pages.settings_public_pages),
    page(
        "settings/state/pages/<slug:kind>/<slug:language>/",
        public_pages.settings_public_page,
    ),
    page("settings/<place:place>/questions/", settings.settings_questions),
    page("settings/<place:place>/name/", settings.settings_name),
    page("settings/<place:place>/rename/", place_pages.settings_rename),
    page("settings/<place:place>/close/", place_pages.settings_close),
    page("settings/calendar/", calendar.calendar_list),
    page("settings/calendar/new/", calendar.calendar_add),
    page("settings/calendar/weekend/", calendar.calendar_weekend),
    page("settings/calendar/us-holidays/", calendar.calendar_us_holidays),
    page("settings/calendar/<int:pk>/remove/", calendar.calendar_remove),
    page("settings/survey-day/", survey_day.survey_day),
    page("settings/survey-day/end/", survey_day.survey_day_end),
    *people.urlpatterns,
    # Login cards of an administration.
    page(CARDS, cards.cards_list),
    page(f"{CARDS}reissue/", cards.cards_reissue),
    page(f"{CARDS}<int:card_set>/", cards.cards_detail),
    page(f"{CARDS}<int:card_set>/file/", cards.cards_download),
    page(f"{CARDS}<int:card_set>/again/", cards.cards_again),
    # E-mails of an administration.
    page(EMAILS, emails.emails_detail),
    page(f"{EMAILS}progress/", emails.emails_progress),
    page(f"{EMAILS}plan/", emails.emails_plan),
    page(f"{EMAILS}confirm/", emails.emails_confirm),
    page(f"{EMAILS}pause/", emails.emails_pause),
    page(f"{EMAILS}resume/", emails.emails_resume),
    page(f"{EMAILS}cancel/", emails.emails_cancel),
    page(f"{EMAILS}<int:step>/preview/", email_texts.emails_preview),
    page(f"{EMAILS}<int:step>/<slug:language>/", email_texts.emails_text),
    page(f"{EMAILS}<int:step>/<slug:language>/test/", email_texts.emails_test),
    # Open codes of an administration.
    page(OPEN_CODES, open_codes.open_codes_list),
    page(f"{OPEN_CODES}new/", open_codes.open_codes_new),
    page(f"{OPEN_CODES}all/", batches.open_codes_all),
    page(f"{OPEN_CODES}all/<int:batch>/", batches.open_codes_batch),
    page(f"{OPEN_CODES}all/<int:batch>/again/", batches.open_codes_batch_again),
    page(FILES, files.open_code_files),
    page(f"{FILES}<int:code_file>/", files.open_code_file),
    page(f"{FILES}<int:code_file>/file/", files.open_code_file_download),
    page(f"{FILES}<int:code_file>/again/", files.open_code_file_again),
    page(f"{OPEN_CODES}<int:open_code>/", open_codes.open_code_detail),
    page(f"{OPEN_CODES}<int:open_code>/show/", open_codes.open_code_show),
    page(f"{OPEN_CODES}<int:open_code>/publish/", open_codes.open_code_publish),
    page(f"{OPEN_CODES}<int:open_code>/revoke/", open_codes.open_code_revoke),
    page(f"{OPEN_CODES}<int:open_code>/replace/", open_codes.open_code_replace),
    # Numbers of families or students, where there is no roster.
    page(COUNTS, counts.count_list),
    page(f"{COUNTS}upload/", counts.count_upload),
    page(f"{COUNTS}save/", counts.count_upload_save),
    page(f"{COUNTS}template.csv", counts.count_template),
    page(f"{COUNTS}<int:school_id>/", counts.count_change),
    # Background jobs.
    page("jobs/<int:pk>/", jobs.job_progress),
    page("jobs/<int:pk>/cancel/", jobs.job_cancel),
    page("administrations/", administrations.administration_list),
    page("administrations/open/", open_views.administration_open),
    page(
        "administrations/open/<str:draft>/<str:step>/",
        open_views.administration_open_step,
    ),
    page("administrations/<int:pk>/test-link/", trial_link.administration_test_link),
    page("surveys/<int:pk>/test-link/", trial_link.survey_test_link),
    page(
        "administrations/<int:pk>/questionnaire/",
        questionnaire.administration_questionnaire,
    ),
    page(f"{TRIAL}take/", trial_link.trial_take),
    page(f"{TRIAL}content/<slug:language>/<int:n>/", trial_link.trial_content),
    page(f"{TRIAL}complete/", trial_link.trial_complete),
    page("administrations/<int:pk>/devices/", devices.administration_devices),
    page(
        "administrations/<int:pk>/district-questions/", modules.administration_modules
    ),
    page("administrations/<int:pk>/change/", edit_views.administration_change),
    page("administrations/<int:pk>/close/", edit_views.administration_close),
    page("administrations/<int:pk>/reopen/", edit_views.administration_reopen),
    page("administrations/<int:pk>/remove/", edit_views.administration_remove),
    page("administrations/<int:pk>/retention/", retention.administration_retention),
    page("administrations/<int:pk>/hold/", retention.administration_hold),
    page(
        "administrations/<int:pk>/holds/<int:hold>/lift/",
        retention.administration_hold_lift,
    ),
    page(
        "administrations/<int:pk>/destroy/<str:kind>/", retention.administration_destroy
    ),
    page("platforms/", platforms.platform_list),
    page("platforms/new/", platforms.platform_create),
    page("platforms/<int:pk>/", platforms.platform_detail),
    page("platforms/<int:pk>/keys/", platforms.platform_key_create),
    page("platforms/<int:pk>/keys/<int:key>/revoke/", platforms.platform_key_revoke),
    page(
        "platforms/<int:pk>/people/<int:administration>.csv", platforms.platform_people
    ),
    page("platforms/<int:pk>/remove/", platforms.platform_remove),
    # Feeds of rosters.
    page("feeds/", feeds.feed_list),
    page("feeds/window/", window_views.feed_window),
    page("feeds/new/", feeds.feed_create),
    page("feeds/new/<int:district>/<slug:kind>/", feeds.feed_create_for),
    page("feeds/<int:pk>/", feeds.feed_detail),
    page("feeds/<int:pk>/change/", feeds.feed_change),
    page("feeds/<int:pk>/pause/", feeds.feed_pause),
    page("feeds/<int:pk>/resume/", feeds.feed_resume),
    page("feeds/<int:pk>/remove/", feeds.feed_remove),
    page("feeds/<int:pk>/accept-key/", feeds.feed_accept_key),
    page("feeds/<int:pk>/try/", scan_views.feed_try),
    page("feeds/<int:pk>/scan/", scan_views.feed_scan_start),
    page(SCAN, scan_views.feed_scan),
    page(f"{SCAN}confirm/", scan_views.feed_scan_confirm),
    page(f"{SCAN}cancel/", scan_views.feed_scan_cancel),
    page("waves/", waves.wave_list),
    page("waves/new/", waves.wave_create),
    page("waves/<int:pk>/rename/", waves.wave_rename),
    page("waves/<int:pk>/delete/", waves.wave_delete),
    page("surveys/", surveys.survey_list),
    page("surveys/upload/", upload.survey_upload),
    page("surveys/new/", starting.survey_new),
    page("surveys/new/empty/", starting.survey_new_empty),
    page("surveys/new/template/", starting.survey_new_template),
    page("surveys/new/paste/", starting.survey_new_paste),
    page("surveys/new/copy/", starting.survey_new_copy),
    page("surveys/<int:pk>/copy/", starting.survey_copy),
    page("surveys/<int:pk>/new-version/", starting.survey_new_version),
    page("surveys/uploads/<int:pk>/", upload.survey_uploaded),
    page("surveys/uploads/<int:pk>/without/", upload.survey_upload_without),
    page("surveys/uploads/<int:pk>/problems.csv", upload.survey_upload_problems),
    page("surveys/uploads/<int:pk>/report/", upload.survey_upload_report),
    page("surveys/uploads/<int:pk>/report.csv", upload.survey_upload_report_file),
    page("surveys/bank/", bank.bank_list),
    page("surveys/bank/<int:pk>/", bank.bank_question),
    page("surveys/bank/<int:pk>/version/", bank.bank_version),
    page("surveys/bank/<int:pk>/retire/", bank.bank_retire),
    page("surveys/<int:pk>/to-bank/", bank.survey_to_bank),
    page("surveys/<int:pk>/edit/paste/", pasted.survey_edit_paste),
    page("surveys/<int:pk>/edit/bank/", bank.survey_edit_bank),
    page("surveys/<int:pk>/", surveys.survey_detail),
    page("surveys/<int:pk>/edit/", editor.survey_edit),
    page("surveys/<int:pk>/edit/canvas/", editor.survey_edit_canvas),
    page("surveys/<int:pk>/edit/change/", editor.survey_edit_change),
    page("surveys/<int:pk>/variables/", surveys.survey_variables),
    page("surveys/<int:pk>/original/", downloads.survey_original),
    page("surveys/<int:pk>/json/", downloads.survey_json),
    page("surveys/<int:pk>/questionnaire/", downloads.survey_questionnaire),
    page("surveys/<int:pk>/compare/", history.survey_compare),
    page("surveys/<int:pk>/check/", check.survey_check),
    page("surveys/<int:pk>/edit/history/", history.survey_edit_history),
    page("surveys/<int:pk>/edit/history/compare/", history.survey_edit_compare),
    page("surveys/<int:pk>/edit/history/<int:number>/", history.survey_edit_restore),
    page("surveys/<int:pk>/publish/", surveys.survey_publish),
    page("surveys/<int:pk>/retire/", surveys.survey_retire),
    page("surveys/<int:pk>/bring-back/", surveys.survey_bring_back),
    page("surveys/<int:pk>/delete/", surveys.survey_delete),
    page("surveys/<int:pk>/correct/", corrections.survey_correct),
    page("surveys/<int:pk>/correct/here/", texts.survey_correct_here),
    page("surveys/<int:pk>/edit/texts/", texts.survey_edit_texts),
    page("surveys/edit/presence/<str:seat>/", presence.survey_edit_presence),
    page("surveys/<int:pk>/edit/comments/", comments.survey_edit_comments),
    page("surveys/<int:pk>/edit/comments/count/", comments.survey_edit_comments_count),
    page("surveys/<int:pk>/edit/comments/add/", comments.survey_edit_comments_add),
    page(
        "surveys/<int:pk>/edit/comments/at/<slug:key>/",
        comments.survey_edit_comments_at,
    ),
    page(
        "surveys/<int:pk>/edit/comments/<int:comment>/resolve/",
        comments.survey_edit_comments_resolve,
    ),
    page("surveys/<int:pk>/edit/texts/file/", text_files.survey_edit_texts_file),
    page("surveys/<int:pk>/edit/texts/upload/", text_files.survey_edit_texts_upload),
    page(
        "surveys/<int:pk>/edit/texts/upload/save/",
        text_files.survey_edit_texts_upload_save,
    ),
    page("surveys/<int:pk>/edit/texts/undo/", text_files.survey_edit_texts_undo),
    page("surveys/<int:pk>/edit/texts/languages/", text_files.survey_edit_texts_add),
    page(
        "surveys/<int:pk>/edit/texts/languages/<slug:language>/remove/",
        text_files.survey_edit_texts_remove,
    ),
    page("surveys/<int:pk>/measures/", measures.survey_measures),
    page("surveys/<int:pk>/measures/<int:n>/", measures.survey_measure),
    page("surveys/<int:pk>/essentials/<int:n>/", measures.survey_essential),
    page("surveys/<int:pk>/correction/", corrections.survey_correction),
    page("surveys/<int:pk>/preview/", preview.survey_preview),
    page("surveys/<int:pk>/preview/<int:seed>/take/", preview.survey_preview_take),
    page(
        "surveys/<int:pk>/preview/<int:seed>/content/<slug:language>/<int:n>/",
        preview.survey_preview_content,
    ),
    page(
        "surveys/<int:pk>/preview/<int:seed>/complete/", preview.survey_preview_complete
    ),
    page("schools/import/", schools.school_imports),
    page("schools/import/<int:pk>/", schools.school_import),
    page("schools/import/<int:pk>/confirm/", schools.school_import_confirm),
    page("schools/import/<int:pk>/cancel/", schools.school_import_cancel),
    page("schools/import/<int:pk>/rejected.csv", schools.school_import_rejected),
    page("rosters/", rosters.roster_list),
    page("administrations/<int:pk>/roster/", rosters.roster_upload),
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
    page("rosters/<int:pk>/", rosters.roster_detail),
    page("rosters/<int:pk>/columns/", roster_columns),
    page("rosters/<int:pk>/rejected/", rosters.roster_rejected),
    page("rosters/<int:pk>/rejected.csv", rosters.roster_rejected_file),
    page("rosters/<int:pk>/missing/", missing_people.roster_missing),
    page("rosters/<int:pk>/missing.csv", missing_people.roster_missing_file),
    page(
        "rosters/<int:pk>/missing/<int:school_id>/",
        missing_people.roster_missing_school,
    ),
    path(
        "rosters/<int:pk>/missing/<int:school_id>.csv",
        missing_people.roster_missing_file,
        name="roster_missing_school_file",
    ),
    page("rosters/<int:pk>/schools/", roster_schools),
    page("rosters/<int:pk>/confirm/", rosters.roster_confirm),
    page("rosters/<int:pk>/cancel/", rosters.roster_cancel),
    page("rosters/<int:pk>/again/", rosters.roster_again),
    page("rosters/<int:pk>/undo/", roster_undo),
    # Duplicate districts and schools.
    page("merges/", merging.merge_list),
    page("merges/new/", merging.merge_new),
    page("merges/<int:pk>/", merging.merge_detail),
    page("merges/<int:pk>/people/", merge_people),
    page("merges/<int:pk>/confirm/", merging.merge_confirm),
    page("merges/<int:pk>/cancel/", merging.merge_cancel),
]
