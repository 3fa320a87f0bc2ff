"""Define routes with one defect each, all of which the matrix has to find."""

from __future__ import annotations

import gzip

from django.contrib.auth import logout
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404
from django.urls import include, path
from django.views.decorators.http import require_POST

from accounts.access import anyone, needs, signed_in, staff
from accounts.models import District, Membership, QueuedEmail, School
from accounts.permissions import Capability as C
from reports.models import Export
from survey.work.files import path_of


def get_own_school(request: HttpRequest, school_id: int) -> School:
    schools = request.permissions.schools(C.SEE_RATES)
    return get_object_or_404(schools, pk=school_id)


@needs(C.SEE_RATES)
def shows_own_school(request, school_id):
    return HttpResponse(get_own_school(request, school_id).name)


@needs(C.SEE_RATES)
def shows_no_school(request, school_id):
    get_own_school(request, school_id)
    return HttpResponse("Seen.")


@needs(C.SEE_RATES)
def shows_any_school(request, school_id):
    return HttpResponse(School.objects.get(pk=school_id).name)


@needs(C.SEE_RATES)
def shows_district_schools(request, school_id):
    """Show a coordinator the other schools of the district."""
    district = first_own_school(request).district
    school = get_object_or_404(School, pk=school_id, district=district)
    return HttpResponse(school.name)


def first_own_school(request):
    return request.permissions.schools(C.SEE_RATES).first()


@needs(C.SEE_RATES)
def finds_any_school(request):
    query = request.GET.get("q")
    schools = School.objects.filter(name__icontains=query) if query else ()
    return HttpResponse(", ".join(school.name for school in schools))


@needs(C.SEE_RATES)
def trusts_school_in_query(request):
    """Refuse any district, but trust the school if no district is given."""
    if request.GET.get("district"):
        raise Http404
    return trusts_query(request)


@needs(C.SEE_RATES)
def deletes_files(request):
    for name in Export.objects.values_list("file_name", flat=True):
        path_of(name).unlink(missing_ok=True)
    return HttpResponse("Tidied up.")


@needs(C.SEE_RATES)
def shows_any_school_compressed(request, school_id):
    packed = gzip.compress(School.objects.get(pk=school_id).name.encode())
    return StreamingHttpResponse([packed])


@needs(C.SEE_RATES)
def shows_any_school_in_header(request, school_id):
    response = HttpResponse()
    name = School.objects.get(pk=school_id).code
    response["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    return response


@needs(C.SEE_RATES)
def answers_403(request, school_id):
    if not request.permissions.schools(C.SEE_RATES).filter(pk=school_id).exists():
        return HttpResponse("You may not.", status=403)
    return HttpResponse("This is yours.")


@needs(C.SEE_RATES)
def lists_all_schools(request):
    return HttpResponse(", ".join(School.objects.values_list("name", flat=True)))


@needs(C.SEE_RATES)
def trusts_query(request):
    school = School.objects.filter(pk=request.GET.get("school") or 0).first()
    return HttpResponse(school.name if school else "Choose a school.")


@needs(C.SEE_RATES)
def trusts_form(request):
    school = School.objects.filter(pk=request.POST.get("school") or 0).first()
    return HttpResponse(f"{school.name} is not yours." if school else "Choose one.")


@needs(C.SEE_RATES)
def writes_school_of_form(request):
    School.objects.filter(pk=request.POST.get("school") or 0).update(name="renamed")
    return HttpResponse("Renamed.")


@needs(C.SEE_RATES)
def appoints_by_form(request):
    if request.POST.get("user"):
        district = District.objects.get(pk=request.POST["district"])
        Membership.objects.create(user=request.user, role="analyst", district=district)
    return HttpResponse("Appointed.")


@staff
def logs_out_on_get(request):
    logout(request)
    return HttpResponse("Good-bye.")


@needs(C.SEE_RATES)
def writes_on_get(request, school_id):
    school = get_own_school(request, school_id)
    School.objects.filter(pk=school.pk).update(name=f"{school.name}, seen"[:200])
    return HttpResponse("Seen.")


@needs(C.SEE_RATES)
def deletes_on_get(request):
    QueuedEmail.objects.all().delete()
    return HttpResponse("Tidied up.")


@needs(C.SEE_RATES)
@require_POST
def writes_before_checking(request, school_id):
    School.objects.filter(pk=school_id).update(name="renamed")
    get_own_school(request, school_id)
    return HttpResponse("Renamed.")


@needs(C.SEE_RATES)
def crashes(request, school_id):
    school = get_own_school(request, school_id)
    return HttpResponse(school.name if request.method == "GET" else school.nothing)


def has_no_rule(request):
    return HttpResponse("Come in.")


@signed_in
def has_too_wide_a_rule(request, school_id):
    return HttpResponse("Something about a school.")


@staff
def has_an_unknown_parameter(request, gadget_id):
    raise Http404


@anyone
def is_unreachable(request):
    return HttpResponse("Nobody gets here.")


def school(name, view):
    return path(f"console/{name}/<int:school_id>/", view, name=name)


urlpatterns = [
    path("console/", include("accounts.urls")),
    school("shows_own_school", shows_own_school),
    school("shows_no_school", shows_no_school),
    school("shows_any_school", shows_any_school),
    school("shows_district_schools", shows_district_schools),
    path("console/search/", finds_any_school, name="finds_any_school"),
    path("console/one/", trusts_school_in_query, name="trusts_school_in_query"),
    path("console/files/", deletes_files, name="deletes_files"),
    school("shows_any_school_compressed", shows_any_school_compressed),
    school("shows_any_school_in_header", shows_any_school_in_header),
    school("answers_403", answers_403),
    path("console/lists/", lists_all_schools, name="lists_all_schools"),
    path("console/query/", trusts_query, name="trusts_query"),
    path("console/form/", trusts_form, name="trusts_form"),
    path("console/rename/", writes_school_of_form, name="writes_school_of_form"),
    path(
        "console/appoint/",
        appoints_by_form,
        name="appoints_by_form",
    ),
    path("console/bye/", logs_out_on_get, name="logs_out_on_get"),
    school("writes_on_get", writes_on_get),
    path("console/deletes/", deletes_on_get, name="deletes_on_get"),
    school("writes_before_checking", writes_before_checking),
    school("crashes", crashes),
    path("console/free/", has_no_rule, name="has_no_rule"),
    school("has_too_wide_a_rule", has_too_wide_a_rule),
    path("gadgets/<int:gadget_id>/", has_an_unknown_parameter, name="gadget"),
    path("console/lists/", is_unreachable, name="is_unreachable"),
]
