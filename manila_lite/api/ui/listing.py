"""Pages of lists, and the link from one to the next."""

from collections.abc import Mapping, Sequence
import typing
import urllib.parse

from manila_lite.api import paging
from manila_lite.api.ui.visit import Visit
from manila_lite.db.queries import pages

ROWS = 50
"""Rows of a page of a list."""

PARTS = 200
"""Most parts of a resource that are shown with it, such as rules."""

_POSITION = ('offset', 'marker', paging.LINKED_ROW)


FIRST = paging.Page(PARTS, 0, pages.DEFAULT_SORT_KEY, 'desc')
"""The page that has the newest parts."""


class Listing(typing.NamedTuple):
    """A page of a list; `following` is the query of the next one, if any."""

    rows: Sequence[typing.Any]
    following: str | None


def read(
    visit: Visit,
    path: str,
    key: str,
    *,
    filters: Sequence[str] = (),
    all_projects: bool = False,
    most: int | None = None,
) -> Listing:
    """Return the page of a list of the API that the browser asks for.

    `filters` are the keys that it may filter by.
    """
    wanted = {
        name: visit.query[name]
        for name in (*_POSITION, *filters)
        if visit.query.get(name)
    }
    if all_projects:
        wanted['all_tenants'] = '1'
    found = visit.api.get(path, limit=most or ROWS, **wanted)
    following = None
    for name in (f'{key}_links', f'{key[:-1]}_links'):
        for link in found.get(name, ()):
            following = _following(link['href'], (*_POSITION, *filters))
    return Listing(found[key], following)


def _following(href: str, kept: Sequence[str]) -> str:
    query = urllib.parse.parse_qsl(urllib.parse.urlsplit(href).query)
    return urllib.parse.urlencode([one for one in query if one[0] in kept])


def page(visit: Visit) -> paging.Page:
    """Return the page of a list that the API does not show in pages."""
    query = {k: v for k, v in visit.query.items() if k in _POSITION}
    return paging.parse(query | {'limit': str(ROWS)})


def following(
    page: paging.Page, rows: Sequence[typing.Any], filters: Mapping[str, object]
) -> str | None:
    """Return the query of the page behind this one, if it is full."""
    if len(page.check(rows)) != page.limit:
        return None
    last, offset = rows[-1], page.offset + len(rows)
    return urllib.parse.urlencode(
        {
            **filters,
            'offset': offset,
            paging.LINKED_ROW: f'{offset},{last.created_at},{last.id}',
        }
    )
