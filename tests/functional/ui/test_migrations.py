"""Migrations on the page: the list, and the migration of one share."""

import re

import pytest
import sqlalchemy as sa

from manila_lite.db.models import shares
from manila_lite.states.share_task import ShareTask
from tests.support.cloud_images import prepared

SHARE = shares.Share.__table__
INSTANCE = shares.ShareInstance.__table__


def test_migrations_are_shown(root):
    assert 'There is no migration.' in root.open('/ui/migrations').text


@pytest.fixture
@prepared
def on_alpha(cloud, api, admin_api):
    """The id of an available share of alice, which beta could have."""
    service = {'host': 'node@beta', 'binary': 'manila-share'}
    admin_api.request('PUT', '/services/disable', service, expect=200)
    share_id = api.create(name='moving')['id']
    cloud.settle()
    admin_api.request('PUT', '/services/enable', service, expect=200)
    return share_id


@pytest.fixture
@prepared
def migrating(cloud, on_alpha, admin_api):
    """The share, when its migration waits for an administrator."""
    body = {
        'host': 'node@beta#pool',
        'writable': False,
        'nondisruptive': False,
        'preserve_metadata': True,
        'preserve_snapshots': False,
    }
    admin_api.act(on_alpha, 'migration_start', body)
    cloud.settle()
    return on_alpha


def test_migration_of_a_share_is_shown_with_what_it_waits_for(migrating, root, alice):
    text = root.open('/ui/migrations').text
    assert 'moving' in text
    assert '100 %' in text
    assert 'An administrator has to complete or cancel it.' in text
    alice.open('/ui/migrations', expect=403)


def test_migration_that_does_not_wait_cannot_be_completed(cloud, migrating, root):
    cloud.db.write(
        lambda session: session.run(
            sa.update(SHARE).values(task_state=ShareTask.COMPLETING)
        )
    )
    page = root.open('/ui/migrations')
    assert 'Complete: not possible. The state of the migration is' in page.text
    assert 'It has no work; recovery handles it.' in page.text
    assert not [f for f in page.forms if f.action.endswith('-migration')]


@pytest.mark.parametrize('event', ['complete', 'cancel'])
def test_migration_is_ended_by_typing_the_name(migrating, root, event):
    where = f'/ui/shares/{migrating}/{event}-migration'
    form = root.open('/ui/migrations').form(where)
    refused = root.submit(form, expect=400, confirm='other')
    assert 'type the name moving' in refused.text
    page = root.submit(root.open('/ui/migrations').form(where), confirm='moving')
    assert 'The migration is being' in page.text


def path(share_id):
    return f'/ui/shares/{share_id}/migration'


def form(browser, share_id, name):
    return browser.open(path(share_id)).form(f'/ui/shares/{share_id}/{name}')


def test_share_is_migrated_and_followed_to_its_end(cloud, on_alpha, root):
    page = root.open(path(on_alpha))
    assert 'The share has not been migrated.' in page.text
    assert '<option value="node@beta#pool">' in page.html
    page = root.submit(
        page.form(f'/ui/shares/{on_alpha}/migrate'), host='node@beta#pool'
    )
    assert 'The migration is requested.' in page.text
    assert 'Its work waits for a worker.' in page.text
    cloud.settle()
    text = root.open(path(on_alpha)).text
    assert 'Phase 1' in text
    assert 'An administrator has to complete or cancel it.' in text
    assert 'Migrate the share: not possible. The state of' in text
    page = root.submit(form(root, on_alpha, 'complete-migration'), confirm='moving')
    assert 'The migration is being completed.' in page.text
    cloud.settle()
    text = root.open(path(on_alpha)).text
    assert '✓ migration success' in text
    assert 'Host node@beta#pool' in text
    assert 'Waits for' not in text
    assert re.search(r'Ended \d+ (s|minutes?) ago', text)


