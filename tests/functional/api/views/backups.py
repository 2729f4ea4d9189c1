"""Views of share backups."""

from tests.functional.api.views.registry import (
    ALL_TENANTS,
    get_at_version,
    register_get_view,
    register_view,
)
from tests.support import share_backups

_SINCE = 80


def _listed(sample, api, minor, path):
    return get_at_version(sample, api, minor, f'{path}?{ALL_TENANTS}&limit=1')


@register_view('backups', 'share backup', 'summary', since=_SINCE)
def summaries(sample, api, minor):
    return _listed(sample, api, minor, '/share-backups')['share_backups']


@register_view('backups in detail', 'share backup', 'detail', since=_SINCE)
def details(sample, api, minor):
    return _listed(sample, api, minor, '/share-backups/detail')['share_backups']


@register_view('backups wrapper', 'share backup', 'list wrapper', since=_SINCE)
def wrapper(sample, api, minor):
    return [_listed(sample, api, minor, '/share-backups')]


register_get_view(
    'backup',
    'share_backup',
    lambda sample: f'/share-backups/{sample.backup}',
    'share backup',
    'detail',
    since=_SINCE,
)


@register_view(
    'backup restore',
    'share backup',
    'restore answer',
    personas=('member',),
    since=_SINCE,
)
def restores(sample, api, minor):
    answer = api.request(
        'POST',
        f'/share-backups/{sample.new_backup(api)}/action',
        {'restore': None},
        version=f'2.{minor}',
        expect=202,
        **share_backups.EXPERIMENTAL,
    )
    return [answer.json]
