"""Staff: how they log in, and who they are. Under /console/."""

from __future__ import annotations

from allauth.account import views as account
from allauth.mfa.base import views as mfa
from django.urls import path

from accounts.access import ANYONE, SIGNED_IN, under
from accounts.console import account as mine
from accounts.console import audit, password_views, staff

# Of allauth's pages only those that are offered, each under its rule.
_for_anyone = [
    path("account/login/", account.login, name="account_login"),
    path("account/logout/", account.logout, name="account_logout"),
    path(
        "account/password/reset/",
        account.password_reset,
        name="account_reset_password",
    ),
    path(
        "account/password/reset/done/",
        account.password_reset_done,
        name="account_reset_password_done",
    ),
    # Halfway in: the password was right.
    path("account/login/code/", mfa.authenticate, name="mfa_authenticate"),
]
_for_who_is_signed_in = [
    path(
        "account/password/change/",
        account.password_change,
        name="account_change_password",
    ),
    path("account/password/set/", account.password_set, name="account_set_password"),
    path("account/again/", account.reauthenticate, name="account_reauthenticate"),
    path("account/again/code/", mfa.reauthenticate, name="mfa_reauthenticate"),
]

urlpatterns = [
    *under(ANYONE, _for_anyone),
    *under(SIGNED_IN, _for_who_is_signed_in),
    path(
        "account/password/reset/new/",
        password_views.password_choose,
        name="password_choose",
    ),
    path("invitation/", password_views.invitation, name="invitation"),
    path("me/", mine.my_account, name="my_account"),
    path("me/language/", mine.choose_language, name="choose_language"),
    path(
        "second-factor/set-up/",
        mine.second_factor_set_up,
        name="second_factor_set_up",
    ),
    path(
        "second-factor/recovery-codes/",
        mine.recovery_codes_new,
        name="recovery_codes_new",
    ),
    path("me/sessions/<int:pk>/end/", mine.session_end, name="session_end"),
    path("me/sessions/end/", mine.sessions_end, name="sessions_end"),
    path("staff/", staff.staff_list, name="staff_list"),
    path("staff/invite/", staff.staff_invite, name="staff_invite"),
    path("staff/<int:pk>/", staff.membership_detail, name="membership_detail"),
    path(
        "staff/<int:pk>/dismiss/", staff.membership_dismiss, name="membership_dismiss"
    ),
    path("staff/<int:pk>/resend/", staff.membership_resend, name="membership_resend"),
    path(
        "staff/<int:pk>/withdraw/",
        staff.membership_withdraw,
        name="membership_withdraw",
    ),
    path(
        "staff/<int:pk>/second-factor/",
        staff.membership_reset_second_factor,
        name="membership_reset_second_factor",
    ),
    path("audit/", audit.audit_list, name="audit_list"),
    path("audit/entries.csv", audit.audit_csv, name="audit_csv"),
]
