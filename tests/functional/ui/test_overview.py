"""What the overview shows, to whom, and what it costs."""

import re
import urllib.parse

import pytest
import sqlalchemy as sa

from manila_lite.api.ui.overview import KINDS
from manila_lite.db.models import quotas, services, shares
from manila_lite.db.queries.recovery import overview
from manila_lite.quota import limits
from tests.support import share_groups

INSTANCE = shares.ShareInstance.__table__
SERVICE = services.Service.__table__


def create_type(admin_api, name):
    """Create a share type that no back end offers."""
    admin_api.request(
        'POST',
        '/types',
        {
            'share_type': {
                'name': name,
                'extra_specs': {
                    'driver_handles_share_servers': 'False',
                    'share_backend_name': name,
                },
            }
        },
        expect=200,
    )


def cell(page, kind, condition):
    """Return the link of a number in the table, or None."""
    link = f'/ui/rows?kind={kind}&condition={condition}'
    return link if link in page.links else None


def test_share_is_healthy_when_it_is_available(cloud, api, alice):
    api.create()
    working = alice.open('/ui/')
    assert cell(working, 'share_instance', 'working')
    assert not cell(working, 'share_instance', 'healthy')
    cloud.settle()
    healthy = alice.open('/ui/')
    assert cell(healthy, 'share_instance', 'healthy')
    assert not cell(healthy, 'share_instance', 'working')


def test_failure_is_shown_with_its_reason_and_its_request(
    cloud, api, admin_api, alice, root
):
    create_type(admin_api, 'nowhere')
    api.create(share_type='nowhere')
    cloud.settle()
    for browser in (alice, root):
        page = browser.open('/ui/')
        assert cell(page, 'share_instance', 'failed')
        assert 'share type requires' in page.text
        assert 'req-' in page.text
        rows = browser.open(cell(page, 'share_instance', 'failed'))
        assert 'error' in rows.text


def test_failures_for_one_reason_are_one_row_with_their_shares(
    cloud, api, admin_api, alice, bob
):
    create_type(admin_api, 'nowhere')
    made = [api.create(share_type='nowhere', name=f'share {n}') for n in range(3)]
    cloud.settle()
    page = alice.open('/ui/')
    assert page.html.count('share type requires') == 1
    assert {f'/ui/shares/{share["id"]}' for share in made} <= set(page.links)
    assert 'share 2' in page.text
    assert '3 requests failed in the last hour.' in page.text
    assert 'share type requires' not in bob.open('/ui/').text


def service_of(cloud, share_id):
    """Return the host of the share service that has a share."""
    host = cloud.db.read(
        lambda session: session.value(
            sa.select(INSTANCE.c.host).where(INSTANCE.c.share_id == share_id)
        )
    )
    return host.partition('#')[0]


def fail_next_extension(cloud, share_id):
    """Let it fail where the share is."""
    _, _, backend = service_of(cloud, share_id).partition('@')
    cloud.driver(backend).faults.fail_next('extend_share', error=ValueError())


def failures(browser):
    page = browser.open('/ui/')
    (link,) = [one for one in page.links if one.startswith('/ui/failures?')]
    return browser.open(link)


def test_shares_of_a_failure_are_acted_on_together(cloud, api, admin_api, alice, bob):
    create_type(admin_api, 'nowhere')
    for number in range(3):
        api.create(share_type='nowhere', name=f'lost {number}')
    healthy = api.create(name='mine')['id']
    cloud.settle()
    page = failures(alice)
    assert 'share type requires' in page.text
    assert page.html.count('checked') == 3
    assert healthy not in page.html
    form = page.form('/ui/failures/selected')
    selected = dict.fromkeys(re.findall('selected-[^"]+', page.html), 'on')
    fields = {**selected, 'action': 'delete'}
    refused = alice.submit(form, expect=400, confirm='2', **fields)
    assert 'Nothing was done: 3 shares were selected' in refused.text
    assert refused.html.count('checked') == 3
    sent = {name: form.fields[name] for name in form.fields if name not in selected}
    fields = {'action': 'delete', **dict(list(selected.items())[1:])}
    fewer = alice.submit(form._replace(fields=sent), expect=400, confirm='3', **fields)
    assert fewer.html.count('checked') == 2
    assert '3 accepted, 0 refused.' in alice.submit(form, confirm='3', **fields).text
    cloud.settle()
    # The messages stay, and name no shares that are gone.
    assert not [one for one in alice.open('/ui/').links if 'failures?' in one]
    where = urllib.parse.urlsplit(alice.address).path
    assert where == '/ui/'
    hidden = bob.open('/ui/failures?resource_type=SHARE&action_id=001&detail_id=008')
    assert 'lost' not in hidden.text


