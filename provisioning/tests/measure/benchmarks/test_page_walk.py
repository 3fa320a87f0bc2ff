from __future__ import annotations

from django.http import HttpResponse, HttpResponseRedirect, StreamingHttpResponse

from provisioning.measure.benchmarks.page_walk import body_of, links_of


def links(body: str, content_type: str = "text/html") -> list[str]:
    reply = HttpResponse(content_type=content_type)
    return links_of("/console/schools/", reply, body.encode())


def test_links_are_relative_to_their_page():
    page = '<a href="7/#top">x</a> <a href="/console/">y</a> <a name="z">z</a>'
    assert links(page) == ["/console/schools/7/", "/console/"]


def test_other_elements_are_no_links():
    assert links('<link href="/static/a.css"><form action="/x"></form>') == []


def test_files_have_no_links():
    assert links('<a href="/x">x</a>', "text/csv") == []


def test_a_redirect_leads_to_its_target():
    reply = HttpResponseRedirect("../people/")
    assert links_of("/console/schools/", reply, b"") == ["/console/people/"]


def test_streamed_bodies_are_joined():
    assert body_of(StreamingHttpResponse([b"a", b"b"])) == b"ab"
    assert body_of(HttpResponse(b"ab")) == b"ab"
