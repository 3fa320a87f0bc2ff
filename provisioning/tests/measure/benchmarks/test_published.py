from __future__ import annotations

from provisioning.measure.benchmarks.published import new_links

BODY = b"""
<a href="/results/1/districts/2/?lang=es&amp;page=2">More</a> <a href="../3/#top">3</a>
<a href="/results/1/answers.csv?lang=es">Answers</a> <a href="/schools/">Schools</a>
<a href="../3/">again</a> <a href="/results/">All</a>
"""


def test_links_between_public_pages_are_followed_once_and_files_are_not():
    assert new_links("/results/1/", BODY, ["/results/"]) == [
        "/results/1/districts/2/?lang=es&page=2",
        "/results/3/",
    ]
