"""Paging, sorting and simple values of list queries."""

import datetime
import typing
import urllib.parse

from manila_lite import exception
from manila_lite.api import links
from manila_lite.api import schema
from manila_lite.api import wsgi

_LARGEST = 2**31 - 1


class Page(typing.NamedTuple):
    """The requested part of a list; `limit` None means all of it.

    `limit_given` is whether the client sent a limit.
    """

    limit: int | None
    offset: int
    sort_key: str
    sort_dir: str
    limit_given: bool

    def cut(self, rows: typing.Sequence) -> typing.Sequence:
        """Return the page of a list that is already in memory."""
        end = None if self.limit is None else self.offset + self.limit
        return rows[self.offset : end]


def parse(
    query: typing.Mapping[str, str],
    *,
    cap: int | None = None,
    sort_keys: typing.Mapping[str, str] | None = None,
    strict_direction: bool = True,
) -> Page:
    """Return the page that a query requests; raises InvalidInput.

    `cap` is the maximum page length, also used for a limit of 0 or none.
    `sort_keys` maps the keys of clients to columns; without it, sorting is
    not supported and its parameters are ignored. Unless `strict_direction`,
    any direction other than desc is ascending.
    """
    limit = _number(query, 'limit')
    page_limit = limit if cap is None else min(limit or cap, cap)
    sort_key, sort_dir = 'created_at', 'desc'
    if sort_keys is not None:
        sort_key = query.get('sort_key', sort_key)
        sort_dir = query.get('sort_dir', sort_dir)
        if sort_key not in sort_keys and 'sort_key' in query:
            raise exception.InvalidInput(
                reason='sort_key must be one of: '
                + ', '.join(sorted(sort_keys))
            )
        sort_key = sort_keys.get(sort_key, sort_key)
        if sort_dir not in ('asc', 'desc'):
            if strict_direction:
                raise exception.InvalidInput(
                    reason='sort_dir must be asc or desc'
                )
            sort_dir = 'asc'
    return Page(
        page_limit,
        _number(query, 'offset') or 0,
        sort_key,
        sort_dir,
        bool(limit),
    )


def _number(query: typing.Mapping[str, str], name: str) -> int | None:
    text = query.get(name)
    if text is None:
        return None
    if not (
        text.isascii()
        and text.isdecimal()
        and len(text) <= 10
        and int(text) <= _LARGEST
    ):
        raise exception.InvalidInput(
            reason=f'{name} must be an integer from 0 to {_LARGEST}'
        )
    return int(text)


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


def parse_time(
    query: typing.Mapping[str, str], name: str
) -> datetime.datetime | None:
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


def next_links(
    req: wsgi.Request,
    page: Page,
    path: str,
    items: typing.Sequence[typing.Mapping],
) -> list[dict]:
    """Return a list with the link to the next page, or an empty list.

    There is a link if the client sent a limit and the page is full. It has
    the id of the last item as `marker`, which clients expect, and the
    `offset`, which this service uses.
    """
    if not page.limit_given or len(items) != page.limit:
        return []
    query = req.query | {
        'offset': str(page.offset + len(items)),
        'marker': items[-1]['id'],
    }
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
    *,
    links_key: str | None = None,
    count: int | None = None,
) -> dict:
    """Return the response with a page of a list.

    The link to the next page stands under `links_key`, by default the key
    of the items with `_links`; `count` is left out if it is None.
    """
    body: dict = {key: items}
    next_page = next_links(req, page, path, items)
    if next_page:
        body[links_key or f'{key}_links'] = next_page
    if count is not None:
        body['count'] = count
    return body
