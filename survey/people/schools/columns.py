"""Map the header of a list of schools to fields: that of NCES EDGE and others."""

from __future__ import annotations

from survey.people.rosters.columns import bare_key, squeeze
from survey.people.rosters.list_headers import ListHeader

# Field -> headers that mean it, without punctuation and case. The first one is
# NCES EDGE's, and names the field in messages.
_HEADERS = {
    "code": "ncessch schoolcode schoolid code ncesid",
    "district": "leaid districtcode districtid district",
    "name": "name schoolname schname school",
    "street": "street address streetaddress lstreet1 mstreet1",
    "city": "city town lcity mcity",
    "state": "state st stabr lstate mstate",
    "postal_code": "zip zipcode postalcode postcode lzip mzip",
    "latitude": "lat latitude latcod lat1516",
    "longitude": "lon long longitude lng loncod lon1516",
    "contact_name": "contact contactname",
    "contact_phone": "phone telephone contactphone",
    "contact_email": "email contactemail",
}
SCHOOL_HEADER = ListHeader(
    {name: headers.split() for name, headers in _HEADERS.items()},
    {"NCESSCH or NAME": ("code", "name"), "LAT": ("latitude",), "LON": ("longitude",)},
    keys=(squeeze, bare_key),
)
