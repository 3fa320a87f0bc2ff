from __future__ import annotations

import argparse

import pytest

from provisioning.commands import Refusal
from provisioning.measure.jmeter import shapes


def options(**changes: object) -> argparse.Namespace:
    usual = {"shape": "day", "rate": 277.0, "duration": 60.0, "think": None}
    return argparse.Namespace(**{**usual, "ramp": 10.0, "within": 20.0, **changes})


def test_people_are_computed_from_requests():
    assert shapes.requests_per_person(10) == pytest.approx(27.7)
    load = shapes.load_of(options(), pages=10)
    assert load.arrivals == pytest.approx(10)
    assert load.ends - load.begins == 60
    # The last to come in that time are still busy when it ends.
    assert load.begins >= load.ramp + 10 * 3


def test_the_expected_rate_follows_actual_arrivals():
    load = shapes.load_of(options(), pages=10)
    even = [second / 10 for second in range(100, 1200)]
    assert load.drawn(even) == pytest.approx(277, rel=0.01)
    # Nobody came in the first half of the time that is looked at.
    late = [came for came in even if came > load.begins + 30]
    assert load.drawn(late) < 277 / 2
    assert load.drawn([0.0]) == 0


def test_at_the_bell_1250_requests_a_second_are_200_classes():
    given = options(shape="bell", rate=1250.0, duration=133.0)
    load = shapes.load_of(given, pages=10)
    assert load.people == 6002
    assert str(load).startswith("6,002 people, 200 classes of 30, within 20 s")
    assert load.properties()["ramp"] == "0.0"


def test_load_servers_share_the_arrivals():
    load = shapes.load_of(options(), pages=10)
    assert load.properties(servers=4)["arrivals"] == "2.5000"


def test_a_day_uses_the_default_think_time():
    load = shapes.load_of(options(), pages=10)
    assert (load.shape, load.think) == ("day", 3.0)
    assert shapes.load_of(options(think=5.0), pages=10).think == 5.0


def test_the_bell_ignores_the_ramp():
    load = shapes.load_of(options(shape="bell"), pages=10)
    assert (load.shape, load.ramp, load.plateau) == ("bell", 0, 20.0)


def test_a_longer_survey_needs_fewer_people_for_the_same_rate():
    short = shapes.load_of(options(), pages=5)
    long = shapes.load_of(options(), pages=50)
    assert long.arrivals < short.arrivals


def test_the_schedule_ends_after_the_last_person():
    load = shapes.load_of(options(), pages=10)
    assert load.seconds == pytest.approx(2 * 10 + load.plateau + load.last)
    assert load.last > load.stay


@pytest.fixture
def pages(tmp_path):
    return tmp_path / "pages.properties"


def test_pages_are_averaged_over_the_answers(pages):
    pages.write_text("take.1.pages=4\ntake.2.pages=8\ntake.1.1.items=99\nno sign\n")
    assert shapes.mean_visit(pages)[0] == 6


@pytest.mark.parametrize("properties", ["", "take.1.pages=0\n"])
def test_a_file_without_pages_is_refused(pages, properties):
    pages.write_text(properties)
    with pytest.raises(Refusal, match="no page to take"):
        shapes.mean_visit(pages)


def test_one_code_brings_everybody_within_ten_minutes():
    given = options(shape="one-code", within=None)
    load = shapes.load_of(given, pages=10)
    # 0.65 of what would come if all time were the peak.
    assert load.people == round(load.arrivals * 600 * 0.65)
    assert load.ramp + load.plateau + load.fall == pytest.approx(600)
    assert load.seconds == pytest.approx(load.ends)
    assert str(load).startswith(f"{load.people:,} people within 600 s")
    assert load.properties()["fall"] == "360.0"
    # All requests of all people count.
    came = [second / 100 for second in range(60_000)]
    assert load.drawn(came) == pytest.approx(
        len(came) * load.requests / load.duration, rel=0.01
    )


def test_requests_of_an_open_code_are_counted_by_child(pages):
    lines = ["take.1.pages=4", "take.1.choice=begin", "take.1.children=2"]
    lines += ["take.2.pages=4", "take.2.choice=decline", "take.2.children=1"]
    pages.write_text("\n".join(lines))
    # The open code's page; twice the offer, Begin, code, shell, outline, review,
    # finish, thanks; and who declines: page, offer, Decline.
    assert shapes.mean_visit(pages) == (4.0, (17 + 3) / 2)
    pages.write_text("take.1.pages=4")
    assert shapes.mean_visit(pages) == (4.0, 7.0)
