"""The exact number of SQL statements of requests and their work.

A number that grows is a mistake until it is justified; one that falls is
to be updated here. BEGIN and COMMIT are not counted, nor is the sweep, before
which the driver calls of all work that has succeeded since are written.
"""

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from manila_lite.db.models import access
from tests.support import cloud_snapshots, share_groups
from tests.support.access import RULE, ShareRules

METADATA = access.AccessRuleMetadata.__table__
MAPPING = access.InstanceAccessRule.__table__

MANY = 30
VERY_MANY = 2000


@pytest.fixture
def cloud(build_cloud):
    # Admission control reads the queue once a second, in any request.
    cloud = build_cloud('[work]\nmax_queue = 0')
    cloud.create_share()  # the first one inserts rows of quota usage
    cloud.waiting = []
    cloud.db.deliver = cloud.waiting.extend
    return cloud


def cost(cloud, call, *args, **kwargs):
    """Return the result of the call and its number of statements."""
    before = cloud.statements
    answer = call(*args, **kwargs)
    return answer, cloud.statements - before


def carry_out(cloud):
    """Run the hinted work, and the work it hints at."""
    while cloud.waiting:
        hint = cloud.waiting.pop(0)
        (runner,) = (one for one in cloud.runners if hint.queue in one.queues)
        runner.wake(hint.work_id)
        assert runner.step()


def created(cloud, **body):
    share_id = cloud.api.create(**body)['id']
    carry_out(cloud)
    return share_id


@pytest.mark.parametrize('version, statements', [('2.8', 2), ('2.9', 1), ('2.99', 1)])
def test_show_share(cloud, version, statements):
    share = created(cloud, metadata={'color': 'red'})
    _, taken = cost(cloud, cloud.api.show, share, version=version)
    assert taken == statements


@pytest.mark.parametrize(
    'path, version, statements',
    [
        ('/shares', '2.99', 1),
        ('/shares?with_count=true', '2.99', 2),
        ('/shares/detail', '2.8', 3),
        ('/shares/detail?with_count=true', '2.8', 4),
        ('/shares/detail', '2.99', 2),
        ('/shares/detail?with_count=true', '2.99', 3),
        ('/share_instances', '2.8', 2),
        ('/share_instances', '2.99', 1),
        ('/types', '2.99', 1),
        ('/messages', '2.99', 1),
        ('/scheduler-stats/pools/detail', '2.99', 1),
        ('/services', '2.99', 1),
        ('/limits', '2.99', 2),
        ('/quota-sets/project', '2.99', 1),
    ],
)
def test_list_of_any_length(cloud, path, version, statements):
    _, of_one = cost(cloud, cloud.api.get, path, version=version)
    for number in range(MANY):
        created(cloud, metadata={'number': str(number)})
    answer, of_many = cost(cloud, cloud.api.get, path, version=version)
    assert (of_one, of_many) == (statements, statements)
    if 'shares' in answer:
        assert len(answer['shares']) == MANY + 1


@pytest.mark.parametrize('resource', ['shares', 'snapshots'])
def test_list_that_finds_nothing(cloud, resource):
    created(cloud)
    path = f'/{resource}/detail?name=nothing'
    answer, taken = cost(cloud, cloud.api.get, path, version='2.99')
    assert (answer, taken) == ({resource: []}, 1)


def test_export_locations(cloud):
    share = created(cloud)
    path = f'/shares/{share}/export_locations'
    listed, taken = cost(cloud, cloud.api.get, path)
    assert taken == 3
    one = listed['export_locations'][0]['id']
    assert cost(cloud, cloud.api.get, f'{path}/{one}')[1] == 3


def test_create_share(cloud):
    share, accepted = cost(
        cloud, cloud.api.create, metadata={'color': 'red', 'shape': 'round'}
    )
    _, carried_out = cost(cloud, carry_out, cloud)
    assert cloud.api.show(share['id'])['status'] == 'available'
    assert accepted == 7
    assert accepted + carried_out == 18


def test_usage_is_changed_last(cloud):
    """All other creates of the project wait from there to the commit."""
    taken = []

    def take(connection, cursor, statement, parameters, context, executemany):
        taken.append(statement)

    event.listen(cloud.db.engine, 'before_cursor_execute', take)
    cloud.api.create()
    changes = [
        number
        for number, statement in enumerate(taken)
        if statement.startswith('UPDATE quota_usages')
    ]
    assert [len(taken) - number for number in changes] == [1]


def test_shares_that_are_placed_together(cloud):
    """One statement reads them, three place them."""
    for _ in range(5):
        cloud.api.create()
    (runner,) = cloud.scheduler.runners
    hints = list(cloud.waiting)
    cloud.waiting.clear()
    for hint in hints:
        runner.wake(hint.work_id)
    _, placed = cost(cloud, runner.step)
    _, carried_out = cost(cloud, carry_out, cloud)
    assert placed == 4
    assert carried_out == 5 * 7


