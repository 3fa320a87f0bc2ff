"""Search, sort and page a list of the console in the database.

::

    listing = Listing(
        request,
        School.objects.all(),
        search=("name", "code"),
        sorts={"name": ("name",), "district": ("district__name", "name")},
    )
    return listing.render("accounts/schools.html", {"title": ...})

Search, order and page are in the query string, so that a list can be
bookmarked and shared. The template starts with `{% extends layout %}` and puts
its table into the block `list`, which is all that a request by htmx gets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
R = TypeVar("R")


class BoundedPaginator(Paginator):
    """Count at most `most` rows, because counting millions is slow."""

    def __init__(self, rows: QuerySet[Model], per_page: int, most: int) -> None:
        super().__init__(rows, per_page)
        self.rows = rows
        self.most = most

    @cached_property
    def _counted(self) -> int:
        # Without order, so that an index alone can answer.
        return self.rows.order_by()[: self.most + 1].count()

    @cached_property
    def count(self) -> int:
        return min(self._counted, self.most)

    @property
    def is_cut(self) -> bool:
        return self._counted > self.most


class BaseListing(Generic[R]):
    """Search, order and page in the query string."""

    page: Page[R]

    def __init__(self, request: StaffRequest, sorts: Mapping[str, object]) -> None:
        self.request = request
        # PostgreSQL refuses a text that contains a zero byte.
        self.query = request.GET.get("q", "")[:LONGEST_SEARCH].replace("\x00", "")
        wanted = request.GET.get("sort", "")
        self.sort, self.descending = wanted.removeprefix("-"), wanted.startswith("-")
        if self.sort not in sorts:
            self.sort, self.descending = next(iter(sorts), ""), False

    @property
    def words(self) -> list[str]:
        # Names are often copied with a comma: "Sorensen, Andre".
        return self.query.replace(",", " ").split()

    def render(self, template: str, context: Mapping[str, object]) -> HttpResponse:
        """Render the whole page, or only its list for a request by htmx."""
        layout = "console/list_alone.html" if self.is_part else "console/base.html"
        context = {
            **context,
            "listing": self,
            "rows": self.page.object_list,
            "layout": layout,
        }
        response = render(self.request, template, context)
        patch_vary_headers(response, ("HX-Request",))
        return response

    @property
    def is_part(self) -> bool:
        return bool(self.request.htmx)

    def address(self, **changed: object) -> str:
        """Return the query string with these parameters changed, or removed by None."""
        query: QueryDict = self.request.GET.copy()
        for name, value in changed.items():
            query.pop(name, None)
            if value is not None:
                query[name] = str(value)
        return f"?{query.urlencode()}"

    def address_sorted_by(self, name: str) -> str:
        """Return the link of a column header, which reverses its current order."""
        reverse = name == self.sort and not self.descending
        return self.address(sort=f"-{name}" if reverse else name, page=None)

    @property
    def order(self) -> str:
        """Return the value of `aria-sort` for what the rows show."""
        return "descending" if self.descending else "ascending"

    @property
    def pages(self) -> list[int | str]:
        """Return the page numbers to show, with Paginator.ELLIPSIS for gaps."""
        return list(
            self.page.paginator.get_elided_page_range(
                self.page.number, on_each_side=2, on_ends=1
            )
        )


class Listing(BaseListing[M]):
    """One page of a list. 2 statements: a count and the rows of the page."""

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
        """Read the query string and the page.

        `search` are field lookups; each word must be in one of them. The first
        of `sorts` is the default order. `most` limits the count, and with it
        the number of pages, of lists with millions of rows.
        """
        super().__init__(request, sorts or {})
        for word in self.words if search else ():
            anywhere = Q()
            for lookup in search:
                anywhere |= Q(**{f"{lookup}__icontains": word})
            rows = rows.filter(anywhere)
        self._is_reversed = False
        if self.sort:
            first = (sorts or {})[self.sort][0]
            self._is_reversed = first.startswith("-")
            # The key comes last, so that equal rows do not move between pages.
            columns = [*(sorts or {})[self.sort], "pk"]
            if self.descending:
                columns = [
                    name[1:] if name.startswith("-") else f"-{name}" for name in columns
                ]
            rows = rows.order_by(*columns)
        # Those of all pages.
        self.matching = rows
        pages: Paginator = (
            Paginator(rows, per_page)
            if most is None
            else BoundedPaginator(rows, per_page, most)
        )
        self.page = pages.get_page(request.GET.get("page"))

    @property
    def order(self) -> str:
        """Return the value of `aria-sort` for what the rows show."""
        return "ascending" if self._is_reversed == self.descending else "descending"


class ComputedListing(BaseListing[R]):
    """One page of rows that are in memory, because the database cannot sort them."""

    def __init__(
        self,
        request: StaffRequest,
        rows: Sequence[R],
        *,
        text: Callable[[R], str],
        sorts: Mapping[str, Callable[[R], Any]],
        per_page: int = PER_PAGE,
    ) -> None:
        """Search in what `text` returns; `rows` are in the order of equal ones."""
        super().__init__(request, sorts)
        words = [word.casefold() for word in self.words]
        matching = []
        for row in rows:
            searched = text(row).casefold() if words else ""
            if all(word in searched for word in words):
                matching.append(row)
        self.rows = sorted(matching, key=sorts[self.sort], reverse=self.descending)
        self.page = Paginator(self.rows, per_page).get_page(request.GET.get("page"))
