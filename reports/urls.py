"""Response rates and responses, under /console/."""

from __future__ import annotations

from django.urls import path

from reports.exports import views as exports

urlpatterns = [
    path("exports/", exports.export_list, name="export_list"),
    path("exports/new/", exports.export_new, name="export_new"),
    path("exports/<int:pk>/", exports.export_detail, name="export_detail"),
    path("exports/<int:pk>/file/", exports.export_download, name="export_download"),
    path("exports/<int:pk>/codebook/", exports.export_codebook, name="export_codebook"),
    path("exports/<int:pk>/delete/", exports.export_delete, name="export_delete"),
]
