"""Shares on the page: the list, one share, and what can be done with it."""

import re

import pytest
import sqlalchemy as sa

from manila_lite.db.models import engine
from manila_lite.work import driver_calls, table
from tests.functional.ui.conftest import PASSWORD
from tests.support.cloud import TYPE_ID
from tests.support.cloud_images import prepared

WORK = engine.Work.__table__
NAME = '<script>alert(1)</script>&"\'><img src=x onerror=x>'
ACTIONS = ('extend', 'shrink', 'snapshot', 'revert', 'delete')


@pytest.fixture
@prepared
def share(cloud, admin_api, api):
    """An available share of alice, whose type supports all of it."""
    admin_api.request(
        'POST',
        f'/types/{TYPE_ID}/extra_specs',
        {'extra_specs': {'revert_to_snapshot_support': 'True'}},
        expect=200,
    )
    share = api.create(name='data', size=2)
    cloud.settle()
    return share


def path(share):
    return f'/ui/shares/{share["id"]}'


def act(browser, share, action, expect=200, **fields):
    """Submit the form of an action."""
    form = browser.open(path(share)).form(f'{path(share)}/{action}')
    return browser.submit(form, expect=expect, **fields)


def test_names_are_shown_as_text(cloud, api, alice):
    share = api.create(name=NAME, description=NAME)
    cloud.settle()
    for where in ('/ui/shares', path(share)):
        page = alice.open(where)
        assert NAME in page.text
        assert '<img' not in page.html
        assert '<script>' not in page.html


def test_list_has_the_shares_of_the_project(share, alice, bob, root):
    link = path(share)
    assert link in alice.open('/ui/shares').links
    assert link in root.open('/ui/shares').links
    assert link not in bob.open('/ui/shares').links


def test_share_of_another_project_is_not_found(share, alice, bob):
    page = bob.open(path(share), expect=404)
    assert 'data' not in page.text
    token = bob.open('/ui/').form('/ui/sign-out').fields['form_token']
    for action in ('delete', 'extend', 'allow'):
        response = bob.send(
            'POST',
            f'{path(share)}/{action}',
            f'form_token={token}&confirm=data&new_size=9',
            Origin=bob.host,
        )
        assert response.status_int == 404
    assert 'available' in alice.open(path(share)).text


def test_history_of_a_public_share_is_that_of_its_project(
    cloud, share, admin_api, alice, bob
):
    body = {'share': {'is_public': True}}
    admin_api.request('PUT', f'/shares/{share["id"]}', body, expect=200)
    words = 'share instance created'
    assert words in alice.open(path(share)).text
    page = bob.open(path(share))
    assert 'data' in page.text
    assert words not in page.text


def test_share_has_its_locations_with_the_command_to_mount_it(share, alice):
    page = alice.open(path(share))
    copied = [
        attributes['data-copy']
        for tag, attributes in page.tags
        if tag == 'button' and 'data-copy' in attributes
    ]
    location = copied[0]
    assert location.startswith('10.0.0.10:/shares/')
    assert f"sudo mount -t nfs '{location}' /mnt/{share['id']}" in copied
    # The second one is for administrators.
    assert '10.0.0.20' not in page.html


def test_share_without_rules_says_that_one_is_needed(cloud, share, api, alice):
    assert 'No client has access yet.' in alice.open(path(share)).text
    rule = {'access_type': 'ip', 'access_to': '10.0.0.1', 'access_level': 'rw'}
    api.act(share['id'], 'allow_access', rule, expect=200)
    assert 'No client has access yet.' not in alice.open(path(share)).text


@pytest.mark.parametrize(
    'protocol, expected', [('NFS', ['ip']), ('CIFS', ['user', 'ip'])]
)
def test_form_of_a_rule_offers_what_the_protocol_has(
    cloud, api, alice, protocol, expected
):
    share = api.create(share_proto=protocol)
    cloud.settle()
    text = alice.open(path(share)).html
    choice = text.partition('name="access_type"')[2].partition('</select>')[0]
    assert re.findall('<option value="([a-z]+)"', choice) == expected


def test_failed_share_says_why_and_what_to_do_next(cloud, share, api, alice):
    page = alice.open(path(share))
    assert 'What failed' not in page.text
    for name in cloud.backend_names:
        cloud.driver(name).faults.fail_next('extend_share', error=ValueError('x'))
    api.act(share['id'], 'extend', {'new_size': 3})
    cloud.settle()
    text = alice.open(path(share)).text
    part = text.partition('What failed')[2].partition('Facts')[0]
    assert 'could not extend the share. Its data is unchanged.' in part
    assert re.search('Request req-', part)
    assert 'Next: The share can be used with its old size.' in part


