"""A list of the console: searched, sorted and paged in the database.

::

    listing = Listing(
        request,
        School.objects.all(),
        search=("name", "code"),
        sorts={"name": ("name",), "district": ("district__name", "name")},
    )
    return listing.render("accounts/schools.html", {"title": ...})

What was asked stands in the address, so that it can be kept and sent on. The
template begins with `{% extends layout %}` and has its table in the block
`list`: a request by htmx gets that block alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Generic, TypeVar

from django.core.paginator import Page, Paginator
from django.db.models import Model, Q, QuerySet
from django.http import HttpResponse, QueryDict
from django.shortcuts import render
from django.utils.cache import patch_vary_headers

from accounts.http import StaffRequest

PER_PAGE = 50
LONGEST_SEARCH = 200
M = TypeVar("M", bound=Model)


class BoundedPaginator(Paginator):
    """Counts no further than `most`: of millions, nobody reads the last page."""

    def __init__(self, rows: QuerySet[Any], per_page: int, most: int) -> None:
        super().__init__(rows, per_page)
        self.rows = rows
        self.most = most

    @cached_property
    def _counted(self) -> int:
        # Without its order, which a count needs not: an index may do.
        return self.rows.order_by()[: self.most + 1].count()

    @cached_property
    def count(self) -> int:
        return min(self._counted, self.most)

    @property
    def is_cut(self) -> bool:
        return self._counted > self.most


class Listing(Generic[M]):
    """2 statements: the number of rows, and those of one page."""

    def __init__(
        self,
        request: StaffRequest,
        rows: QuerySet[M],
        *,
        search: Sequence[str] = (),
        sorts: Mapping[str, Sequence[str]] | None = None,
        per_page: int = PER_PAGE,
        most: int | None = None,
    ) -> None:
        """`search` are look-ups that may hold each word; the first of `sorts`
        is the order that nobody asked for. `most` is how many rows are counted
        and can be paged through, where there may be millions."""
        self.request = request
        self.sorts = dict(sorts or {})
        self.searched = bool(search)
        self.query = request.GET.get("q", "")[:LONGEST_SEARCH].replace("\x00", "")
        self.sort, self.descending = self._asked_order()
        rows = _found(rows, search, self.query)
        if self.sorts:
            rows = rows.order_by(*self._order())
        pages: Paginator = (
            Paginator(rows, per_page)
            if most is None
            else BoundedPaginator(rows, per_page, most)
        )
        self.page: Page[M] = pages.get_page(request.GET.get("page"))

    def render(self, template: str, context: Mapping[str, Any]) -> HttpResponse:
        """The page, or for htmx its list alone: `layout` is what it extends."""
        layout = "console/list_alone.html" if self.is_part else "console/base.html"
        everything = {
            **context,
            "listing": self,
            "rows": self.page.object_list,
            "layout": layout,
        }
        response = render(self.request, template, everything)
        patch_vary_headers(response, ("HX-Request",))
        return response

    @property
    def is_part(self) -> bool:
        return bool(self.request.htmx)

    def address(self, **changed: object) -> str:
        """The query of this list with something changed; None takes it out."""
        asked: QueryDict = self.request.GET.copy()
        for name, value in changed.items():
            asked.pop(name, None)
            if value is not None:
                asked[name] = str(value)
        return f"?{asked.urlencode()}"

    def address_sorted_by(self, name: str) -> str:
        """Again by the same column: the other way round."""
        turned = name == self.sort and not self.descending
        return self.address(sort=f"-{name}" if turned else name, page=None)

    @property
    def order(self) -> str:
        """As `aria-sort` says it, of what the rows show: newest first descends."""
        downwards = self.sorts[self.sort][0].startswith("-")
        return "ascending" if downwards == self.descending else "descending"

    @property
    def pages(self) -> list[int | str]:
        """The numbers to show, with Paginator.ELLIPSIS where some are left out."""
        return list(
            self.page.paginator.get_elided_page_range(
                self.page.number, on_each_side=2, on_ends=1
            )
        )

    def _asked_order(self) -> tuple[str, bool]:
        asked = self.request.GET.get("sort", "")
        name = asked.removeprefix("-")
        if name in self.sorts:
            return name, asked.startswith("-")
        return next(iter(self.sorts), ""), False

    def _order(self) -> list[str]:
        # By key in the end: rows that are alike must not wander between pages.
        columns = [*self.sorts[self.sort], "pk"]
        return [_turned(one) if self.descending else one for one in columns]


def _turned(column: str) -> str:
    return column[1:] if column.startswith("-") else f"-{column}"


def _found(rows: QuerySet[M], search: Sequence[str], query: str) -> QuerySet[M]:
    """Each word has to be somewhere."""
    for word in query.split() if search else ():
        anywhere = Q()
        for look_up in search:
            anywhere |= Q(**{f"{look_up}__icontains": word})
        rows = rows.filter(anywhere)
    return rows
