"""Lists: their pages, order and simple values of queries."""

import datetime
import typing
import urllib.parse

from manila_lite import exception
from manila_lite.api import answers, links, schema, wsgi
from manila_lite.api.fields import View
from manila_lite.api.filters import Filter, Filters
from manila_lite.db.queries import pages
from manila_lite.db.rows import Position

_LARGEST = 2**31 - 1
_LONGEST_ID = 36

MAX_OFFSET = 100_000
"""Maximum offset of a request that does not follow a link.

The database reads all rows that it skips.
"""

LINKED_ROW = 'after'
"""The query key of a link that says behind which row its page begins.

It has the offset of the link as well: a client that changes the offset of
a link means that offset. One that changes its `marker` means that item, the
last one that it has seen: openstacksdk does after the last link.
"""

_LINKED_ROW_FORM = {
    'type': 'string',
    'pattern': rf'^\d+,[\d:.T +-]*,[ -~]{{1,{_LONGEST_ID}}}$',
    'description': 'That of a link to the next page.',
}

KEYS = ('limit', 'offset', 'marker', 'sort_key', 'sort_dir', LINKED_ROW)
"""The query keys that select a page; no list takes them as filters."""


class Page(typing.NamedTuple):
    """The requested part of a list; `limit` None means all of it.

    It begins behind the row `after` if that is set, behind the item with the
    id `marker` if that is set, else at the offset. A page that
    `must_be_empty` reads the first row that may not be there.
    """

    limit: int | None
    offset: int
    sort_key: str
    sort_dir: str
    after: Position | None = None
    marker: str | None = None
    must_be_empty: bool = False

    def slice_rows(self, rows: typing.Sequence) -> typing.Sequence:
        """Return the page of a list that is already in memory."""
        start = self.offset
        if self.marker is not None:
            ids = [row.id for row in rows]
            start = len(rows)
            if self.marker in ids:
                start = ids.index(self.marker) + 1
        end = None if self.limit is None else start + self.limit
        return self.check(rows[start:end])

    def check(self, rows: typing.Sequence) -> typing.Sequence:
        """Return the rows; raises InvalidInput if the offset is too large."""
        if self.must_be_empty and rows:
            raise exception.InvalidInput(
                reason=f'offset must be at most {MAX_OFFSET}; follow the '
                'links to the next page, or narrow the list with filters'
            )
        return rows


def parse(
    query: typing.Mapping[str, str],
    *,
    cap: int | None = None,
    sort_keys: typing.Mapping[str, str] | None = None,
    ignored_keys: typing.Container[str] = (),
    empty_at_zero: bool = False,
) -> Page:
    """Return the page that a query requests; raises InvalidInput.

    `cap` is the maximum page length, also used without a limit, and for a
    limit of 0 unless `empty_at_zero`. `sort_keys` maps the keys of clients
    to columns; without it, sorting is not supported and its parameters are
    without effect; a direction is valid or refused in any case. A sort key
    of `ignored_keys` is ignored: that of a field which the caller does not
    see, and which the order would reveal.

    An offset beyond MAX_OFFSET is served only if the list ends before it:
    one row at MAX_OFFSET is read, and `check` refuses the page if there is.
    """
    if query.get('sort_dir', 'asc') not in ('asc', 'desc'):
        raise exception.InvalidInput(reason='sort_dir must be asc or desc')
    limit = _number(query, 'limit')
    page_limit = limit
    if cap is not None and not (empty_at_zero and limit == 0):
        page_limit = min(limit or cap, cap)
    sort_key, sort_dir = pages.DEFAULT_SORT_KEY, 'desc'
    if sort_keys is not None:
        sort_key = query.get('sort_key', sort_key)
        sort_dir = query.get('sort_dir', sort_dir)
        if sort_key not in sort_keys and 'sort_key' in query:
            raise exception.InvalidInput(
                reason='sort_key must be one of: ' + ', '.join(sorted(sort_keys))
            )
        if sort_key in ignored_keys:
            sort_key = pages.DEFAULT_SORT_KEY
        sort_key = sort_keys.get(sort_key, sort_key)
    offset = _number(query, 'offset', largest=None) or 0
    page = Page(page_limit, offset, sort_key, sort_dir)
    page = page._replace(**_position(query, page))
    if offset > MAX_OFFSET and not (page.after or page.marker):
        return Page(1, MAX_OFFSET, sort_key, sort_dir, must_be_empty=True)
    return page


