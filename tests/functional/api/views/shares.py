"""Views of shares and share instances."""

from tests.functional.api import published_api
from tests.functional.api.views.registry import (
    ADMIN_ONLY,
    ALL_PERSONAS,
    ALL_TENANTS,
    register_get_view,
    register_view,
    register_wrapper_view,
)

# Shares


def _share(sample):
    return f'/shares/{sample.share}'


register_wrapper_view(
    'shares', f'/shares?{ALL_TENANTS}&limit=1&with_count=true', 'share', 'list wrapper'
)
register_get_view('shares', 'shares', f'/shares?{ALL_TENANTS}', 'share', 'summary')
register_get_view(
    'shares in detail', 'shares', f'/shares/detail?{ALL_TENANTS}', 'share', 'detail'
)
register_get_view('share', 'share', _share, 'share', 'detail')


@register_view('share create', 'share', 'detail')
def created(sample, api, minor):
    return [api.create(version=published_api.version_text(minor))]


@register_view('share update', 'share', 'detail')
def updated(sample, api, minor):
    return [
        api.request(
            'PUT',
            _share(sample),
            {'share': {'display_name': 'new'}},
            expect=200,
            version=published_api.version_text(minor),
        ).json['share']
    ]


@register_view(
    'share manage',
    'share',
    'detail',
    personas=ADMIN_ONLY,
    types={'integer GiB': 'null'},
)
def managed(sample, api, minor):
    path = '/shares/manage' if minor >= 7 else '/os-share-manage'
    share = api.request(
        'POST',
        path,
        sample.manage_body(),
        expect=200,
        version=published_api.version_text(minor),
    ).json['share']
    sample.delete_share_rows(share['id'])  # no list shows shares without a size
    return [share]


register_wrapper_view(
    'share metadata',
    lambda sample: f'{_share(sample)}/metadata',
    'metadata',
    'all kinds',
)


# Instances


def _instance(sample):
    return f'/share_instances/{sample.instance_of(sample.share)}'


register_wrapper_view(
    'instances',
    '/share_instances?limit=1',
    'share instance',
    'list wrapper',
    personas=ADMIN_ONLY,
    since=3,
)
register_get_view(
    'instances',
    'share_instances',
    '/share_instances',
    'share instance',
    'detail',
    personas=ADMIN_ONLY,
    since=3,
)
register_get_view(
    'instance',
    'share_instance',
    _instance,
    'share instance',
    'detail',
    personas=ADMIN_ONLY,
    since=3,
)
register_get_view(
    'instances of share',
    'share_instances',
    lambda sample: f'{_share(sample)}/instances',
    'share instance',
    'detail',
    personas=ADMIN_ONLY,
    since=3,
)


# Export locations


def _export_of(sample):
    return f'/export_locations/{sample.export_of(sample.share)}'


for of, parent, personas in (
    ('share', _share, ALL_PERSONAS),
    ('instance', _instance, ADMIN_ONLY),
):

    def listed(sample, parent=parent):
        return f'{parent(sample)}/export_locations'

    def one(sample, parent=parent):
        return parent(sample) + _export_of(sample)

    options = {'personas': personas, 'since': 9}
    register_wrapper_view(
        f'exports of {of}', listed, 'export location', 'list wrapper', **options
    )
    register_get_view(
        f'exports of {of}',
        'export_locations',
        listed,
        'export location',
        'summary',
        **options,
    )
    register_wrapper_view(
        f'export of {of}', one, 'export location', 'show wrapper', **options
    )
    register_get_view(
        f'export of {of}',
        'export_location',
        one,
        'export location',
        'detail',
        **options,
    )

register_wrapper_view(
    'export metadata',
    lambda sample: f'{_share(sample)}{_export_of(sample)}/metadata',
    'metadata',
    'all kinds',
    since=87,
)