def test_migration_gives_a_new_type_and_demands_what_is_checked(
    cloud, on_alpha, admin_api, root
):
    gold = admin_api.request(
        'POST',
        '/types',
        {
            'share_type': {
                'name': 'gold',
                'extra_specs': {'driver_handles_share_servers': 'False'},
            }
        },
        expect=200,
    ).json['share_type']['id']
    page = root.submit(
        form(root, on_alpha, 'migrate'),
        host='node@beta#pool',
        new_share_type_id=gold,
        writable='1',
    )
    assert 'New type gold' in page.text
    assert 'Demanded Keep the share writable meanwhile Copied' in page.text
    cloud.settle()
    root.submit(form(root, on_alpha, 'complete-migration'), confirm='moving')
    cloud.settle()
    assert admin_api.show(on_alpha)['share_type'] == gold


def token(browser):
    """Return the fields of a form in which nothing is checked."""
    fields = browser.open('/ui/').form('/ui/sign-out').fields
    return {'form_token': fields['form_token']}


def test_refused_migration_is_explained_and_keeps_what_was_typed(on_alpha, root):
    page = root.submit(
        form(root, on_alpha, 'migrate'), expect=404, host='node@beta#lake'
    )
    assert 'node@beta has no pool lake' in page.text
    assert page.form(f'/ui/shares/{on_alpha}/migrate').fields['host'] == (
        'node@beta#lake'
    )


def test_migration_is_cancelled_by_typing_the_name(cloud, on_alpha, root):
    root.submit(form(root, on_alpha, 'migrate'), host='node@beta#pool')
    cloud.settle()
    cancel = form(root, on_alpha, 'cancel-migration')
    refused = root.submit(cancel, expect=400, confirm='other')
    assert 'type the name moving' in refused.text
    root.submit(form(root, on_alpha, 'cancel-migration'), confirm='moving')
    cloud.settle()
    text = root.open(path(on_alpha)).text
    assert 'migration cancelled' in text
    assert 'Host node@alpha#pool' in text


def test_state_of_a_migration_is_reset_by_typing_the_name(cloud, on_alpha, root):
    root.submit(form(root, on_alpha, 'migrate'), host='node@beta#pool')
    cloud.settle()
    reset = {'task_state': ShareTask.ERROR}
    where = form(root, on_alpha, 'reset-migration')
    root.submit(where, expect=400, confirm='other', **reset)
    page = root.submit(where, confirm='moving', **reset)
    assert 'The state of the migration has been set.' in page.text
    cloud.settle()
    assert '✗ migration error' in root.open(path(on_alpha)).text
    assert 'available' in root.open(f'/ui/shares/{on_alpha}').text


def take_snapshot(cloud, share_id, api):
    body = {'snapshot': {'share_id': share_id}}
    api.request('POST', '/snapshots', body, expect=202)
    cloud.settle()


def deny_writing(cloud, share_id, api):
    cloud.db.write(
        lambda session: session.run(
            sa.update(INSTANCE).values(access_rules_status='error')
        )
    )


def extend(cloud, share_id, api):
    api.act(share_id, 'extend', {'new_size': 9})


@pytest.mark.parametrize(
    'prevent, reason',
    [
        (take_snapshot, 'The share has snapshots, which are not migrated.'),
        (deny_writing, 'The access rules of the share are changing or in'),
        (extend, 'The share is extending; it must be available.'),
    ],
)
def test_reason_is_shown_why_a_share_cannot_be_migrated(
    cloud, on_alpha, api, root, prevent, reason
):
    prevent(cloud, on_alpha, api)
    page = root.open(path(on_alpha))
    assert f'Migrate the share: not possible. {reason}' in page.text
    assert not [f for f in page.forms if f.action.endswith('/migrate')]


def test_migration_is_for_those_that_policies_allow(on_alpha, alice, root):
    assert path(on_alpha) in root.open(f'/ui/shares/{on_alpha}').links
    assert path(on_alpha) not in alice.open(f'/ui/shares/{on_alpha}').links
    alice.open(path(on_alpha), expect=403)
    answer = alice.send(
        'POST',
        f'/ui/shares/{on_alpha}/migrate',
        f'form_token={token(alice)["form_token"]}&host=node@beta%23pool',
        Origin=alice.host,
    )
    assert answer.status_int == 403
