"""Access rules are listed, filtered, shown and hidden."""

import pytest
import sqlalchemy as sa

from manila_lite.db.models import access, shares
from manila_lite.states.access_rule import STATES_BY_RANK
from tests.functional.api import differences
from tests.functional.api.access.access_client import (
    allow_access,
    create_lock,
    delete_lock,
    deny_access,
    list_locks,
    list_rules,
    show_rule,
)
from tests.functional.api.samples.replicas import insert_replica, make_replicable
from tests.functional.api.snapshot_client import UNKNOWN
from tests.support.api_client import ApiClient

INSTANCE = shares.ShareInstance.__table__
MAPPING = access.InstanceAccessRule.__table__
HIDDEN = '******'


def ids(rules):
    return [rule['id'] for rule in rules]


# Filters


@pytest.fixture
def rules(member, share):
    return [
        allow_access(member, share, **body)['id']
        for body in (
            {'access_to': '10.0.0.1', 'metadata': {'color': 'red'}},
            {'access_to': '10.0.0.0/24', 'access_level': 'ro'},
            {'access_to': 'fd00::1', 'metadata': {'color': 'red', 'shape': 'round'}},
            {'access_type': 'user', 'access_to': 'alice'},
        )
    ]


@pytest.mark.parametrize(
    'query, version, expected',
    [
        ('', '2.45', [0, 1, 2, 3]),
        ("&metadata={'color': 'red'}", '2.45', [0, 2]),
        ("&metadata={'color': 'red', 'shape': 'round'}", '2.45', [2]),
        ("&metadata={'color': 'blue'}", '2.45', []),
        ('&access_type=user', '2.81', [0, 1, 2, 3]),
        ('&access_type=nonsense', '2.81', [0, 1, 2, 3]),
        ('&access_type=user', '2.82', [3]),
        ('&access_level=ro', '2.82', [1]),
        ('&access_type=ip&access_to=10.0.0.1', '2.82', [0]),
        ('&access_type=ip&access_to=10.0.0.1/32', '2.82', [0]),
        ('&access_type=ip&access_to=FD00::0:1', '2.82', [2]),
        ('&access_type=user&access_to=alice&access_level=ro', '2.82', []),
        ('&access_key=secret', '2.82', []),
        ('&color=red', '2.99', [0, 1, 2, 3]),
    ],
)
@pytest.mark.facts('add-access-visibility-and-delete-locks.4')
def test_list_is_filtered(member, share, rules, query, version, expected):
    found = list_rules(member, share, query, version=version)
    assert ids(found) == [rules[position] for position in expected]


@pytest.mark.parametrize(
    'query',
    [
        '&access_type=dns',
        '&access_level=wr',
        '&access_to=10.0.0.1',
        '&access_type=ip&access_to=moon',
        '&metadata={',
        '&metadata=[]',
    ],
)
def test_invalid_query_is_refused(member, share, query):
    list_rules(member, share, query, expect=400)


def test_list_needs_a_share(member):
    member.get('/share-access-rules', expect=400)
    member.get('/share-access-rules?share_id=', expect=400)


@pytest.mark.facts('LP1917417')
def test_share_of_another_project_is_unknown(member, stranger, share):
    answers = [
        list_rules(stranger, id, expect=400)['badRequest']['message'].replace(id, '')
        for id in (share, UNKNOWN)
    ]
    assert answers[0] == answers[1]


@pytest.mark.facts('LP1917417')
def test_rules_of_a_public_share_are_hidden_from_other_projects(
    admin, member, stranger, share
):
    rule = allow_access(member, share)['id']
    admin.request('PUT', f'/shares/{share}', {'share': {'is_public': True}}, expect=200)
    list_rules(stranger, share, expect=403)
    stranger.act(share, 'access_list', expect=403, version='2.44')
    show_rule(stranger, rule, expect=404)
    deny_access(stranger, share, rule, expect=403)


def test_list_has_only_rules_of_the_share(cloud, member, share):
    other = member.create()['id']
    cloud.settle()
    rule = allow_access(member, share)['id']
    allow_access(member, other)
    assert ids(list_rules(member, share)) == [rule]


# States


