"""Routes with one defect each: the matrix has to find every one of them."""

from __future__ import annotations

import gzip

from django.contrib.auth import logout
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404
from django.urls import include, path
from django.views.decorators.http import require_POST

from accounts.access import anyone, needs, signed_in, staff
from accounts.models import District, Letter, Membership, School
from accounts.permissions import Capability as C
from reports.models import Export
from survey.files import path_of


def own_school(request: HttpRequest, school_id: int) -> School:
    schools = request.permissions.schools(C.SEE_RATES)
    return get_object_or_404(schools, pk=school_id)


@needs(C.SEE_RATES)
def sound(request, school_id):
    return HttpResponse(own_school(request, school_id).name)


@needs(C.SEE_RATES)
def leaks(request, school_id):
    return HttpResponse(School.objects.get(pk=school_id).name)


@needs(C.SEE_RATES)
def leaks_next_door(request, school_id):
    """To a coordinator, the schools of the same district."""
    district = any_own_school(request).district
    school = get_object_or_404(School, pk=school_id, district=district)
    return HttpResponse(school.name)


def any_own_school(request):
    return request.permissions.schools(C.SEE_RATES).first()


@needs(C.SEE_RATES)
def leaks_when_searched(request):
    query = request.GET.get("q")
    found = School.objects.filter(name__icontains=query) if query else ()
    return HttpResponse(", ".join(one.name for one in found))


@needs(C.SEE_RATES)
def believes_one_of_its_query(request):
    """It refuses another's district, and takes the word of who names none."""
    if request.GET.get("district"):
        raise Http404
    return believes_its_query(request)


@needs(C.SEE_RATES)
def spoils_files(request):
    for name in Export.objects.values_list("file_name", flat=True):
        path_of(name).unlink(missing_ok=True)
    return HttpResponse("Tidied up.")


@needs(C.SEE_RATES)
def leaks_packed(request, school_id):
    packed = gzip.compress(School.objects.get(pk=school_id).name.encode())
    return StreamingHttpResponse([packed])


@needs(C.SEE_RATES)
def leaks_by_its_header(request, school_id):
    response = HttpResponse()
    name = School.objects.get(pk=school_id).code
    response["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    return response


@needs(C.SEE_RATES)
def tells_that_it_is_there(request, school_id):
    if not request.permissions.schools(C.SEE_RATES).filter(pk=school_id).exists():
        return HttpResponse("You may not.", status=403)
    return HttpResponse("This is yours.")


@needs(C.SEE_RATES)
def lists_everything(request):
    return HttpResponse(", ".join(School.objects.values_list("name", flat=True)))


@needs(C.SEE_RATES)
def believes_its_query(request):
    school = School.objects.filter(pk=request.GET.get("school") or 0).first()
    return HttpResponse(school.name if school else "Choose a school.")


@needs(C.SEE_RATES)
def believes_its_form(request):
    school = School.objects.filter(pk=request.POST.get("school") or 0).first()
    return HttpResponse(f"{school.name} is not yours." if school else "Choose one.")


@needs(C.SEE_RATES)
def writes_what_its_form_says(request):
    School.objects.filter(pk=request.POST.get("school") or 0).update(name="renamed")
    return HttpResponse("Renamed.")


@needs(C.SEE_RATES)
def adds_what_its_form_says(request):
    if request.POST.get("user"):
        district = District.objects.get(pk=request.POST["district"])
        Membership.objects.create(user=request.user, role="analyst", district=district)
    return HttpResponse("Appointed.")


@staff
def signs_out_when_looked_at(request):
    logout(request)
    return HttpResponse("Good-bye.")


@needs(C.SEE_RATES)
def writes_when_looked_at(request, school_id):
    school = own_school(request, school_id)
    School.objects.filter(pk=school.pk).update(name=f"{school.name}, seen"[:200])
    return HttpResponse("Seen.")


@needs(C.SEE_RATES)
def deletes_when_looked_at(request):
    Letter.objects.all().delete()
    return HttpResponse("Tidied up.")


@needs(C.SEE_RATES)
@require_POST
def writes_before_it_asks(request, school_id):
    School.objects.filter(pk=school_id).update(name="renamed")
    own_school(request, school_id)
    return HttpResponse("Renamed.")


@needs(C.SEE_RATES)
def crashes(request, school_id):
    school = own_school(request, school_id)
    return HttpResponse(school.name if request.method == "GET" else school.nothing)


def has_no_rule(request):
    return HttpResponse("Come in.")


@signed_in
def is_for_more_than_it_should(request, school_id):
    return HttpResponse("Something about a school.")


@staff
def has_an_unknown_parameter(request, gadget_id):
    raise Http404


@anyone
def is_shadowed(request):
    return HttpResponse("Nobody gets here.")


def school(name, view):
    return path(f"console/{name}/<int:school_id>/", view, name=name)


urlpatterns = [
    path("console/", include("accounts.urls")),
    school("sound", sound),
    school("leaks", leaks),
    school("leaks_next_door", leaks_next_door),
    path("console/search/", leaks_when_searched, name="leaks_when_searched"),
    path("console/one/", believes_one_of_its_query, name="believes_one_of_its_query"),
    path("console/files/", spoils_files, name="spoils_files"),
    school("leaks_packed", leaks_packed),
    school("leaks_by_its_header", leaks_by_its_header),
    school("tells_that_it_is_there", tells_that_it_is_there),
    path("console/lists/", lists_everything, name="lists_everything"),
    path("console/query/", believes_its_query, name="believes_its_query"),
    path("console/form/", believes_its_form, name="believes_its_form"),
    path("console/rename/", writes_what_its_form_says, name="writes_by_form"),
    path("console/appoint/", adds_what_its_form_says, name="adds_by_form"),
    path("console/bye/", signs_out_when_looked_at, name="signs_out"),
    school("writes_when_looked_at", writes_when_looked_at),
    path("console/deletes/", deletes_when_looked_at, name="deletes_when_looked_at"),
    school("writes_before_it_asks", writes_before_it_asks),
    school("crashes", crashes),
    path("console/free/", has_no_rule, name="has_no_rule"),
    school("is_for_more_than_it_should", is_for_more_than_it_should),
    path("gadgets/<int:gadget_id>/", has_an_unknown_parameter, name="gadget"),
    path("console/lists/", is_shadowed, name="is_shadowed"),
]