def test_shares_that_work_again_are_not_selected_for_actions(
    cloud, api, root, alice, sign_in
):
    share = api.create(name='mine')['id']
    cloud.settle()
    fail_next_extension(cloud, share)
    api.act(share, 'extend', {'new_size': 2})
    cloud.settle()
    assert f'name="selected-{share}" checked' in failures(root).html
    fields = {'action': 'reset-status', 'status': 'available', 'confirm': '1'}
    form = failures(root).form('/ui/failures/selected')
    root.submit(form, **fields, **{f'selected-{share}': 'on'})
    assert f'name="selected-{share}" aria-label' in failures(root).html
    assert 'value="reset-status"' not in failures(alice).html
    assert 'selected-' not in failures(sign_in('rita')).html


def fail_snapshot(cloud, api, admin_api):
    share = api.create(name='mine')['id']
    cloud.settle()
    cloud.driver('alpha').faults.fail_next('create_snapshot', error=ValueError())
    cloud.driver('beta').faults.fail_next('create_snapshot', error=ValueError())
    body = {'snapshot': {'share_id': share, 'name': 'lost'}}
    api.request('POST', '/snapshots', body, expect=202)
    return f'/ui/shares/{share}'


def fail_group(cloud, api, admin_api):
    type_id = share_groups.create_type(admin_api)
    for name in cloud.backend_names:
        cloud.driver(name).faults.fail_next('create_share_group', error=ValueError())
    return f'/ui/groups/{share_groups.request(api, type_id).json["share_group"]["id"]}'


@pytest.mark.parametrize('fail', [fail_snapshot, fail_group])
def test_whatever_failed_is_shown_where_it_is_and_deleted(
    cloud, api, admin_api, alice, bob, fail
):
    path = fail(cloud, api, admin_api)
    cloud.settle()
    page = failures(alice)
    assert path in page.links
    assert page.html.count('checked') == 1
    form = page.form('/ui/failures/selected')
    selected = dict.fromkeys(re.findall('selected-[^"]+', page.html), 'on')
    text = alice.submit(form, confirm='1', action='delete', **selected).text
    assert '1 accepted, 0 refused.' in text
    cloud.settle()
    assert not [one for one in alice.open('/ui/').links if 'failures?' in one]
    assert path not in bob.open('/ui/').links


@pytest.mark.parametrize('query', ['', '?resource_type=SHARE', '?detail_id=008'])
def test_a_reason_is_named_whole(alice, query):
    assert alice.send('GET', f'/ui/failures{query}').status_int == 404


def test_health_is_told_in_one_sentence(cloud, api, alice, root):
    assert 'Nothing has been created yet.' in alice.open('/ui/').text
    share = api.create(name='mine')
    cloud.settle()
    for browser in (alice, root):
        assert 'Everything works' in browser.open('/ui/').text
    fail_next_extension(cloud, share['id'])
    api.act(share['id'], 'extend', {'new_size': 2})
    cloud.settle()
    assert '1 request failed in the last hour.' in root.open('/ui/').text
    host = service_of(cloud, share['id'])
    cloud.db.write(
        lambda session: session.run(
            sa.update(SERVICE)
            .where(SERVICE.c.host == host)
            .values(health='its pool is not mounted')
        )
    )
    text = root.open('/ui/').text
    assert f'manila-share on {host} since' in text
    assert 'failed in the last hour, there.' in text
    assert 'node@' not in alice.open('/ui/').text


def test_service_without_a_heartbeat_is_down(cloud, root):
    cloud.db.write(
        lambda session: session.run(
            sa.update(SERVICE)
            .where(SERVICE.c.host == 'node@alpha')
            .values(heartbeat_at=0, updated_at=None)
        )
    )
    text = root.open('/ui/').text
    assert '1 service is down: manila-share on node@alpha.' in text


def test_resource_without_work_is_stuck(cloud, api, root):
    share = api.create()
    cloud.settle()
    cloud.db.write(
        lambda session: session.run(
            sa.update(INSTANCE)
            .where(INSTANCE.c.share_id == share['id'])
            .values(status='extending')
        )
    )
    page = root.open('/ui/')
    assert cell(page, 'share_instance', 'stuck')
    assert not cell(page, 'share_instance', 'working')
    rows = root.open(cell(page, 'share_instance', 'stuck'))
    assert 'extending' in rows.text


def test_other_projects_see_nothing_of_it(cloud, api, bob):
    share = api.create(name='private')
    cloud.settle()
    page = bob.open('/ui/')
    assert 'There is nothing yet.' in page.text
    for condition in overview.CONDITIONS:
        rows = bob.open(f'/ui/rows?kind=share_instance&condition={condition}')
        assert 'There are none.' in rows.text
        assert share['id'] not in rows.html


