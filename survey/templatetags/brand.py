"""The name, logo, color and contact of the state, for pages that name no other place.

`{% state_place as place %}`, then include `survey/_accent.html`, `survey/_mark.html`,
`survey/_contact.html` or `survey/_help.html`.
"""

from __future__ import annotations

from django import template

from survey.taking.places import PlaceOnPage, place_of_state

register = template.Library()


@register.simple_tag
def state_place() -> PlaceOnPage:
    return place_of_state()
