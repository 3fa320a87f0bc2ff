"""An application with an empty view at the addresses of the messages' endpoint.

What `provisioning/run messages` compares the endpoint with.
"""

from __future__ import annotations

import django
from django.core.handlers.wsgi import WSGIHandler
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import path

django.setup(set_prefix=False)

from django.conf import settings  # noqa: E402

settings.ROOT_URLCONF = __name__


def empty(request: HttpRequest, platform: int, person: str) -> HttpResponse:
    return JsonResponse({})


urlpatterns = [path("messages/<int:platform>/<slug:person>.json", empty)]
application = WSGIHandler()
