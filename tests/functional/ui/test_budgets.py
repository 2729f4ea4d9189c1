"""The number of SQL statements of every page, however much it shows."""

import pytest
import sqlalchemy as sa

from manila_lite.api.ui import site
from manila_lite.db.models import engine, shares
from tests.functional.ui import estate as estates
from tests.support import share_groups, share_servers

SHARE = shares.Share.__table__
INSTANCE = shares.ShareInstance.__table__
LOG = engine.RecoveryLogEntry.__table__
MANY = 6

BUDGETS = {
    '/ui/': 9,
    '/ui/rows': 2,
    '/ui/failures': 3,
    '/ui/shares': 6,
    '/ui/shares/{share_id}': 23,
    '/ui/shares/{share_id}/migration': 8,
    '/ui/groups': 7,
    '/ui/groups/{group_id}': 6,
    '/ui/networks': 3,
    '/ui/networks/{network_id}': 10,
    '/ui/security-services': 2,
    '/ui/servers': 1,
    '/ui/servers/{server_id}': 6,
    '/ui/in-flight': 4,
    '/ui/recovery': 1,
    '/ui/migrations': 4,
    '/ui/capacity': 3,
    '/ui/charts': 3,
    '/ui/quotas': 3,
    '/ui/services': 4,
}
"""At most so many statements take a page of an administrator."""


@pytest.fixture
def cloud(build_ui):
    return build_ui(kind=estates.EstateCloud)


@pytest.fixture
def estate(cloud, api, admin_api):
    return estates.build(cloud, api, admin_api)


def costs(cloud, estate, browser):
    """Return the number of statements of each page, by its template."""
    found = {}
    for template, handlers in site.PAGES.items():
        if 'GET' in handlers:
            path = template.format_map(estate.ids)
            if template == '/ui/rows':
                path += '?kind=share_instance&condition=healthy'
            if template == '/ui/failures':
                path += '?resource_type=SHARE&action_id=006&detail_id=001'
            browser.send('GET', path)
            before = cloud.statements
            browser.send('GET', path)
            found[template] = cloud.statements - before
    return found


def grow(cloud, api, estate):
    """Add more of all that pages show, some of it in flight."""
    share = estate.ids['share_id']
    for number in range(MANY):
        rule = {'access_type': 'ip', 'access_to': f'10.1.0.{number}'}
        rule['access_level'] = 'ro'
        api.act(share, 'allow_access', rule, expect=200)
        api.create(name=f'more {number}')
        network, _ = share_servers.create_network_with_subnets(api)
        share_servers.create_network_subnet(api, estate.ids['network_id'])
        share_servers.insert_server(cloud, estate.ids['network_id'])
        body = {'type': 'ldap', 'name': f'service {number}'}
        api.request(
            'POST', '/security-services', {'security_service': body}, expect=200
        )
    group_type = api.get('/share-group-types')['share_group_types'][0]['id']
    types = [api.get('/types')['share_types'][0]['id']]
    for _ in range(3):
        share_groups.request(api, group_type, share_types=types)
    cloud.settle()
    for _ in range(3):
        share_groups.request_snapshot(api, estate.ids['group_id'])
        cloud.settle()
        posted = {'snapshot': {'share_id': share}}
        api.request('POST', '/snapshots', posted, expect=202)
        cloud.settle()
    cloud.db.write(start_some)


def start_some(session):
    """Let shares be extended without work, some of them recovered before."""
    ids = [
        row.id
        for row in session.rows(
            sa.select(INSTANCE.c.id)
            .join(SHARE)
            .where(SHARE.c.display_name.like('more %'))
        )
    ]
    session.run(
        sa.update(INSTANCE).where(INSTANCE.c.id.in_(ids)).values(status='extending')
    )
    session.run_many(
        sa.insert(LOG),
        [
            {
                'resource': 'share_instance',
                'resource_id': id,
                'action': 'left',
                'duration': 0.0,
                'made_at': session.now,
            }
            for id in ids
        ],
    )


@pytest.mark.parametrize('user', ['root', 'alice'])
def test_statements_of_a_page_do_not_grow_with_what_it_shows(
    cloud, api, estate, sign_in, user
):
    browser = sign_in(user)
    # One of each, so that what is read for some rows is read.
    api.create(name='more')
    before = costs(cloud, estate, browser)
    cloud.settle()
    grow(cloud, api, estate)
    after = costs(cloud, estate, browser)
    assert before.keys() == BUDGETS.keys()
    over = {path: number for path, number in after.items() if number > BUDGETS[path]}
    assert not over
    grown = {
        path: (before[path], number)
        for path, number in after.items()
        if number > before[path]
    }
    assert not grown