def set_states(cloud, rule, *states, key=None):
    """Set the states of a rule, one per instance of its share."""

    def write(session):
        rows = session.rows(
            sa.select(MAPPING.c.id)
            .where(MAPPING.c.access_id == rule)
            .order_by(MAPPING.c.id)
        )
        for row, state in zip(rows, states, strict=True):
            session.run(
                sa.update(MAPPING)
                .where(MAPPING.c.id == row.id)
                .values(state=state, access_key=key)
            )

    cloud.db.write(write)


@pytest.fixture
def replicated(cloud, share):
    """Add a second instance to the share; return its id."""
    make_replicable(cloud, share)
    insert_replica(cloud, share)
    return share


def test_rule_shows_the_worst_of_its_states(cloud, member, replicated):
    rule = allow_access(member, replicated)['id']
    for position, worse in enumerate(STATES_BY_RANK):
        for better in STATES_BY_RANK[position:]:
            for states in ((worse, better), (better, worse)):
                set_states(cloud, rule, *states)
                assert show_rule(member, rule)['state'] == worse
                assert [one['state'] for one in list_rules(member, replicated)] == [
                    worse
                ]


@pytest.mark.parametrize('active', [0, 1])
def test_rule_shows_the_key_of_the_active_replica(cloud, member, replicated, active):
    """Replicas on two clusters have a key each."""
    rule = allow_access(member, replicated)['id']

    def write(session):
        states = sa.select(INSTANCE.c.id).where(INSTANCE.c.share_id == replicated)
        for number, row in enumerate(session.rows(states.order_by(INSTANCE.c.id))):
            state = 'active' if number == active else 'in_sync'
            for table, key, values in (
                (INSTANCE, INSTANCE.c.id, {'replica_state': state}),
                (MAPPING, MAPPING.c.share_instance_id, {'access_key': state}),
            ):
                session.run(sa.update(table).where(key == row.id).values(values))

    cloud.db.write(write)
    shown = [show_rule(member, rule), *list_rules(member, replicated)]
    assert [one['access_key'] for one in shown] == ['active', 'active']


def test_share_shows_the_worst_of_its_instances(cloud, member, replicated):
    assert member.show(replicated)['access_rules_status'] == 'active'
    rule = allow_access(member, replicated)['id']
    assert member.show(replicated)['access_rules_status'] == 'out_of_sync'
    for status in ('active', 'error', 'out_of_sync'):
        _set_status_of_one(cloud, replicated, status)
        expected = 'error' if status == 'error' else 'out_of_sync'
        shown = member.get('/shares/detail')['shares']
        assert [one['access_rules_status'] for one in shown] == [expected]
        assert member.show(replicated)['access_rules_status'] == expected
    assert len(list_rules(member, replicated)) == 1
    assert show_rule(member, rule)['share_id'] == replicated


def test_share_skips_instances_that_are_not_available(cloud, member, replicated):
    _set_status_of_one(cloud, replicated, 'error', of='status')
    _set_status_of_one(cloud, replicated, 'error')
    assert member.show(replicated)['access_rules_status'] == 'active'
    (listed,) = member.get('/shares/detail')['shares']
    assert listed['access_rules_status'] == 'active'


def test_share_that_is_not_available_shows_active_rules(cloud, member, share):
    _set_status_of_one(cloud, share, 'error')
    assert member.show(share)['access_rules_status'] == 'error'
    _set_status_of_one(cloud, share, 'extending', of='status')
    assert member.show(share)['access_rules_status'] == 'active'
    (listed,) = member.get('/shares/detail')['shares']
    assert listed['access_rules_status'] == 'active'


def _set_status_of_one(cloud, share, status, of='access_rules_status'):
    cloud.db.write(
        lambda session: session.run(
            sa.text(
                f'UPDATE share_instances SET {of} = :status '
                'WHERE id = (SELECT min(id) FROM share_instances '
                'WHERE share_id = :share)'
            ),
            status=status,
            share=share,
        )
    )


