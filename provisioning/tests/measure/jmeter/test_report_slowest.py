from __future__ import annotations

from provisioning.measure.jmeter.report import LEAST, Samples, sentence_of


def test_the_slowest_view_page_and_survey_are_named():
    samples = Samples()
    for n in range(100):
        # One outlier of a hundred is not the 95th percentile.
        quick = 5.0 if n == 0 else 0.01
        samples.add(quick, view="survey_login", survey="students")
        samples.add(0.02, view="survey_change_page", survey="students", page=1)
        samples.add(0.03, view="survey_change_page", survey="parents", page=1)
        samples.add(0.05, view="survey_content", survey="parents", page=2)
    figures = samples.slowest()
    assert figures == {
        "view": {"name": "survey_content", "p95_ms": 50.0, "requests": 100},
        "page": {"name": "page 2 of parents", "p95_ms": 50.0, "requests": 100},
        "survey": {"name": "parents", "p95_ms": 50.0, "requests": 200},
    }
    assert ", page 2 of parents (p95 50 ms of 100)" in sentence_of(figures)


def test_too_few_requests_are_not_compared():
    samples = Samples()
    for _ in range(LEAST):
        samples.add(0.01, view="survey_login")
    for _ in range(LEAST - 1):
        samples.add(0.5, view="survey_display", page=1, survey="students")
    assert samples.slowest() == {
        "view": {"name": "survey_login", "p95_ms": 10.0, "requests": LEAST}
    }
    assert sentence_of({}).endswith(": none.")
