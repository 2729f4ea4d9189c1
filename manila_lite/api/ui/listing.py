"""Lists: their columns, the form that finds rows, and the link to the next page."""

from collections.abc import Mapping, Sequence
import dataclasses
import typing
import urllib.parse

from manila_lite.api import paging
from manila_lite.api.ui.visit import Answer, Visit
from manila_lite.db.queries import pages

ROWS = 50
"""Rows of a page of a list."""

PARTS = 200
"""Most parts of a resource that are shown with it, such as rules."""

_POSITION = ('offset', 'marker', paging.LINKED_ROW)
_ORDER = ('sort_key', 'sort_dir')
_DEFAULT_ORDER = (pages.DEFAULT_SORT_KEY, 'desc')

FIRST = paging.Page(PARTS, 0, *_DEFAULT_ORDER)
"""The page that has the newest parts."""

SELECTED = 'selected-'
"""Begins the name of the field that selects a row, before its id."""

LISTED = 'listed'
"""The field with the query of the list that rows were selected in."""

LABELS = {
    'delete': 'Delete',
    'force-delete': 'Delete by force',
    'reset-status': 'Set the status',
}
"""The labels of actions on all selected rows."""

ID = 'id'
"""The field by which one resource is found; the page of that one answers."""


class Column(typing.NamedTuple):
    """A column of a list; with a key of the API, it can be sorted by.

    Narrow windows, as on telephones, leave out those that are `wide`.
    """

    title: str
    sort_key: str | None = None
    is_wide: bool = True


class Find(typing.NamedTuple):
    """A field of the form that finds rows; with choices, one of them is chosen."""

    name: str
    label: str
    choices: Sequence[str] = ()


@dataclasses.dataclass(frozen=True)
class Collection:
    """What a list shows, and how its rows are found.

    `finds` have the names that the API gives its filters. `many` are those of
    `LABELS` that are offered for selected rows; they are posted to `acts_at`,
    or below the path. A resource has a page of its own below the
    path, or that of another one, whose id it has in `shown_by`.
    """

    path: str
    noun: str
    columns: Sequence[Column]
    finds: Sequence[Find]
    many: Sequence[str] = ()
    statuses: Sequence[str] = ()
    acts_at: str = ''
    shown_by: str = ID

    @property
    def selected_path(self) -> str:
        """The path that actions on selected rows are posted to."""
        return self.acts_at or f'{self.path}/selected'

    def label(self, action: str) -> str:
        """Return the label of an action on selected rows."""
        return LABELS[action]

    def page_of(self, resource: Mapping[str, typing.Any]) -> str:
        """Return the path of the page that shows a resource."""
        return f'{self.path}/{urllib.parse.quote(resource[self.shown_by], "")}'

    def wanted(self, visit: Visit) -> dict[str, str]:
        """Return the filters that the browser asks for."""
        names = (field.name for field in self.finds if field.name != ID)
        return {name: visit.query[name] for name in names if visit.query.get(name)}


class Listing(typing.NamedTuple):
    """A page of a list; `following` is the query of the next one, if any.

    `query` is that of this page, and `kept` the form whose action on selected
    rows was refused.
    """

    collection: Collection
    rows: Sequence[typing.Any]
    following: str | None
    wanted: Mapping[str, str]
    order: tuple[str, str] = _DEFAULT_ORDER
    query: str = ''
    kept: Mapping[str, str] | None = None

    def is_selected(self, row_id: str, by_default: bool = False) -> bool:
        """Whether a row is selected; after a refusal, as in the refused form."""
        if self.kept is None:
            return by_default
        return SELECTED + row_id in self.kept

    def direction(self, column: Column) -> str | None:
        """Return how rows are sorted by a column, as ARIA calls it, or None."""
        key, direction = self.order
        if column.sort_key != key:
            return None
        return 'ascending' if direction == 'asc' else 'descending'

    def sorted_by(self, column: Column) -> str:
        """Return the query of the list by this column, reversed if it is already."""
        reverse = self.direction(column) == 'ascending'
        order = (column.sort_key, 'desc' if reverse else 'asc')
        return urllib.parse.urlencode(
            {**self.wanted, **dict(zip(_ORDER, order, strict=True))}
        )


def read(
    visit: Visit,
    collection: Collection,
    path: str,
    key: str,
    *,
    all_projects: bool = False,
    convert: Mapping[str, typing.Callable[[str], str]] | None = None,
) -> Listing:
    """Return the page of a list of the API that the browser asks for.

    `convert` has a function for each filter that turns input into what the API
    expects.
    """
    wanted = collection.wanted(visit)
    order = _order(visit, collection)
    query = {name: visit.query[name] for name in _POSITION if visit.query.get(name)}
    query |= {
        name: (convert or {}).get(name, str)(value) for name, value in wanted.items()
    }
    if order != _DEFAULT_ORDER:
        query |= dict(zip(_ORDER, order, strict=True))
    if all_projects:
        query['all_tenants'] = '1'
    found = visit.api.get(path, limit=ROWS, **query)
    following = None
    for name in (f'{key}_links', f'{key[:-1]}_links'):
        for link in found.get(name, ()):
            asked = wanted | {k: v for k, v in query.items() if k in _ORDER}
            following = urllib.parse.urlencode(asked | _position(link['href']))
    return Listing(collection, found[key], following, wanted, order, **as_sent(visit))


def as_sent(visit: Visit) -> dict[str, typing.Any]:
    """Return the query of a list, and the form if its action was refused."""
    kept = visit.form if LISTED in visit.form else None
    return {'query': urllib.parse.urlencode(visit.query), 'kept': kept}


def found_by_id(visit: Visit, collection: Collection) -> Answer | None:
    """Send the browser to the resource whose id was typed, if one was."""
    id = visit.query.get(ID, '').strip()
    return visit.see(f'{collection.path}/{urllib.parse.quote(id, "")}') if id else None


def _order(visit: Visit, collection: Collection) -> tuple[str, str]:
    """Return the order that is asked for, if it is that of a column."""
    key, direction = (visit.query.get(name, '') for name in _ORDER)
    if key not in {column.sort_key for column in collection.columns if column.sort_key}:
        return _DEFAULT_ORDER
    return key, 'asc' if direction == 'asc' else 'desc'


def _position(href: str) -> dict[str, str]:
    query = urllib.parse.parse_qsl(urllib.parse.urlsplit(href).query)
    return {name: value for name, value in query if name in _POSITION}


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
