"""URLs below /console/ of the home page, of response rates and of exports."""

from __future__ import annotations

from django.urls import include, path

from accounts.routes import page
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
    page("", rates.rates_board),
    page("districts.csv", rates.rates_board_csv),
    page("schools/", rates.rates_schools),
    page("schools.csv", rates.rates_schools_csv),
    path(DISTRICT, rates.rates_schools, name="rates_district"),
    path(f"{DISTRICT}schools.csv", rates.rates_schools_csv, name="rates_district_csv"),
    page("remind/<int:pk>/", rates_remind),
    page(SCHOOL, rates.rates_school),
    page(f"{SCHOOL}school.csv", rates.rates_school_csv),
]

WITHDRAW = "publish/<int:publication>/withdraw/"
results_urls = [
    page("", results.results_page),
    page("hidden/", results.results_hidden),
    page("results.csv", results.results_csv),
    page("comments/", results_comments),
    page("share/", results.results_share),
    page("release/", results.results_release),
    page("publish/", publishing.publishing),
    page("publish/preview/", publishing.publishing_preview),
    page(WITHDRAW, publishing.publishing_withdraw),
]

ITEM = "quality/<str:measure>/<str:item>/"
CALCULATE = "quality/calculate/"
IMPORT = "benchmark/import/"
scores_urls = [
    page("", scores.scores_table),
    page("rates/", comparisons.scores_rates),
    page("rates.csv", comparisons.scores_rates_csv),
    page("changes/", comparisons.scores_changes),
    page("changes.csv", comparisons.scores_changes_csv),
    page("groups/", comparisons.scores_groups),
    page("groups.csv", comparisons.scores_groups_csv),
    page("quality/", quality.scores_quality),
    page("quality.csv", quality.scores_quality_csv),
    page(CALCULATE, quality.scores_quality_calculate),
    page("benchmark/", benchmarks.scores_benchmark),
    page(IMPORT, benchmarks.scores_benchmark_import),
    page(f"{IMPORT}save/", benchmarks.scores_benchmark_import_save),
    page("benchmark/template.csv", benchmarks.scores_benchmark_template),
    page("benchmark/withdraw/", benchmarks.scores_benchmark_withdraw),
    page("quality/report/", quality.scores_quality_report),
    page(ITEM, quality.scores_quality_item),
]

ARCHIVE, REPORT = "reports/<int:archive>/", "schools/<int:school>/"
reports_urls = [
    page("reports/", archives.scores_reports),
    page(f"{ARCHIVE}file/", archives.scores_reports_file),
    page(f"{ARCHIVE}delete/", archives.scores_reports_delete),
    path(REPORT, scores.school_report_page, name="school_report"),
    page(f"{REPORT}report.pdf", scores.school_report_pdf),
]

CODEBOOK = "<int:pk>/codebook.csv"
exports_urls = [
    page("", exports.export_list),
    page("new/", exports.export_new),
    page("panel/", exports.export_panel),
    page("return/", exports.export_return),
    page("projects/", projects.project_list),
    page("projects/new/", projects.project_new),
    page("projects/<int:pk>/", projects.project_detail),
    page("projects/<int:pk>/file/", projects.project_file),
    page("projects/<int:pk>/keys/", projects.project_keys),
    page("projects/<int:pk>/end/", projects.project_end),
    page("<int:pk>/", exports.export_detail),
    page("<int:pk>/file/", exports.export_download),
    page("<int:pk>/codebook/", exports.export_codebook),
    page(CODEBOOK, exports.export_codebook_table),
    page("<int:pk>/documents/", exports.export_documents),
    page("<int:pk>/delete/", exports.export_delete),
]

ROUND = "administrations/<int:pk>/"
urlpatterns = [
    page("", console_home),
    page("schools/", school_list),
    page("search/", console_search),
    page(ROUND, administration_detail),
    path("rates/", include(rates_urls)),
    page("results/", results.results_list),
    path("results/<int:pk>/", include([*results_urls, *reports_urls])),
    path("results/<int:pk>/scores/", include(scores_urls)),
    page("results/<int:pk>/scores.csv", scores.scores_csv),
    path("exports/", include(exports_urls)),
]