def _position(query: typing.Mapping[str, str], page: Page) -> dict[str, typing.Any]:
    """Return behind what the page begins: `after`, `marker` or neither."""
    marker = query.get('marker') or None
    text = query.get(LINKED_ROW)
    if not text:
        # Clients that count rows may send a marker as well.
        return {} if page.offset else {'marker': marker}
    number, _, row = text.partition(',')
    made, _, id = row.partition(',')
    try:
        if not (0 < len(id) <= _LONGEST_ID and id.isascii()):
            raise ValueError
        if not id.isprintable():
            raise ValueError
        made_at = made and datetime.datetime.fromisoformat(made)
    except ValueError:
        raise exception.InvalidInput(
            reason=f'{LINKED_ROW} must be that of a link to the next page'
        ) from None
    if number != str(page.offset):
        return {}
    if marker not in (None, id):
        return {'marker': marker}
    if made_at and page.sort_key == pages.DEFAULT_SORT_KEY:
        return {'after': Position(made_at.replace(tzinfo=None), id)}
    return {}


def _number(
    query: typing.Mapping[str, str], name: str, largest: int | None = _LARGEST
) -> int | None:
    """Return a number of the query; None as `largest` caps what is more."""
    text = query.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal()):
        raise exception.InvalidInput(
            reason=f'{name} must be an integer from 0'
            + (f' to {largest}' if largest else '')
        )
    digits = text.lstrip('0')
    number = int(digits or 0) if len(digits) <= 10 else _LARGEST + 1
    if largest is not None and number > largest:
        raise exception.InvalidInput(
            reason=f'{name} must be an integer from 0 to {largest}'
        )
    return min(number, _LARGEST)


def query_keys(sort_keys: typing.Iterable[str] | None = None) -> tuple[Filter, ...]:
    """Return the keys that `parse` reads, for the API description."""
    sorting = (
        () if sort_keys is None else (Filter('sort_key', words=sorted(sort_keys)),)
    )
    return (
        Filter('limit', parse=_number),
        # What is too large for the database is beyond the end as well.
        Filter('offset', form={'type': 'integer', 'minimum': 0}),
        Filter('marker'),
        Filter(LINKED_ROW, form=_LINKED_ROW_FORM),
        *sorting,
        Filter('sort_dir', words=('asc', 'desc')),
    )


MARKER = Filter('marker')
"""The query key of lists without pages that `behind_marker` reads."""


def behind_marker(
    req: wsgi.Request, items: typing.Sequence[dict], key: str = 'id'
) -> typing.Sequence[dict]:
    """Return what follows the item that the query names as `marker`.

    For lists that are answered as a whole: clients that read every list in
    pages, as openstacksdk does, ask for what follows the last item.
    """
    marker = req.query.get('marker')
    if not marker:
        return items
    names = [str(item[key]) for item in items]
    return items[names.index(marker) + 1 :] if marker in names else []


_boolean = schema.boolean.at(0)


def parse_flag(
    query: typing.Mapping[str, str], name: str, default: bool = False
) -> bool:
    """Return the boolean value of a key such as all_tenants."""
    text = query.get(name)
    if text is None:
        return default
    try:
        return _boolean(text)
    except schema.ValidationError as error:
        raise exception.InvalidInput(reason=f'{name} {error.rule}') from None


def parse_time(query: typing.Mapping[str, str], name: str) -> datetime.datetime | None:
    """Return the time (UTC, naive) in a query key, or None without it."""
    if name not in query:
        return None
    try:
        time = datetime.datetime.fromisoformat(query[name])
        if time.tzinfo is not None:
            time = time.astimezone(datetime.UTC)
    except (ValueError, OverflowError):
        raise exception.InvalidInput(
            reason=f'{name} must be a time in ISO 8601 format'
        ) from None
    return time.replace(tzinfo=None)


def parse_date(query: typing.Mapping[str, str], name: str) -> datetime.datetime | None:
    """Return the first moment of the date in a query key, or None."""
    if name not in query:
        return None
    try:
        return datetime.datetime.strptime(query[name], '%Y-%m-%d')
    except ValueError:
        raise exception.InvalidInput(
            reason=f'{name} must be a date of the form yyyy-mm-dd'
        ) from None


