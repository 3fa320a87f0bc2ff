from __future__ import annotations

from provisioning.measure.benchmarks.finder import Place, draw_places, hit_ratio


def test_places_are_drawn_again_with_twelve_decimals():
    places = list(draw_places(1000, seed=1))
    assert places == list(draw_places(1000, seed=1)) != list(draw_places(1000, seed=2))
    assert {len(each.latitude.partition(".")[2]) for each in places} == {12}
    # Towns by size: some cells have many of them.
    assert len({each.cell(2) for each in places}) < 900


def test_coordinates_are_cut_as_nginx_cuts_them():
    place = Place("41.879999999999", "-87.639999999999")
    assert place.cell(2) == ("41.87", "-87.63")
    assert place.cell(12) == (place.latitude, place.longitude)


def test_a_request_hits_a_page_that_is_young_enough():
    here, there = Place("1.001", "1.001"), Place("1.002", "1.002")
    places = [here, there, here, here]

    def ratio(decimals, lifetime, warm=0.0):
        return hit_ratio(
            places, decimals=decimals, rate=1, lifetime=lifetime, warm=warm
        )

    assert ratio(2, lifetime=10) == 0.75
    assert ratio(3, lifetime=10) == 0.5
    assert ratio(3, lifetime=2) == 0.25
    assert ratio(2, lifetime=10, warm=1) == 1
