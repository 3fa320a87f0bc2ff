from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

from accounts.access import ANYONE, ENGINEER, under
from accounts.console.components import components
from accounts.console.help_site import help_file, help_home
from settings.monitoring.engineers import put_home_before
from survey import urls as respondents
from survey.console.settings.public_pages import public_page
from survey.console.surveys.public_questions import public_questions
from survey.fieldwork.emails.provider_events import email_events
from survey.fieldwork.emails.unsubscribe import unsubscribe

# Each route has an access rule; see accounts.access. Respondents log in with a
# code, so their views are open to anyone.
_tables = put_home_before(admin.site)
_engineers, _app, _name = admin.site.urls

_pages = [
    path("engineers/components/", components, name="components"),
    path("engineers/tables/", admin.site.admin_view(_tables), name="engineers_tables"),
]

urlpatterns = [
    *under(ENGINEER, _pages),
    path("engineers/", (under(ENGINEER, _engineers), _app, _name)),
    path("console/", include("accounts.urls")),
    path("console/", include("survey.console.urls")),
    path("console/", include("reports.urls")),
    path("help/", help_home, name="help_home"),
    path("help/<path:path>", help_file, name="help_file"),
    path("results/", include("reports.publishing.urls")),
    path("questions/<slug:name>/", public_questions, name="public_questions"),
    path("privacy/", public_page, {"kind": "privacy"}, name="privacy_page"),
    path(
        "accessibility/",
        public_page,
        {"kind": "accessibility"},
        name="accessibility_page",
    ),
    path("unsubscribe/<str:token>/", unsubscribe, name="unsubscribe"),
    path("email-events/", email_events, name="email_events"),
    path("", include(under(ANYONE, respondents.urlpatterns))),
]

handler400 = "accounts.console.errors.bad_request"
handler403 = "accounts.console.errors.permission_denied"
handler404 = "accounts.console.errors.not_found"
handler500 = "accounts.console.errors.server_error"
