from __future__ import annotations

from debug_toolbar.toolbar import debug_toolbar_urls

from settings import urls

urlpatterns = [*debug_toolbar_urls(), *urls.urlpatterns]
