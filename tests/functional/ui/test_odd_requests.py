"""Odd requests are answered or refused, never an error of the service."""

import urllib.parse

import pytest

from tests.support.browser import HOST, Browser

LONG = 5000 * 'x'
PATHS = [
    '/ui/',
    '/ui/rows',
    '/ui/failures',
    '/ui/shares',
    '/ui/groups',
    '/ui/networks',
    '/ui/security-services',
    '/ui/servers',
    '/ui/in-flight',
    '/ui/recovery',
    '/ui/migrations',
    '/ui/capacity',
    '/ui/quotas',
    '/ui/services',
    '/ui/sign-in',
]
NAMES = [
    'kind',
    'condition',
    'resource_type',
    'action_id',
    'detail_id',
    'status',
    'name~',
    'offset',
    'first',
    'after',
    'marker',
    'resource_id',
    'host',
    'share_network_id',
    'project',
    'to',
    'done',
]
VALUES = ['%ff%fe', '%00', '-1', '999999999', 30 * '9', LONG, '%C3%A9', '//[']
QUERIES = [
    *('&'.join(f'{name}={value}' for name in NAMES) for value in VALUES),
    '&&&==&',
    '%',
    'kind=share_instance&condition=failed&after=%00',
    'recount=1&project=%D9%A3',
]
BODIES = ['%ff', 'form_token=%ff', 'a=\x00', 70000 * 'x', 'user=%ED%A0%80']


@pytest.mark.parametrize('path', PATHS)
def test_odd_queries_do_no_harm(root, path):
    for query in QUERIES:
        answer = root.send('GET', f'{path}?{query}')
        assert answer.status_int < 500, query


@pytest.mark.parametrize('path', ['/ui/sign-in', '/ui/sign-out', '/ui/shares'])
def test_odd_forms_do_no_harm(root, path):
    signed_in = root.cookies.copy()
    for body in BODIES:
        root.cookies = signed_in.copy()
        answer = root.send('POST', path, body, Origin=HOST)
        assert answer.status_int < 500, body[:100]


@pytest.mark.parametrize(
    'fields',
    [
        {'size': 400 * '9'},
        {'size': '-1'},
        {'size': '\x00'},
        {'name': '\x00'},
        {'name': LONG},
        {'share_type': LONG},
        {'share_proto': LONG},
    ],
    ids=range(7),
)
def test_odd_fields_are_refused(root, fields):
    form = root.open('/ui/shares').form('/ui/shares')
    body = {'size': '1', 'share_proto': 'NFS', **form.fields, **fields}
    answer = root.send('POST', '/ui/shares', urllib.parse.urlencode(body), Origin=HOST)
    assert answer.status_int < 500


@pytest.mark.parametrize('header', ['Origin', 'Referer'])
@pytest.mark.parametrize('value', ['http://[', 'http://[::1', '[', 'a:b:c'])
def test_malformed_origin_is_refused(root, header, value):
    answer = root.send('POST', '/ui/sign-out', 'a=b', **{header: value})
    assert answer.status_int == 403


@pytest.mark.parametrize('to', ['http://[', '//[', '/ui/[', '/ui/\x00', 'é'])
def test_malformed_target_of_sign_in_is_ignored(root, to):
    query = urllib.parse.urlencode({'to': to})
    assert root.send('GET', f'/ui/sign-in?{query}').status_int == 200


@pytest.mark.parametrize('host', ['[', '[::1', ''])
def test_malformed_host_is_refused_without_authentication(build_cloud, host):
    browser = Browser(build_cloud('[ui]\nenabled = true').app)
    answer = browser.send('GET', '/ui/sign-in', Host=host)
    assert answer.status_int == 403
