"""URLs below /console/ of the home page, of response rates and of exports."""

from __future__ import annotations

from django.urls import include, path

from reports.console.exports import project_views as projects
from reports.console.exports import views as exports
from reports.console.home import console_home
from reports.console.publishing import views as publishing
from reports.console.rates import views as rates
from reports.console.rates.reminding import rates_remind
from reports.console.results import views as results
from reports.console.results.comments import results_comments
from reports.console.schools import school_list
from reports.console.scores import archives
from reports.console.scores import benchmark_views as benchmarks
from reports.console.scores import comparison_views as comparisons
from reports.console.scores import quality_views as quality
from reports.console.scores import views as scores
from reports.console.search import console_search
from reports.console.workspace import administration_detail

DISTRICT, SCHOOL = "districts/<int:pk>/", "schools/<int:pk>/"
rates_urls = [
    path("", rates.rates_board, name="rates_board"),
    path("districts.csv", rates.rates_board_csv, name="rates_board_csv"),
    path("schools/", rates.rates_schools, name="rates_schools"),
    path("schools.csv", rates.rates_schools_csv, name="rates_schools_csv"),
    path(DISTRICT, rates.rates_schools, name="rates_district"),
    path(f"{DISTRICT}schools.csv", rates.rates_schools_csv, name="rates_district_csv"),
    path("remind/<int:pk>/", rates_remind, name="rates_remind"),
    path(SCHOOL, rates.rates_school, name="rates_school"),
    path(f"{SCHOOL}school.csv", rates.rates_school_csv, name="rates_school_csv"),
]

WITHDRAW = "publish/<int:publication>/withdraw/"
results_urls = [
    path("", results.results_page, name="results_page"),
    path("hidden/", results.results_hidden, name="results_hidden"),
    path("results.csv", results.results_csv, name="results_csv"),
    path("comments/", results_comments, name="results_comments"),
    path("share/", results.results_share, name="results_share"),
    path("release/", results.results_release, name="results_release"),
    path("publish/", publishing.publishing, name="publishing"),
    path("publish/preview/", publishing.publishing_preview, name="publishing_preview"),
    path(WITHDRAW, publishing.publishing_withdraw, name="publishing_withdraw"),
]

ITEM = "quality/<str:measure>/<str:item>/"
CALCULATE = "quality/calculate/"
IMPORT = "benchmark/import/"
scores_urls = [
    path("", scores.scores_table, name="scores_table"),
    path("rates/", comparisons.scores_rates, name="scores_rates"),
    path("rates.csv", comparisons.scores_rates_csv, name="scores_rates_csv"),
    path("changes/", comparisons.scores_changes, name="scores_changes"),
    path("changes.csv", comparisons.scores_changes_csv, name="scores_changes_csv"),
    path("groups/", comparisons.scores_groups, name="scores_groups"),
    path("groups.csv", comparisons.scores_groups_csv, name="scores_groups_csv"),
    path("quality/", quality.scores_quality, name="scores_quality"),
    path("quality.csv", quality.scores_quality_csv, name="scores_quality_csv"),
    path(CALCULATE, quality.scores_quality_calculate, name="scores_quality_calculate"),
    path("benchmark/", benchmarks.scores_benchmark, name="scores_benchmark"),
    path(IMPORT, benchmarks.scores_benchmark_import, name="scores_benchmark_import"),
    path(
        f"{IMPORT}save/",
        benchmarks.scores_benchmark_import_save,
        name="scores_benchmark_import_save",
    ),
    path(
        "benchmark/template.csv",
        benchmarks.scores_benchmark_template,
        name="scores_benchmark_template",
    ),
    path(
        "benchmark/withdraw/",
        benchmarks.scores_benchmark_withdraw,
        name="scores_benchmark_withdraw",
    ),
    path(
        "quality/report/", quality.scores_quality_report, name="scores_quality_report"
    ),
    path(ITEM, quality.scores_quality_item, name="scores_quality_item"),
]

ARCHIVE, REPORT = "reports/<int:archive>/", "schools/<int:school>/"
reports_urls = [
    path("reports/", archives.scores_reports, name="scores_reports"),
    path(f"{ARCHIVE}file/", archives.scores_reports_file, name="scores_reports_file"),
    path(
        f"{ARCHIVE}delete/",
        archives.scores_reports_delete,
        name="scores_reports_delete",
    ),
    path(REPORT, scores.school_report_page, name="school_report"),
    path(f"{REPORT}report.pdf", scores.school_report_pdf, name="school_report_pdf"),
]

CODEBOOK = "<int:pk>/codebook.csv"
exports_urls = [
    path("", exports.export_list, name="export_list"),
    path("new/", exports.export_new, name="export_new"),
    path("panel/", exports.export_panel, name="export_panel"),
    path("return/", exports.export_return, name="export_return"),
    path("projects/", projects.project_list, name="project_list"),
    path("projects/new/", projects.project_new, name="project_new"),
    path("projects/<int:pk>/", projects.project_detail, name="project_detail"),
    path("projects/<int:pk>/file/", projects.project_file, name="project_file"),
    path("projects/<int:pk>/keys/", projects.project_keys, name="project_keys"),
    path("projects/<int:pk>/end/", projects.project_end, name="project_end"),
    path("<int:pk>/", exports.export_detail, name="export_detail"),
    path("<int:pk>/file/", exports.export_download, name="export_download"),
    path("<int:pk>/codebook/", exports.export_codebook, name="export_codebook"),
    path(CODEBOOK, exports.export_codebook_table, name="export_codebook_table"),
    path("<int:pk>/documents/", exports.export_documents, name="export_documents"),
    path("<int:pk>/delete/", exports.export_delete, name="export_delete"),
]

ROUND = "administrations/<int:pk>/"
urlpatterns = [
    path("", console_home, name="console_home"),
    path("schools/", school_list, name="school_list"),
    path("search/", console_search, name="console_search"),
    path(ROUND, administration_detail, name="administration_detail"),
    path("rates/", include(rates_urls)),
    path("results/", results.results_list, name="results_list"),
    path("results/<int:pk>/", include([*results_urls, *reports_urls])),
    path("results/<int:pk>/scores/", include(scores_urls)),
    path("results/<int:pk>/scores.csv", scores.scores_csv, name="scores_csv"),
    path("exports/", include(exports_urls)),
]