@pytest.mark.parametrize(
    'action, args, accepted, carried_out',
    [
        ('extend', {'new_size': 5}, 7, 10),
        ('extend', {'new_size': 5, 'force': True}, 8, 7),
        ('shrink', {'new_size': 1}, 6, 8),
        # It reads whether the share is being migrated.
        ('force_delete', None, 9, 13),
        ('soft_delete', None, 7, 0),
        ('restore', None, 1, 0),
        # It reads whether the share has replicas or is being migrated.
        ('reset_status', {'status': 'error'}, 5, 0),
    ],
)
def test_action(cloud, action, args, accepted, carried_out):
    share = created(cloud, size=2)
    expect = 200 if action == 'restore' else 202
    _, taken = cost(cloud, cloud.api.act, share, action, args, expect=expect)
    _, later = cost(cloud, carry_out, cloud)
    assert (taken, later) == (accepted, carried_out)


def test_delete_share(cloud):
    share = created(cloud, metadata={'color': 'red'})
    assert cost(cloud, cloud.api.delete, share)[1] == 8
    # Two record that the removal begins, once the driver has the share.
    assert cost(cloud, carry_out, cloud)[1] == 15


@pytest.mark.parametrize(
    'method, path, body, statements',
    [
        ('PUT', '', {'share': {'display_name': 'new'}}, 3),
        ('GET', '/metadata', None, 2),
        ('POST', '/metadata', {'metadata': {'color': 'blue'}}, 5),
        ('PUT', '/metadata', {'metadata': {'color': 'blue'}}, 6),
        ('DELETE', '/metadata/color', None, 2),
    ],
)
def test_request_about_a_share(cloud, method, path, body, statements):
    share = created(cloud, metadata={'color': 'red'})
    _, taken = cost(
        cloud, cloud.api.request, method, f'/shares/{share}{path}', body, expect=200
    )
    assert taken == statements


@pytest.mark.parametrize('rules', [0, 1, VERY_MANY])
def test_rules_of_any_number(cloud, rules):
    share = created(cloud)
    let_in(cloud, share, rules)
    rule, accepted = cost(cloud, allow, cloud, share, '10.0.0.1')
    _, carried_out = cost(cloud, carry_out, cloud)
    assert (accepted, accepted + carried_out) == (6, 15)
    _, changed = cost(
        cloud,
        cloud.api.request,
        'PUT',
        f'/share-access-rules/{rule}',
        {'update_access': {'access_level': 'ro'}},
        expect=200,
    )
    _, carried_out = cost(cloud, carry_out, cloud)
    assert (changed, carried_out) == (12, 9)
    _, denied = cost(cloud, cloud.api.act, share, 'deny_access', {'access_id': rule})
    _, carried_out = cost(cloud, carry_out, cloud)
    assert (denied, carried_out) == (7, 12)


def test_many_rules_in_one_sync(cloud):
    share = created(cloud)
    for number in range(MANY):
        allow(cloud, share, f'10.0.0.{number}')
    first = cloud.waiting[:1]
    cloud.waiting[:] = first  # the others match
    assert cost(cloud, carry_out, cloud)[1] == 9


def test_list_of_many_rules(cloud):
    share = created(cloud)
    path = f'/share-access-rules?share_id={share}'
    for rules in (1, VERY_MANY):
        let_in(cloud, share, rules)
        listed, taken = cost(cloud, cloud.api.get, path)
        assert (len(listed['access_list']), taken) == (rules, 4)
    older, taken = cost(
        cloud, cloud.api.act, share, 'access_list', expect=200, version='2.44'
    )
    assert (len(older.json['access_list']), taken) == (VERY_MANY, 4)


def let_in(cloud, share, count):
    """Insert so many rules of the share, each with metadata."""
    rules = ShareRules(cloud, share)
    instance_id = rules.instance_id

    def fill(session):
        made = [
            {
                'id': session.new_id(),
                'share_id': share,
                'access_type': 'ip',
                'access_to': to,
                'target': to,
                'access_level': 'rw',
                'created_at': session.now,
            }
            for number in range(rules.known, count)
            for to in [f'10.1.{number // 250}.{number % 250}']
        ]
        session.run_many(sa.insert(RULE), made)
        session.run_many(
            sa.insert(METADATA),
            [
                {'access_id': rule['id'], 'key': 'color', 'value': 'red'}
                for rule in made
            ],
        )
        session.run_many(
            sa.insert(MAPPING),
            [
                {
                    'id': session.new_id(),
                    'access_id': rule['id'],
                    'share_instance_id': instance_id,
                    'state': 'active',
                    'created_at': session.now,
                }
                for rule in made
            ],
        )

    cloud.db.write(fill)


def allow(cloud, share, to):
    """Request a rule and return its id."""
    return cloud.api.act(
        share, 'allow_access', {'access_type': 'ip', 'access_to': to}, expect=200
    ).json['access']['id']


def test_snapshot_of_a_share_group(cloud):
    cloud_snapshots.enable_snapshot_features(cloud)
    type_id = share_groups.create_type(cloud.api)
    answer = share_groups.request(cloud.api, type_id)
    carry_out(cloud)
    group = answer.json['share_group']['id']

    def take():
        requested, first = cost(cloud, share_groups.request_snapshot, cloud.api, group)
        _, then = cost(cloud, carry_out, cloud)
        id = requested.json['share_group_snapshot']['id']
        assert len(share_groups.show_snapshot(cloud.api, id)['members']) == len(
            cloud.api.get(f'/shares?share_group_id={group}')['shares']
        )
        return first, then

    created(cloud, share_group_id=group)
    take()  # the first one inserts rows of quota usage
    few = take()
    for _ in range(MANY):
        created(cloud, share_group_id=group)
    assert take() == few
