"""Staff: how they log in, and who they are. Under /console/."""

from __future__ import annotations

from allauth.account import views as account
from allauth.mfa.base import views as mfa
from django.urls import path

from accounts.access import ANYONE, SIGNED_IN, under
from accounts.console import account as mine
from accounts.console import audit, password_views, staff
from accounts.routes import page

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
    page("account/password/reset/new/", password_views.password_choose),
    page("invitation/", password_views.invitation),
    page("me/", mine.my_account),
    page("me/language/", mine.choose_language),
    page("second-factor/set-up/", mine.second_factor_set_up),
    page("second-factor/recovery-codes/", mine.recovery_codes_new),
    page("me/sessions/<int:pk>/end/", mine.session_end),
    page("me/sessions/end/", mine.sessions_end),
    page("staff/", staff.staff_list),
    page("staff/invite/", staff.staff_invite),
    page("staff/<int:pk>/", staff.membership_detail),
    page("staff/<int:pk>/dismiss/", staff.membership_dismiss),
    page("staff/<int:pk>/resend/", staff.membership_resend),
    page("staff/<int:pk>/withdraw/", staff.membership_withdraw),
    page("staff/<int:pk>/second-factor/", staff.membership_reset_second_factor),
    page("audit/", audit.audit_list),
    page("audit/entries.csv", audit.audit_csv),
]
