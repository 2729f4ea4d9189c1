"""The API behind a proxy that ends TLS."""

import pytest

HEADERS = {
    'X-Forwarded-Proto': 'https',
    'X-Forwarded-Host': 'storage.example.org',
    'X-Forwarded-Prefix': '/share',
    'X-Forwarded-For': '192.0.2.7',
}
FORWARDED = {'Forwarded': 'proto=https;host=storage.example.org'}


def link(installation, headers):
    """Return the link of the version list."""
    user = installation.rest(
        url=installation.root, headers=headers | {'X-Auth-Token': 'me:red'}
    )
    found = user.request('GET', '/', expect=300)['versions'][0]['links']
    return next(one['href'] for one in found if one['rel'] == 'self')


@pytest.mark.parametrize('concurrency', ['threading', 'eventlet'])
def test_links_follow_the_headers_of_the_proxy(install, concurrency):
    installation = install(
        sections='[oslo_middleware]\nenable_proxy_headers_parsing = true\n',
        concurrency=concurrency,
    ).start()
    proxied = 'https://storage.example.org'
    assert link(installation, HEADERS).startswith(f'{proxied}/share/v')
    assert link(installation, FORWARDED).startswith(f'{proxied}/v')


def test_headers_of_clients_are_ignored_unless_configured(install):
    installation = install().start()
    for headers in (HEADERS, FORWARDED):
        assert link(installation, headers).startswith(installation.root)
