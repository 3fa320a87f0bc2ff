"""URLs below /console/ of the home page, of response rates and of exports."""

from __future__ import annotations

from django.urls import path

from reports.console.exports import views as exports
from reports.console.home import console_home
from reports.console.publishing import views as publishing
from reports.console.rates import views as rates
from reports.console.results import views as results
from reports.console.results.comments import results_comments
from reports.console.scores import archives
from reports.console.scores import comparison_views as comparisons
from reports.console.scores import quality_views as quality
from reports.console.scores import views as scores
from reports.console.search import console_search
from reports.console.workspace import administration_detail

urlpatterns = [
    path("", console_home, name="console_home"),
    path("search/", console_search, name="console_search"),
    path(
        "administrations/<int:pk>/", administration_detail, name="administration_detail"
    ),
    path("rates/", rates.rates_board, name="rates_board"),
    path("rates/districts.csv", rates.rates_board_csv, name="rates_board_csv"),
    path("rates/schools/", rates.rates_schools, name="rates_schools"),
    path("rates/schools.csv", rates.rates_schools_csv, name="rates_schools_csv"),
    path("rates/districts/<int:pk>/", rates.rates_district, name="rates_district"),
    path(
        "rates/districts/<int:pk>/schools.csv",
        rates.rates_district_csv,
        name="rates_district_csv",
    ),
    path("rates/schools/<int:pk>/", rates.rates_school, name="rates_school"),
    path(
        "rates/schools/<int:pk>/school.csv",
        rates.rates_school_csv,
        name="rates_school_csv",
    ),
    path("results/", results.results_list, name="results_list"),
    path("results/<int:pk>/", results.results_page, name="results_page"),
    path("results/<int:pk>/hidden/", results.results_hidden, name="results_hidden"),
    path("results/<int:pk>/results.csv", results.results_csv, name="results_csv"),
    path(
        "results/<int:pk>/comments/",
        results_comments,
        name="results_comments",
    ),
    path("results/<int:pk>/share/", results.results_share, name="results_share"),
    path("results/<int:pk>/release/", results.results_release, name="results_release"),
    path("results/<int:pk>/publish/", publishing.publishing, name="publishing"),
    path(
        "results/<int:pk>/publish/preview/",
        publishing.publishing_preview,
        name="publishing_preview",
    ),
    path(
        "results/<int:pk>/publish/<int:publication>/withdraw/",
        publishing.publishing_withdraw,
        name="publishing_withdraw",
    ),
    path("results/<int:pk>/scores/", scores.scores_table, name="scores_table"),
    path("results/<int:pk>/scores.csv", scores.scores_csv, name="scores_csv"),
    path("results/<int:pk>/reports/", archives.scores_reports, name="scores_reports"),
    path(
        "results/<int:pk>/reports/<int:archive>/file/",
        archives.scores_reports_file,
        name="scores_reports_file",
    ),
    path(
        "results/<int:pk>/reports/<int:archive>/delete/",
        archives.scores_reports_delete,
        name="scores_reports_delete",
    ),
    path(
        "results/<int:pk>/scores/rates/",
        comparisons.scores_rates,
        name="scores_rates",
    ),
    path(
        "results/<int:pk>/scores/rates.csv",
        comparisons.scores_rates_csv,
        name="scores_rates_csv",
    ),
    path(
        "results/<int:pk>/scores/changes/",
        comparisons.scores_changes,
        name="scores_changes",
    ),
    path(
        "results/<int:pk>/scores/changes.csv",
        comparisons.scores_changes_csv,
        name="scores_changes_csv",
    ),
    path(
        "results/<int:pk>/scores/quality/",
        quality.scores_quality,
        name="scores_quality",
    ),
    path(
        "results/<int:pk>/scores/quality.csv",
        quality.scores_quality_csv,
        name="scores_quality_csv",
    ),
    path(
        "results/<int:pk>/scores/quality/calculate/",
        quality.scores_quality_calculate,
        name="scores_quality_calculate",
    ),
    path(
        "results/<int:pk>/scores/quality/<str:measure>/<str:item>/",
        quality.scores_quality_item,
        name="scores_quality_item",
    ),
    path(
        "results/<int:pk>/schools/<int:school>/",
        scores.school_report_page,
        name="school_report",
    ),
    path(
        "results/<int:pk>/schools/<int:school>/report.pdf",
        scores.school_report_pdf,
        name="school_report_pdf",
    ),
    path("exports/", exports.export_list, name="export_list"),
    path("exports/new/", exports.export_new, name="export_new"),
    path("exports/panel/", exports.export_panel, name="export_panel"),
    path("exports/<int:pk>/", exports.export_detail, name="export_detail"),
    path("exports/<int:pk>/file/", exports.export_download, name="export_download"),
    path("exports/<int:pk>/codebook/", exports.export_codebook, name="export_codebook"),
    path(
        "exports/<int:pk>/codebook.csv",
        exports.export_codebook_table,
        name="export_codebook_table",
    ),
    path("exports/<int:pk>/delete/", exports.export_delete, name="export_delete"),
]