def test_reason_stays_on_the_page_when_its_message_is_deleted(
    cloud, share, api, alice, root
):
    for name in cloud.backend_names:
        cloud.driver(name).faults.fail_next('extend_share', error=ValueError('x'))
    api.act(share['id'], 'extend', {'new_size': 3})
    cloud.settle()
    (message,) = api.get('/messages')['messages']
    before = alice.open(path(share)).text.partition('Facts')[0]
    api.request('DELETE', f'/messages/{message["id"]}', expect=204)
    api.request('DELETE', f'/messages/{message["id"]}', expect=404)
    assert api.get('/messages')['messages'] == []
    after = alice.open(path(share)).text.partition('Facts')[0]
    assert 'could not extend the share' in after
    assert after.partition('What failed')[2] == before.partition('What failed')[2]
    assert 'could not extend the share' in root.open(path(share)).text


def test_owner_is_shown_who_has_locked_a_share_and_why(share, admin_api, alice):
    assert 'Locked' not in alice.open(path(share)).text
    lock = {
        'resource_id': share['id'],
        'resource_type': 'share',
        'resource_action': 'delete',
        'lock_reason': 'audit until May',
    }
    answer = admin_api.request(
        'POST', '/resource-locks', {'resource_lock': lock}, expect=200
    )
    owner = answer.json['resource_lock']['user_id']
    page = alice.open(path(share)).text
    assert f'against delete by {owner} (admin): audit until May' in page


def test_failed_snapshot_says_why_and_what_to_do_next(cloud, share, api, alice):
    for name in cloud.backend_names:
        cloud.driver(name).faults.fail_next('create_snapshot', error=ValueError('x'))
    act(alice, share, 'snapshot', name='first')
    cloud.settle()
    text = alice.open(path(share)).text
    assert 'create: An unexpected error occurred.' in text
    assert 'Next: delete the snapshot, and take another one.' in text


def test_snapshot_becomes_a_new_share(cloud, admin_api, share, alice):
    admin_api.request(
        'POST',
        f'/types/{TYPE_ID}/extra_specs',
        {'extra_specs': {'create_share_from_snapshot_support': 'True'}},
        expect=200,
    )
    form = alice.open('/ui/shares').form('/ui/shares')
    alice.submit(form, name='source', share_proto='NFS')
    source = {'id': alice.address.partition('?')[0].rpartition('/')[2]}
    cloud.settle()
    act(alice, source, 'snapshot', name='first')
    cloud.settle()
    page = act(alice, source, 'copy-snapshot', name='copy', size='3')
    assert 'The share is being created from the snapshot.' in page.text
    assert alice.address.partition('?')[0] != path(source)
    cloud.settle()
    page = alice.open(alice.address)
    assert 'Share copy' in page.text
    assert 'available' in page.text


def test_time_line_has_moves_with_their_requests(cloud, share, api, alice):
    api.act(share['id'], 'extend', {'new_size': 3})
    waiting = alice.open(path(share)).text
    assert 'work, queued' in waiting
    cloud.settle()
    text = alice.open(path(share)).text
    assert 'work, queued' not in text
    assert text.index('share instance extended') < text.index('share instance extend ')
    assert re.search(r'share instance created .* req-', text)


def test_time_line_has_the_calls_of_drivers(cloud, share, api, alice, root):
    for name in cloud.backend_names:
        cloud.driver(name).faults.fail_next(
            'extend_share', error=ValueError('no <b>space</b>')
        )
    api.act(share['id'], 'extend', {'new_size': 3})
    cloud.settle()
    text = alice.open(path(share)).text
    assert re.search(r'driver call *: create_share → ✓ succeeded took', text)
    assert re.search(r'driver call *: extend_share → ✗ failed .* req-', text)
    assert 'no <b>space' not in text
    page = root.open(path(share))
    assert 'no <b>space</b>' in page.text
    assert '<b>' not in page.html


def test_call_whose_process_ended_is_shown_as_cut_off(cloud, share, api, alice):
    api.act(share['id'], 'extend', {'new_size': 3})

    def start(session):
        work = session.first(sa.select(WORK))
        held = table.claim(session, work.id, [work.queue], 'node', 60.0)
        held.driver_calls.begin(session.new_id(), 'extend_share', session.now)
        driver_calls.record_running(session, held)
        return held

    held = cloud.db.write(start)
    text = alice.open(path(share)).text
    assert 'extend_share → ↻ running' in text
    cloud.db.write(table.abandon, held, 0.0, 'killed')
    cloud.settle()
    text = alice.open(path(share)).text
    assert 'extend_share → ✗ cut off its process ended' in text


def test_only_administrators_see_who_made_a_move(share, alice, root):
    assert 'node@' in root.open(path(share)).text
    assert 'node@' not in alice.open(path(share)).text


def test_created_share_is_shown(cloud, share, alice):
    form = alice.open('/ui/shares').form('/ui/shares')
    page = alice.submit(form, name='new', size='1', share_proto='NFS')
    assert 'The share is being created.' in page.text
    cloud.settle()
    assert 'available' in alice.open(alice.address).text


