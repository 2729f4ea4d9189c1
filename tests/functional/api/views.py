"""Where each published view is seen: a request, and what it shows."""

from collections.abc import Callable
import typing

from tests.functional.api.world import World
from tests.support.cloud import Api

Items = list[dict[str, typing.Any]]
Look = Callable[[World, Api, str], Items]


class View(typing.NamedTuple):
    """A view of response-fields.csv in one place where it is seen.

    `look` gives the items shown to the caller at a version; `who` may see
    them, `since` the first version.
    """

    place: str
    resource: str
    parts: tuple[str, ...]
    look: Look
    who: tuple[str, ...] = ('admin', 'member')
    since: int = 0


VIEWS: list[View] = []


def view(place: str, resource: str, *parts: str, **more: typing.Any
         ) -> Callable[[Look], Look]:
    def keep(look: Look) -> Look:
        VIEWS.append(View(place, resource, parts, look, **more))
        return look
    return keep


def shown_by_get(place: str, key: str, path: Callable[[World], str],
                 resource: str, *parts: str, **more: typing.Any) -> None:
    """A view that a GET shows below a key, one item or a list of them."""
    @view(place, resource, *parts, **more)
    def look(world, api, version):
        found = api.get(path(world), version=version)[key]
        return found if isinstance(found, list) else [found]


def wrapper_of_get(place: str, path: Callable[[World], str], resource: str,
                   *parts: str, **more: typing.Any) -> None:
    """The keys around what is shown."""
    @view(place, resource, *parts, **more)
    def look(world, api, version):
        return [api.get(path(world), version=version)]


# Versions

shown_by_get('versions', 'versions', lambda world: '/', 'version', 'item')


# Shares

def _share(world):
    return f'/shares/{world.share}'


def _instance(world):
    return f'/share_instances/{world.instance_of(world.share)}'


def _export_of(world):
    return f'/export_locations/{world.export_of(world.share)}'


_ALL = 'all_tenants=1'
_ADMIN = {'who': ('admin',), 'since': 3}

wrapper_of_get(
    'shares', lambda world: f'/shares?{_ALL}&limit=1&with_count=true',
    'share', 'list wrapper')
shown_by_get('shares', 'shares', lambda world: f'/shares?{_ALL}', 'share',
             'summary')
shown_by_get('shares in detail', 'shares', lambda world:
             f'/shares/detail?{_ALL}', 'share', 'detail')
shown_by_get('share', 'share', _share, 'share', 'detail')


@view('share create', 'share', 'detail')
def created(world, api, version):
    return [api.create(version=version)]


@view('share update', 'share', 'detail')
def updated(world, api, version):
    return [api.request('PUT', _share(world),
                        {'share': {'display_name': 'new'}},
                        version=version, expect=200).json['share']]


wrapper_of_get('share metadata', lambda world: f'{_share(world)}/metadata',
               'metadata', 'all kinds')


# Instances

wrapper_of_get('instances', lambda world: '/share_instances',
               'share instance', 'list wrapper', **_ADMIN)
shown_by_get('instances', 'share_instances', lambda world: '/share_instances',
             'share instance', 'detail', **_ADMIN)
shown_by_get('instance', 'share_instance', _instance, 'share instance',
             'detail', **_ADMIN)
shown_by_get('instances of share', 'share_instances',
             lambda world: f'{_share(world)}/instances', 'share instance',
             'detail', **_ADMIN)


# Export locations

for of, parent, who in (('share', _share, ('admin', 'member')),
                        ('instance', _instance, ('admin',))):
    def listed(world, parent=parent):
        return f'{parent(world)}/export_locations'

    def one(world, parent=parent):
        return parent(world) + _export_of(world)

    more = {'who': who, 'since': 9}
    wrapper_of_get(f'exports of {of}', listed, 'export location',
                   'list wrapper', **more)
    shown_by_get(f'exports of {of}', 'export_locations', listed,
                 'export location', 'summary', **more)
    wrapper_of_get(f'export of {of}', one, 'export location',
                   'show wrapper', **more)
    shown_by_get(f'export of {of}', 'export_location', one,
                 'export location', 'detail', **more)

wrapper_of_get('export metadata', lambda world:
               f'{_share(world)}{_export_of(world)}/metadata', 'metadata',
               'all kinds', since=87)
