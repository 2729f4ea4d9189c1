"""Which part of a list is asked for, in which order."""

import datetime
import typing
import urllib.parse

from manila_lite import exception
from manila_lite.api import links
from manila_lite.api import schema
from manila_lite.api import wsgi

_LARGEST = 2**31 - 1


class Page(typing.NamedTuple):
    """The part of a list; `limit` None means all of it.

    `asked` tells whether the client gave the limit.
    """

    limit: int | None
    offset: int
    sort_key: str
    sort_dir: str
    limit_given: bool

    def cut(self, rows: typing.Sequence) -> typing.Sequence:
        """The page of a list that is in memory already."""
        end = None if self.limit is None else self.offset + self.limit
        return rows[self.offset : end]


def parse(
    query: typing.Mapping[str, str],
    *,
    cap: int | None = None,
    sort_keys: typing.Mapping[str, str] | None = None,
    strict_direction: bool = True,
) -> Page:
    """The page that a query asks for; raises Invalid for nonsense.

    With a cap no page is longer, and a limit of 0 or none means the cap.
    `sort_keys` leads from the words clients use to the column; without
    it sorting is not offered and its keys are ignored. When not strict,
    any direction but desc is ascending.
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
    """The truth of a query key such as all_tenants or with_count."""
    text = query.get(name)
    if text is None:
        return default
    try:
        return _boolean(text)
    except schema.ValidationError as refused:
        raise exception.InvalidInput(reason=f'{name} {refused.rule}') from None


def parse_time(
    query: typing.Mapping[str, str], name: str
) -> datetime.datetime | None:
    """The moment a query key names, in UTC; None without it."""
    if name not in query:
        return None
    try:
        found = datetime.datetime.fromisoformat(query[name])
        if found.tzinfo is not None:
            found = found.astimezone(datetime.UTC)
    except (ValueError, OverflowError):
        raise exception.InvalidInput(
            reason=f'{name} must be a time in the form of ISO 8601'
        ) from None
    return found.replace(tzinfo=None)


def next_links(
    req: wsgi.Request,
    page: Page,
    path: str,
    shown: typing.Sequence[typing.Mapping],
) -> list[dict]:
    """The link to the next page, in a list that is empty without one.

    There is one when the client gave a limit and the page is full. It
    carries the id of the last item shown as marker, which is what clients
    look for, and the offset, which is what we go by.
    """
    if not page.limit_given or len(shown) != page.limit:
        return []
    query = req.query | {
        'offset': str(page.offset + len(shown)),
        'marker': shown[-1]['id'],
    }
    return [
        {
            'rel': 'next',
            'href': links.collection_url(req, path)
            + '?'
            + urllib.parse.urlencode(query),
        }
    ]