def test_hosts_are_for_administrators(cloud, api, alice, root):
    api.create()
    cloud.settle()
    link = '/ui/rows?kind=share_instance&condition=healthy'
    assert 'node@' in root.open(link).html
    assert 'node@' not in alice.open(link).html


def test_services_that_are_not_up_are_shown_to_administrators(cloud, alice, root):
    page = root.open('/ui/')
    assert '4 of 4 services are up and enabled' in page.text
    assert 'node@alpha' not in page.text
    cloud.db.write(
        lambda session: session.run(
            sa.update(SERVICE)
            .where(SERVICE.c.host == 'node@alpha')
            .values(disabled=True, disabled_reason='repair')
        )
    )
    page = root.open('/ui/')
    assert '3 of 4 services' in page.text
    assert 'disabled: repair' in page.text
    assert 'services' not in alice.open('/ui/').text


@pytest.mark.parametrize(
    'query',
    [
        '',
        '?kind=share_instance',
        '?kind=share_instance&condition=x',
        '?kind=%3Cb%3E&condition=failed',
        '?kind=share_server&condition=failed',
    ],
)
def test_unknown_kinds_and_conditions_are_not_found(alice, query):
    page = alice.open(f'/ui/rows{query}', expect=404)
    assert '<b>' not in page.html


@pytest.mark.parametrize('resource', overview.RESOURCES)
@pytest.mark.parametrize('condition', overview.CONDITIONS)
def test_every_number_leads_to_rows(root, resource, condition):
    root.open(f'/ui/rows?kind={resource}&condition={condition}')


def test_rows_are_shown_in_pages(cloud, api, root, monkeypatch):
    monkeypatch.setattr('manila_lite.api.ui.overview.ROWS', 2)
    ids = {api.create()['id'] for _ in range(5)}
    cloud.settle()
    path, seen = '/ui/rows?kind=share_instance&condition=healthy', ''
    pages = 0
    while path:
        page = root.open(path)
        seen, pages = seen + page.html, pages + 1
        path = next((link for link in page.links if 'after=' in link), None)
    instances = cloud.db.read(
        lambda session: session.rows(
            sa.select(INSTANCE.c.id).where(INSTANCE.c.share_id.in_(ids))
        )
    )
    assert pages == 3
    assert all(seen.count(f'<code>{row.id}</code>') == 1 for row in instances)


def test_overview_takes_at_most_eight_statements(cloud, api, root, alice):
    share = api.create()
    cloud.settle()
    fail_next_extension(cloud, share['id'])
    api.act(share['id'], 'extend', {'new_size': 2})
    cloud.settle()
    for browser in (root, alice):
        browser.open('/ui/')
        before = cloud.statements
        browser.open('/ui/')
        assert cloud.statements - before <= 8


def test_pages_are_grouped_for_those_who_see_them(alice, root):
    for browser, groups in ((alice, 1), (root, 3)):
        page = browser.open('/ui/')
        named = [
            given['id'] for _, given in page.tags if given.get('id', '')[:6] == 'group-'
        ]
        assert len(named) == groups
        assert page.html.count('aria-labelledby="group-') == groups
    assert '/ui/charts' not in alice.open('/ui/').links


def test_totals_are_true_at_any_size_and_those_of_the_project(
    cloud, api, alice, bob, root
):
    for _ in range(2):
        api.create()
    cloud.settle()
    usage = quotas.QuotaUsage.__table__
    cloud.db.write(
        lambda session: session.run(
            usage.update().where(usage.c.resource == 'shares').values(in_use=123456)
        )
    )
    cloud.clock.advance(60)
    for browser, shown in ((alice, True), (root, True), (bob, False)):
        found = 'Shares 123,456' in browser.open('/ui/').text
        assert found is shown


def test_totals_of_all_projects_are_read_once_a_minute(cloud, api, alice, root):
    """They take a second with many projects; those of one are as of now."""
    api.create()
    cloud.settle()
    cloud.clock.advance(60)
    assert 'Shares 1' in root.open('/ui/').text
    api.create()
    cloud.settle()
    assert 'Shares 2' in alice.open('/ui/').text
    assert 'Shares 1' in root.open('/ui/').text
    cloud.clock.advance(60)
    assert 'Shares 2' in root.open('/ui/').text


def test_every_kind_has_a_title_and_a_usage_that_quotas_know():
    assert set(KINDS) == set(overview.RESOURCES)
    used = {kind.usage for kind in KINDS.values()} - {None}
    assert used <= set(limits.NAMES)
