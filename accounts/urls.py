"""Staff: how they log in, and who they are. Under /console/."""

from __future__ import annotations

from allauth.account import urls as account_urls
from allauth.mfa import urls as mfa_urls
from allauth.usersessions import urls as session_urls
from django.urls import include, path

from accounts.access import ANYONE, SIGNED_IN, under
from accounts.console.views import console_home, my_account

urlpatterns = [
    path("", console_home, name="console_home"),
    path("me/", my_account, name="my_account"),
    path("account/", include(under(ANYONE, account_urls.urlpatterns))),
    path("second-factor/", include(under(SIGNED_IN, mfa_urls.urlpatterns))),
    path("sessions/", include(under(SIGNED_IN, session_urls.urlpatterns))),
]
