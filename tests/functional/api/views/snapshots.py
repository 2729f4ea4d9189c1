"""Views of snapshots."""

from tests.functional.api import published_api
from tests.functional.api.views.registry import (
    ADMIN_ONLY,
    ALL_PERSONAS,
    ALL_TENANTS,
    get_at_version,
    register_get_view,
    register_view,
    register_wrapper_view,
)

# Snapshots


def _snapshot(sample):
    return f'/snapshots/{sample.snapshot}'


def _snapshot_instance(sample):
    id = sample.instance_of_snapshot(sample.snapshot)
    return f'/snapshot-instances/{id}'


register_wrapper_view(
    'snapshots',
    f'/snapshots?{ALL_TENANTS}&limit=1&with_count=true',
    'snapshot',
    'list wrapper',
)
register_get_view(
    'snapshots', 'snapshots', f'/snapshots?{ALL_TENANTS}', 'snapshot', 'summary'
)
register_get_view(
    'snapshots in detail',
    'snapshots',
    f'/snapshots/detail?{ALL_TENANTS}',
    'snapshot',
    'detail',
)
register_get_view('snapshot', 'snapshot', _snapshot, 'snapshot', 'detail')


@register_view('snapshot create', 'snapshot', 'detail')
def snapshot_created(sample, api, minor):
    return [
        api.request(
            'POST',
            '/snapshots',
            {'snapshot': {'share_id': sample.idle_snapshot_source()}},
            expect=202,
            version=published_api.version_text(minor),
        ).json['snapshot']
    ]


@register_view('snapshot update', 'snapshot', 'detail')
def snapshot_updated(sample, api, minor):
    return [
        api.request(
            'PUT',
            _snapshot(sample),
            {'snapshot': {'display_name': 'new'}},
            expect=200,
            version=published_api.version_text(minor),
        ).json['snapshot']
    ]


@register_view('snapshot manage', 'snapshot', 'detail', personas=ADMIN_ONLY, since=12)
def snapshot_managed(sample, api, minor):
    return [
        api.request(
            'POST',
            '/snapshots/manage',
            sample.manage_snapshot_body(),
            expect=202,
            version=published_api.version_text(minor),
        ).json['snapshot']
    ]


register_wrapper_view(
    'snapshot metadata',
    lambda sample: f'{_snapshot(sample)}/metadata',
    'metadata',
    'all kinds',
    since=73,
)

register_get_view(
    'snapshot instances',
    'snapshot_instances',
    '/snapshot-instances',
    'snapshot instance',
    'summary',
    personas=ADMIN_ONLY,
    since=19,
)
register_get_view(
    'snapshot instances in detail',
    'snapshot_instances',
    '/snapshot-instances/detail',
    'snapshot instance',
    'detail',
    personas=ADMIN_ONLY,
    since=19,
)
register_get_view(
    'snapshot instance',
    'snapshot_instance',
    _snapshot_instance,
    'snapshot instance',
    'detail',
    personas=ADMIN_ONLY,
    since=19,
)


# Snapshot access rules and export locations


@register_view(
    'allow_access to mount',
    'snapshot access',
    'snapshot_access and snapshot_access_list',
    since=32,
)
def allowed_to_mount(sample, api, minor):
    return [
        api.request(
            'POST',
            f'{_snapshot(sample)}/action',
            {'allow_access': sample.rule_body()},
            expect=202,
            version=published_api.version_text(minor),
        ).json['snapshot_access']
    ]


@register_view(
    'snapshot access list',
    'snapshot access',
    'snapshot_access and snapshot_access_list',
    since=32,
)
def listed_snapshot_rules(sample, api, minor):
    sample.new_snapshot_rule()
    return get_at_version(sample, api, minor, f'{_snapshot(sample)}/access-list')[
        'snapshot_access_list'
    ]


for of, parent, personas in (
    ('snapshot', _snapshot, ALL_PERSONAS),
    ('snapshot instance', _snapshot_instance, ADMIN_ONLY),
):

    def listed(sample, parent=parent):
        return f'{parent(sample)}/export-locations'

    def one(sample, parent=parent):
        return f'{parent(sample)}/export-locations/{sample.export_of_snapshot()}'

    options = {'personas': personas, 'since': 32}
    register_get_view(
        f'exports of {of}',
        'share_snapshot_export_locations',
        listed,
        'snapshot export location',
        'list and show',
        **options,
    )
    register_get_view(
        f'export of {of}',
        'share_snapshot_export_location',
        one,
        'snapshot export location',
        'list and show',
        'show',
        **options,
    )