def next_links(
    req: wsgi.Request, page: Page, path: str, rows: typing.Sequence[typing.Any]
) -> list[dict]:
    """Return a list with the link to the next page, or an empty list.

    There is a link if the page is full. It has the id of the last row as
    `marker`, which clients expect, and the `offset`. In the default order
    it also says behind which row the next page begins. In another order, the
    page behind a marker has no offset: the next one begins behind its last
    row as well.
    """
    if not rows or len(rows) != page.limit:
        return []
    last, offset = rows[-1], page.offset + len(rows)
    is_default = page.sort_key == pages.DEFAULT_SORT_KEY
    query = dict(req.query)
    query.pop(LINKED_ROW, None)
    if is_default or page.marker is None:
        made = last.created_at if is_default else ''
        query |= {
            'offset': str(offset),
            'marker': last.id,
            LINKED_ROW: f'{offset},{made},{last.id}',
        }
    else:
        query.pop('offset', None)
        query['marker'] = last.id
    return [
        {
            'rel': 'next',
            'href': links.collection_url(req, path)
            + '?'
            + urllib.parse.urlencode(query),
        }
    ]


def answer(
    req: wsgi.Request,
    page: Page,
    path: str,
    key: str,
    items: list[dict],
    rows: typing.Sequence[typing.Any],
    *,
    links_key: str | None = None,
    count: int | None = None,
) -> dict:
    """Return the response with a page of a list.

    `rows` are what the items show. The link to the next page stands under
    `links_key`, by default the key of the items with `_links`; `count` is
    left out if it is None.
    """
    page.check(rows)
    body: dict = {key: items}
    next_page = next_links(req, page, path, rows)
    if next_page:
        body[links_key or f'{key}_links'] = next_page
    if count is not None:
        body['count'] = count
    return body


def _page_of_summaries(controller: type['ListController']) -> answers.Shape:
    return _shape(controller, controller.summary)


def _page_of_details(controller: type['ListController']) -> answers.Shape:
    return _shape(controller, controller.details)


def _shape(controller: type['ListController'], view: View) -> answers.Shape:
    return answers.page(
        controller.key, view, links_key=controller.links_key, count=controller.has_count
    )


def _query_of(controller: type['ListController']) -> tuple:
    return (*query_keys(controller.sort_keys), *controller.filters)


class ListController(wsgi.Controller):
    """Base of controllers with a list of summaries and one of details.

    Subclasses name the path of the lists, the key of the items in bodies, and
    that of the links if it is not the same with `_links`; the two views, the
    filters whose keys they read, the sort keys and those of them that only
    administrators see, and the policies to `index` and `detail`.
    """

    path: str
    key: str
    links_key: str | None = None
    has_count = False
    summary: View
    details: View
    filters: typing.ClassVar[tuple[Filter | Filters, ...]] = ()
    sort_keys: typing.ClassVar[typing.Mapping[str, str] | None] = None
    admin_sort_keys: typing.ClassVar[tuple[str, ...]] = ()

    @wsgi.method('index', answer=_page_of_summaries, query=_query_of)
    def index(self, req: wsgi.Request) -> dict:
        return self._list(req, self.summary, self.path)

    @wsgi.method('detail', answer=_page_of_details, query=_query_of)
    def detail(self, req: wsgi.Request) -> dict:
        return self._list(req, self.details, f'{self.path}/detail')

    def _list(self, req: wsgi.Request, view: View, path: str) -> dict:
        page = self.parse_page(req)
        found = self.read_page(req, page, detailed=view is self.details)
        show = view.many(req.minor, self.sees_admin_fields(req))
        return answer(
            req,
            page,
            path,
            self.key,
            show(found.rows, self.more(req, found)),
            found.rows,
            links_key=self.links_key,
            count=found.total,
        )

    def parse_page(self, req: wsgi.Request) -> Page:
        """Return the page that a query requests; raises InvalidInput."""
        return parse(
            req.query,
            cap=self.max_limit,
            sort_keys=self.sort_keys,
            ignored_keys=() if req.ctx.is_admin else self.admin_sort_keys,
        )

    def read_page(
        self, req: wsgi.Request, page: Page, *, detailed: bool
    ) -> pages.Listing:
        """Return the rows of a page, and what only the detailed view shows."""
        raise NotImplementedError

    def sees_admin_fields(self, req: wsgi.Request) -> bool:
        return bool(req.ctx.is_admin)

    def more(self, req: wsgi.Request, found: pages.Listing) -> dict:
        """Return what views read in addition to the rows."""
        return found.children | {'links': links.Links(req, self.path)}
