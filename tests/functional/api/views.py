"""Requests that show each published view, and the items they return."""

from collections.abc import Callable
import typing

from tests.functional.api import published_api
from tests.functional.api.sample_cloud import SERVICE
from tests.functional.api.sample_cloud import TENANT
from tests.functional.api.sample_cloud import SampleCloud
from tests.support.api_client import ApiClient
from tests.support.cloud import TYPE_ID

Items = list[dict[str, typing.Any]]
FetchItems = Callable[[SampleCloud, ApiClient, int], Items]
Path = Callable[[SampleCloud], str]

ALL_PERSONAS = ('admin', 'member')
ADMIN_ONLY = ('admin',)

_BELOW_7 = {
    '/services': '/os-services',
    '/quota-sets': '/os-quota-sets',
    '/quota-class-sets': '/os-quota-class-sets',
    '/availability-zones': '/os-availability-zone',
}


class View(typing.NamedTuple):
    """A view of response-fields.csv as one request shows it.

    `fetch_items` returns the items shown to a caller in a version;
    `personas` may see them, from the version `since`. `types` maps
    published types to those of this request.
    """

    title: str
    resource: str
    parts: tuple[str, ...]
    fetch_items: FetchItems
    personas: tuple[str, ...]
    since: int
    types: dict[str, str]


VIEWS: list[View] = []


def register_view(
    title: str,
    resource: str,
    *parts: str,
    personas: tuple[str, ...] = ALL_PERSONAS,
    since: int = 0,
    types: dict[str, str] | None = None,
) -> Callable[[FetchItems], FetchItems]:
    def add(fetch_items: FetchItems) -> FetchItems:
        VIEWS.append(
            View(
                title,
                resource,
                parts,
                fetch_items,
                personas,
                since,
                types or {},
            )
        )
        return fetch_items

    return add


def register_get_view(
    title: str,
    key: str,
    path: str | Path,
    resource: str,
    *parts: str,
    **options: typing.Any,
) -> None:
    """Register a view that a GET shows below a key, as one item or a list."""

    @register_view(title, resource, *parts, **options)
    def fetch_items(sample, api, minor):
        found = _get(sample, api, minor, path)[key]
        return found if isinstance(found, list) else [found]


def register_wrapper_view(
    title: str,
    path: str | Path,
    resource: str,
    *parts: str,
    **options: typing.Any,
) -> None:
    """Register the top-level keys of the answer to a GET."""

    @register_view(title, resource, *parts, **options)
    def fetch_items(sample, api, minor):
        return [_get(sample, api, minor, path)]


def _get(sample, api, minor, path):
    return api.get(
        path_at_version(
            path if isinstance(path, str) else path(sample), minor
        ),
        version=published_api.version_text(minor),
    )


def path_at_version(path: str, minor: int) -> str:
    """Return the path that the version uses."""
    if minor < 7:
        for new, old in _BELOW_7.items():
            if path.startswith(new):
                return old + path.removeprefix(new)
    return path


# Versions, zones, services, pools

