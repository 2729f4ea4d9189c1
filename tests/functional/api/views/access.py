"""Views of access rules and resource locks."""

from tests.functional.api import published_api
from tests.functional.api.views.registry import (
    get_at_version,
    register_get_view,
    register_view,
    register_wrapper_view,
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
    'locks', 'resource_locks', '/resource-locks', 'resource lock', 'item', since=81
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
    return [_acted(sample, api, minor, 'allow_access', sample.rule_body())['access']]


@register_view('access list', 'share access', 'list item (access_list)')
def listed_rules(sample, api, minor):
    sample.new_rule()
    if minor < 45:
        answer = _acted(sample, api, minor, 'access_list', None)
    else:
        answer = get_at_version(
            sample, api, minor, f'/share-access-rules?share_id={sample.locked_share}'
        )
    return answer['access_list']


def _rule(sample):
    return f'/share-access-rules/{sample.new_rule()}'


register_get_view('access rule', 'access', _rule, 'share access', 'access', since=45)


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
