from __future__ import annotations

from provisioning.measure.benchmarks.finder import Place, draw_places, hit_ratio


def test_places_are_drawn_again_with_twelve_decimals():
    places = list(draw_places(1000, seed=1))
    assert places == list(draw_places(1000, seed=1)) != list(draw_places(1000, seed=2))
    assert {len(each.latitude.partition(".")[2]) for each in places} == {12}
    # Towns by size: some cells have many of them.
    assert len({each.cell for each in places}) < 900


def test_coordinates_are_cut_as_nginx_cuts_them():
    place = Place("41.879999999999", "-87.639999999999")
    assert place.cell == ("41.87", "-87.63")


def test_a_request_hits_a_page_that_is_young_enough():
    here, beside, far = (Place(each, each) for each in ("1.001", "1.002", "1.011"))
    near, apart = [here, beside, here, here], [here, far, here, here]

    def ratio(places, lifetime, warm=0.0):
        return hit_ratio(places, rate=1, lifetime=lifetime, warm=warm)

    assert ratio(near, lifetime=10) == 0.75
    assert ratio(apart, lifetime=10) == 0.5
    assert ratio(apart, lifetime=2) == 0.25
    assert ratio(near, lifetime=10, warm=1) == 1