register_get_view('versions', 'versions', '/', 'version', 'item')
register_get_view(
    'zones',
    'availability_zones',
    '/availability-zones',
    'availability zone',
    'item',
)
register_get_view(
    'services',
    'services',
    '/services',
    'service',
    'list item',
    personas=ADMIN_ONLY,
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
        f'service {verb}',
        'service',
        'update answer (flat)',
        personas=ADMIN_ONLY,
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


# Shares

_ALL = 'all_tenants=1'


def _share(sample):
    return f'/shares/{sample.share}'


register_wrapper_view(
    'shares',
    f'/shares?{_ALL}&limit=1&with_count=true',
    'share',
    'list wrapper',
)
register_get_view('shares', 'shares', f'/shares?{_ALL}', 'share', 'summary')
register_get_view(
    'shares in detail', 'shares', f'/shares/detail?{_ALL}', 'share', 'detail'
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
    sample.delete_share_rows(
        share['id']
    )  # no list shows shares without a size
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
    '/share_instances',
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


# Snapshots


def _snapshot(sample):
    return f'/snapshots/{sample.snapshot}'


def _snapshot_instance(sample):
    id = sample.instance_of_snapshot(sample.snapshot)
    return f'/snapshot-instances/{id}'


register_wrapper_view(
    'snapshots',
    f'/snapshots?{_ALL}&limit=1&with_count=true',
    'snapshot',
    'list wrapper',
)
register_get_view(
    'snapshots', 'snapshots', f'/snapshots?{_ALL}', 'snapshot', 'summary'
)
register_get_view(
    'snapshots in detail',
    'snapshots',
    f'/snapshots/detail?{_ALL}',
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


@register_view(
    'snapshot manage', 'snapshot', 'detail', personas=ADMIN_ONLY, since=12
)
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
    return _get(sample, api, minor, f'{_snapshot(sample)}/access-list')[
        'snapshot_access_list'
    ]


for of, parent, personas in (
    ('snapshot', _snapshot, ALL_PERSONAS),
    ('snapshot instance', _snapshot_instance, ADMIN_ONLY),
):

    def listed(sample, parent=parent):
        return f'{parent(sample)}/export-locations'

    def one(sample, parent=parent):
        return (
            f'{parent(sample)}/export-locations/{sample.export_of_snapshot()}'
        )

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
        f'exports of {of}',
        listed,
        'export location',
        'list wrapper',
        **options,
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


# Share types

register_wrapper_view('types', '/types', 'share type', 'list wrapper')
for key in ('share_types', 'volume_types'):
    register_get_view(f'types as {key}', key, '/types', 'share type', 'item')
register_wrapper_view(
    'default type', '/types/default', 'share type', 'show wrapper'
)
register_wrapper_view(
    'type', f'/types/{TYPE_ID}', 'share type', 'show wrapper'
)
register_get_view(
    'type', 'share_type', f'/types/{TYPE_ID}', 'share type', 'item'
)


@register_view(
    'type create', 'share type', 'show wrapper', personas=ADMIN_ONLY
)
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


@register_view(
    'type update', 'share type', 'item', personas=ADMIN_ONLY, since=50
)
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


# Quotas

_QUOTA = f'/quota-sets/{TENANT}'
_CLASS = '/quota-class-sets/default'

for path in (_QUOTA, f'{_QUOTA}/defaults'):
    register_get_view(
        path, 'quota_set', path, 'quota set', 'show', 'show and update'
    )
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
        f'{key} update',
        key.replace('_', ' '),
        'show and update',
        personas=ADMIN_ONLY,
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
    return [_get(sample, api, minor, '/limits')['limits']['absolute']]


# Messages

register_wrapper_view(
    'messages', '/messages?limit=1', 'message', 'list wrapper', since=37
)
register_get_view(
    'messages', 'messages', '/messages', 'message', 'item', since=37
)
register_get_view(
    'message',
    'message',
    lambda sample: f'/messages/{sample.message}',
    'message',
    'item',
    since=37,
)


# Resource locks

register_wrapper_view(
    'locks',
    '/resource-locks?limit=1&with_count=true',
    'resource lock',
    'list wrapper',
    since=81,
)
register_get_view(
    'locks',
    'resource_locks',
    '/resource-locks',
    'resource lock',
    'item',
    since=81,
)
register_get_view(
    'lock',
    'resource_lock',
    lambda sample: f'/resource-locks/{sample.new_lock()}',
    'resource lock',
    'item',
    since=81,
)


@register_view('lock create', 'resource lock', 'item', since=81)
def lock_created(sample, api, minor):
    return [
        api.request(
            'POST',
            '/resource-locks',
            sample.lock_body(),
            expect=200,
            version=published_api.version_text(minor),
        ).json['resource_lock']
    ]


@register_view('lock update', 'resource lock', 'item', since=81)
def lock_updated(sample, api, minor):
    return [
        api.request(
            'PUT',
            f'/resource-locks/{sample.new_lock()}',
            {'resource_lock': {'lock_reason': 'it is ours'}},
            expect=200,
            version=published_api.version_text(minor),
        ).json['resource_lock']
    ]


# Access rules


def _acted(sample, api, minor, action, body):
    name = action if minor >= 7 else f'os-{action}'
    return api.act(
        sample.locked_share,
        name,
        body,
        expect=200,
        version=published_api.version_text(minor),
    ).json


@register_view('allow_access', 'share access', 'access')
def allowed(sample, api, minor):
    return [
        _acted(sample, api, minor, 'allow_access', sample.rule_body())[
            'access'
        ]
    ]


@register_view('access list', 'share access', 'list item (access_list)')
def listed_rules(sample, api, minor):
    sample.new_rule()
    if minor < 45:
        answer = _acted(sample, api, minor, 'access_list', None)
    else:
        answer = _get(
            sample,
            api,
            minor,
            f'/share-access-rules?share_id={sample.locked_share}',
        )
    return answer['access_list']


def _rule(sample):
    return f'/share-access-rules/{sample.new_rule()}'


register_get_view(
    'access rule', 'access', _rule, 'share access', 'access', since=45
)


@register_view('access rule update', 'share access', 'access', since=88)
def rule_updated(sample, api, minor):
    return [
        api.request(
            'PUT',
            _rule(sample),
            {'update_access': {'access_level': 'ro'}},
            expect=200,
            version=published_api.version_text(minor),
        ).json['access']
    ]


@register_view('access rule metadata', 'metadata', 'all kinds', since=45)
def rule_metadata(sample, api, minor):
    return [
        api.request(
            'PUT',
            f'{_rule(sample)}/metadata',
            {'metadata': {'color': 'blue'}},
            expect=200,
            version=published_api.version_text(minor),
        ).json
    ]