@differences.proves('access rules being updated')
@pytest.mark.parametrize(
    'state, older', [('queued_to_update', 'queued_to_apply'), ('updating', 'applying')]
)
def test_update_states_are_shown_from_2_88(cloud, member, share, state, older):
    rule = allow_access(member, share)['id']
    set_states(cloud, rule, state)
    assert show_rule(member, rule, version='2.88')['state'] == state
    assert show_rule(member, rule, version='2.87')['state'] == older
    found = member.act(share, 'access_list', expect=200, version='2.28')
    assert found.json['access_list'][0]['state'] == older
    found = member.act(share, 'access_list', expect=200, version='2.27')
    assert found.json['access_list'][0]['state'] == 'new'


# Visibility


@pytest.fixture
def hidden(cloud, member, share):
    """Create a rule with a key, hidden by its creator."""
    rule = allow_access(
        member, share, access_type='cephx', access_to='alice', lock_visibility=True
    )['id']
    set_states(cloud, rule, 'active', key='secret')
    return rule


def target_and_key(rule):
    return rule['access_to'], rule['access_key']


@pytest.mark.facts('add-access-visibility-and-delete-locks.2')
def test_creator_and_administrators_see_a_hidden_rule(
    cloud, member, admin, share, hidden
):
    service = ApiClient(cloud, project='project', user='nova', roles='service,reader')
    for api in (member, admin, service):
        assert target_and_key(show_rule(api, hidden)) == ('alice', 'secret')
        assert target_and_key(list_rules(api, share)[0]) == ('alice', 'secret')


@pytest.mark.parametrize('version', ['2.44', '2.45', '2.82', '2.99'])
@pytest.mark.facts('add-access-visibility-and-delete-locks.2')
def test_others_see_asterisks(colleague, share, hidden, version):
    if version == '2.44':
        (rule,) = colleague.act(share, 'access_list', expect=200, version=version).json[
            'access_list'
        ]
    else:
        (rule,) = list_rules(colleague, share, version=version)
        assert target_and_key(show_rule(colleague, hidden, version=version)) == (
            HIDDEN,
            HIDDEN,
        )
    assert target_and_key(rule) == (HIDDEN, HIDDEN)


def test_only_the_hidden_rule_is_hidden(member, colleague, share, hidden):
    other = allow_access(member, share)['id']
    assert [
        (rule['id'], rule['access_to']) for rule in list_rules(colleague, share)
    ] == [(hidden, HIDDEN), (other, '10.0.0.1')]


def test_rule_is_visible_again_without_the_lock(member, colleague, hidden):
    delete_lock(member, list_locks(member)[0]['id'])
    assert target_and_key(show_rule(colleague, hidden)) == ('alice', 'secret')


def test_answer_to_a_change_hides_the_rule_too(colleague, hidden):
    answer = colleague.request(
        'PUT',
        f'/share-access-rules/{hidden}',
        {'update_access': {'access_level': 'ro'}},
        expect=200,
    ).json
    assert target_and_key(answer['access']) == (HIDDEN, HIDDEN)


@differences.proves('filters of hidden rules')
@pytest.mark.facts('add-access-visibility-and-delete-locks.4')
def test_filters_do_not_reveal_hidden_values(member, colleague, share, hidden):
    for query in ('&access_type=cephx&access_to=alice', '&access_key=secret'):
        assert ids(list_rules(member, share, query)) == [hidden]
        assert list_rules(colleague, share, query) == []
    assert ids(list_rules(colleague, share, '&access_type=cephx')) == [hidden]


@differences.proves('lock of a share for a rule')
def test_lock_of_the_share_is_deleted_with_that_of_the_rule(member, share):
    allow_access(member, share, lock_deletion=True)
    own = create_lock(member, share)
    delete_lock(member, list_locks(member, '?resource_type=access_rule')[0]['id'])
    assert list_locks(member) == [own]


# Cost


def test_list_of_any_length_takes_four_statements(cloud, member, share):
    def statements():
        before = cloud.statements
        list_rules(member, share)
        return cloud.statements - before

    allow_access(member, share)
    of_one = statements()
    for number in range(2, 52):
        allow_access(
            member,
            share,
            access_to=f'10.0.0.{number}',
            metadata={'number': str(number)},
        )
    assert (of_one, statements()) == (4, 4)
