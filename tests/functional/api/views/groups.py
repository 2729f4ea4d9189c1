"""Views of share groups and their snapshots."""

from tests.functional.api.views.registry import (
    ALL_TENANTS,
    get_at_version,
    register_get_view,
    register_view,
)

_SINCE = 31


def _listed(sample, api, minor, path):
    return get_at_version(sample, api, minor, f'{path}?{ALL_TENANTS}&limit=1')


@register_view('groups', 'share group', 'summary', since=_SINCE)
def summaries(sample, api, minor):
    return _listed(sample, api, minor, '/share-groups')['share_groups']


@register_view('groups in detail', 'share group', 'detail', since=_SINCE)
def details(sample, api, minor):
    return _listed(sample, api, minor, '/share-groups/detail')['share_groups']


@register_view('groups wrapper', 'share group', 'list wrapper', since=_SINCE)
def wrapper(sample, api, minor):
    return [_listed(sample, api, minor, '/share-groups')]


register_get_view(
    'group',
    'share_group',
    lambda sample: f'/share-groups/{sample.group}',
    'share group',
    'detail',
    since=_SINCE,
)


_SNAPSHOTS = '/share-group-snapshots'


@register_view('group snapshots', 'share group snapshot', 'summary', since=_SINCE)
def snapshot_summaries(sample, api, minor):
    return _listed(sample, api, minor, _SNAPSHOTS)['share_group_snapshots']


@register_view(
    'group snapshots in detail', 'share group snapshot', 'detail', since=_SINCE
)
def snapshot_details(sample, api, minor):
    found = _listed(sample, api, minor, f'{_SNAPSHOTS}/detail')
    return found['share_group_snapshots']


@register_view(
    'group snapshots wrapper', 'share group snapshot', 'list wrapper', since=_SINCE
)
def snapshot_wrapper(sample, api, minor):
    return [_listed(sample, api, minor, _SNAPSHOTS)]


register_get_view(
    'group snapshot',
    'share_group_snapshot',
    lambda sample: f'{_SNAPSHOTS}/{sample.group_snapshot}',
    'share group snapshot',
    'detail',
    since=_SINCE,
)

register_get_view(
    'group snapshot members',
    'share_group_snapshot_members',
    lambda sample: f'{_SNAPSHOTS}/{sample.group_snapshot}/members',
    'share group snapshot',
    'members',
    since=_SINCE,
)
