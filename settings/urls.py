from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("engineers/", admin.site.urls),
    path("", include("survey.urls")),
]
