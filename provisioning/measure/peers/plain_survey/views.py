"""Three pages: the link that people get, the questions, and thanks."""

from __future__ import annotations

from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBadRequest,
    HttpResponseForbidden,
)
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path

from provisioning.measure.peers.plain_survey.models import (
    Answer,
    Question,
    Respondent,
)

CHOICES = ("1", "2", "3", "4", "5")


def start(request: HttpRequest, code: str) -> HttpResponse:
    respondent = get_object_or_404(Respondent, code=code)
    request.session["respondent"] = respondent.pk
    return redirect("page", 1)


def page(request: HttpRequest, number: int) -> HttpResponse:
    respondent = request.session.get("respondent")
    if respondent is None:
        return HttpResponseForbidden("Open the link that you were sent.")
    questions = Question.objects.filter(page=number).order_by("pk")
    if request.method == "POST":
        for place, question in enumerate(questions, start=1):
            value = request.POST.get(f"answer-{place}")
            if value not in CHOICES:
                return HttpResponseBadRequest("An answer is missing.")
            Answer.objects.create(
                respondent_id=respondent, question=question, value=value
            )
        if Question.objects.filter(page=number + 1).exists():
            return redirect("page", number + 1)
        return redirect("thanks")
    context = {"number": number, "questions": questions, "choices": CHOICES}
    return render(request, "plain_survey/page.html", context)


def thanks(request: HttpRequest) -> HttpResponse:
    return HttpResponse("Thank you.")


urlpatterns = [
    path("start/<slug:code>/", start, name="start"),
    path("pages/<int:number>/", page, name="page"),
    path("thanks/", thanks, name="thanks"),
]
