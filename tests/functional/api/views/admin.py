"""Views of versions, services, pools, share types, quotas and messages."""

from tests.functional.api import published_api
from tests.functional.api.samples.cloud import SERVICE
from tests.functional.api.samples.requests import TENANT
from tests.functional.api.views.registry import (
    ADMIN_ONLY,
    EXPERIMENT,
    get_at_version,
    path_at_version,
    register_get_view,
    register_view,
    register_wrapper_view,
)
from tests.support.cloud import TYPE_ID

# Versions, zones, services, pools

register_get_view('versions', 'versions', '/', 'version', 'item')
register_get_view(
    'zones', 'availability_zones', '/availability-zones', 'availability zone', 'item'
)
register_get_view(
    'services', 'services', '/services', 'service', 'list item', personas=ADMIN_ONLY
)
register_get_view(
    'pools',
    'pools',
    '/scheduler-stats/pools',
    'scheduler stats',
    'pool summary',
    personas=ADMIN_ONLY,
)
register_get_view(
    'pools in detail',
    'pools',
    '/scheduler-stats/pools/detail',
    'scheduler stats',
    'pool summary',
    'pool detail',
    personas=ADMIN_ONLY,
)


for verb in ('disable', 'enable'):

    @register_view(
        f'service {verb}', 'service', 'update answer (flat)', personas=ADMIN_ONLY
    )
    def service_updated(sample, api, minor, verb=verb):
        path = path_at_version(f'/services/{verb}', minor)
        return [
            api.request(
                'PUT',
                path,
                SERVICE,
                expect=200,
                version=published_api.version_text(minor),
            ).json
        ]


# Share types

register_wrapper_view('types', '/types', 'share type', 'list wrapper')
for key in ('share_types', 'volume_types'):
    register_get_view(f'types as {key}', key, '/types', 'share type', 'item')
register_wrapper_view('default type', '/types/default', 'share type', 'show wrapper')
register_wrapper_view('type', f'/types/{TYPE_ID}', 'share type', 'show wrapper')
register_get_view('type', 'share_type', f'/types/{TYPE_ID}', 'share type', 'item')


@register_view('type create', 'share type', 'show wrapper', personas=ADMIN_ONLY)
def type_created(sample, api, minor):
    return [
        api.request(
            'POST',
            '/types',
            sample.type_body(),
            expect=200,
            version=published_api.version_text(minor),
        ).json
    ]


@register_view('type update', 'share type', 'item', personas=ADMIN_ONLY, since=50)
def type_updated(sample, api, minor):
    return [
        api.request(
            'PUT',
            f'/types/{sample.new_type()}',
            {'share_type': {'description': 'new'}},
            expect=200,
            version=published_api.version_text(minor),
        ).json['share_type']
    ]


for word in ('os-share-type-access', 'share_type_access'):
    register_get_view(
        word,
        'share_type_access',
        lambda sample, word=word: f'/types/{sample.private_type}/{word}',
        'share type access',
        'share_type_access[]',
        personas=ADMIN_ONLY,
    )


# Share group types

register_get_view(
    'group types',
    'share_group_types',
    '/share-group-types',
    'share group type',
    'item',
    since=31,
)
register_get_view(
    'group type',
    'share_group_type',
    lambda sample: f'/share-group-types/{sample.public_group_type}',
    'share group type',
    'item',
    since=31,
)
register_get_view(
    'group type access',
    'share_group_type_access',
    lambda sample: f'/share-group-types/{sample.private_group_type}/access',
    'share group type access',
    'share_group_type_access[]',
    personas=ADMIN_ONLY,
    since=31,
)


@register_view(
    'group type create', 'share group type', 'item', personas=ADMIN_ONLY, since=31
)
def group_type_created(sample, api, minor):
    return [
        api.request(
            'POST',
            '/share-group-types',
            sample.group_type_body(),
            expect=200,
            **EXPERIMENT,
            version=published_api.version_text(minor),
        ).json['share_group_type']
    ]


# QoS types

register_get_view('QoS types', 'qos_types', '/qos-types', 'qos type', 'item', since=94)
register_get_view(
    'QoS type',
    'qos_type',
    lambda sample: f'/qos-types/{sample.qos_type}',
    'qos type',
    'item',
    since=94,
)


@register_view('QoS type create', 'qos type', 'item', personas=ADMIN_ONLY, since=94)
def qos_type_created(sample, api, minor):
    return _written_qos_type(api, minor, 'POST', '/qos-types', sample.qos_type_body())


@register_view('QoS type update', 'qos type', 'item', personas=ADMIN_ONLY, since=94)
def qos_type_updated(sample, api, minor):
    path = f'/qos-types/{sample.qos_type}'
    body = {'qos_type': {'description': 'new'}}
    return _written_qos_type(api, minor, 'PUT', path, body)


def _written_qos_type(api, minor, method, path, body):
    version = published_api.version_text(minor)
    answer = api.request(method, path, body, expect=200, version=version)
    return [answer.json['qos_type']]


# Quotas

_QUOTA = f'/quota-sets/{TENANT}'
_CLASS = '/quota-class-sets/default'

for path in (_QUOTA, f'{_QUOTA}/defaults'):
    register_get_view(path, 'quota_set', path, 'quota set', 'show', 'show and update')
register_get_view(
    'quota detail',
    'quota_set',
    f'{_QUOTA}/detail',
    'quota set',
    'show',
    'show and update',
    since=25,
    types={'integer': 'object limit,in_use,reserved'},
)
register_get_view(
    'quota class',
    'quota_class_set',
    _CLASS,
    'quota class set',
    'show',
    'show and update',
)

for key, path in (('quota_set', _QUOTA), ('quota_class_set', _CLASS)):

    @register_view(
        f'{key} update', key.replace('_', ' '), 'show and update', personas=ADMIN_ONLY
    )
    def quota_updated(sample, api, minor, key=key, path=path):
        return [
            api.request(
                'PUT',
                path_at_version(path, minor),
                {key: {'snapshots': 70000}},
                expect=200,
                version=published_api.version_text(minor),
            ).json[key]
        ]


@register_view('limits', 'limits', 'absolute')
def limits(sample, api, minor):
    return [get_at_version(sample, api, minor, '/limits')['limits']['absolute']]


# Messages

register_wrapper_view(
    'messages', '/messages?limit=1', 'message', 'list wrapper', since=37
)
register_get_view('messages', 'messages', '/messages', 'message', 'item', since=37)
register_get_view(
    'message',
    'message',
    lambda sample: f'/messages/{sample.message}',
    'message',
    'item',
    since=37,
)