def test_refused_share_is_explained_and_keeps_what_was_typed(share, alice):
    form = alice.open('/ui/shares').form('/ui/shares')
    page = alice.submit(form, expect=413, name='big', size='100000', share_proto='NFS')
    assert 'quota' in page.text
    assert page.form('/ui/shares').fields['name'] == 'big'


def test_rule_is_added_and_removed(cloud, share, alice):
    page = act(
        alice, share, 'allow', access_type='ip', access_to='10.1.2.3', access_level='rw'
    )
    assert 'The access rule is being applied.' in page.text
    cloud.settle()
    page = alice.open(path(share))
    assert 'ip 10.1.2.3' in page.text
    assert 'active' in page.text
    alice.submit(page.form(f'{path(share)}/deny'))
    cloud.settle()
    assert '10.1.2.3' not in alice.open(path(share)).text


@pytest.mark.parametrize('typed', ['', 'Data', 'data '])
def test_dangerous_action_needs_the_name(cloud, share, alice, typed):
    page = act(alice, share, 'delete', expect=400, confirm=typed)
    assert 'type the name data' in page.text
    assert 'available' in alice.open(path(share)).text


def test_share_is_deleted_by_its_name(cloud, share, alice):
    page = act(alice, share, 'delete', confirm='data')
    assert 'The share is being deleted.' in page.text
    cloud.settle()
    alice.open(path(share), expect=404)


def test_share_is_reverted_to_its_newest_snapshot(cloud, share, alice):
    for name in ('first', 'second'):
        act(alice, share, 'snapshot', name=name)
        cloud.settle()
    page = alice.open(path(share))
    assert page.text.index('second:') < page.text.index('first:')
    assert 'Revert the share to second' in page.text
    assert 'Revert the share to first' not in page.text
    page = act(alice, share, 'revert', confirm='data')
    assert 'reverting' in page.text
    cloud.settle()
    assert 'share instance reverted' in alice.open(path(share)).text


def test_action_that_is_not_possible_has_a_reason(cloud, share, api, alice):
    api.act(share['id'], 'extend', {'new_size': 3})
    page = alice.open(path(share))
    assert 'The share is extending; it must be available.' in page.text
    assert not [form for form in page.forms if form.action.endswith('/extend')]


def test_reader_is_offered_no_action(share, sign_in):
    page = sign_in('rita').open(path(share))
    assert [form.action for form in page.forms] == ['/ui/sign-out']
    assert 'Policies do not allow you this.' in page.text


def test_refusal_of_the_api_is_shown(share, alice):
    page = act(alice, share, 'extend', expect=400, new_size='1')
    assert 'new_size' in page.text or 'size' in page.text
    assert page.form(f'{path(share)}/extend')


@pytest.mark.parametrize(
    'where', ['/ui/shares/x%2F..%2Fy', '/ui/shares/%00', '/ui/shares/a.b']
)
def test_what_is_no_id_is_not_found(alice, where):
    alice.open(where, expect=404)


def test_unknown_action_is_not_found(share, alice):
    token = alice.open('/ui/').form('/ui/sign-out').fields['form_token']
    response = alice.send(
        'POST', f'{path(share)}/unmanage', f'form_token={token}', Origin=alice.host
    )
    assert response.status_int == 404


def test_shares_are_listed_in_pages_by_position(cloud, api, alice, monkeypatch):
    monkeypatch.setattr('manila_lite.api.ui.listing.ROWS', 2)
    for number in range(5):
        api.create(name=f'share-{number}')
    cloud.settle()
    where, seen = '/ui/shares', []
    while where:
        page = alice.open(where)
        seen += re.findall(r'>(share-\d)<', page.html)
        where = next((link for link in page.links if 'after=' in link), None)
    assert sorted(seen) == [f'share-{number}' for number in range(5)]


def test_shares_are_found_by_name_and_status(cloud, api, alice):
    for name in ('apple', 'pear'):
        api.create(name=name)
    cloud.settle()
    assert 'pear' not in alice.open('/ui/shares?name~=pp').html
    assert 'apple' in alice.open('/ui/shares?name~=pp').html
    assert 'no such shares' in alice.open('/ui/shares?status=error').text


def test_statements_of_a_share_do_not_grow_with_it(cloud, share, api, alice):
    def cost():
        before = cloud.statements
        alice.open(path(share))
        return cloud.statements - before

    alice.open(path(share))
    first = cost()
    for number in range(5):
        api.act(
            share['id'],
            'allow_access',
            {
                'access_type': 'ip',
                'access_to': f'10.0.1.{number}',
                'access_level': 'ro',
            },
            expect=200,
        )
    cloud.settle()
    assert cost() <= first + 1
    assert PASSWORD not in alice.open(path(share)).html
