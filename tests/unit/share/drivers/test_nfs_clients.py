import pytest

from manila_lite.share.drivers.base import AccessRuleForDriver
from manila_lite.share.drivers.nfs_clients import clients_of


def rule(access_to, access_level='rw', access_type='ip'):
    return AccessRuleForDriver(
        id=f'{access_type} {access_to} {access_level}',
        share_id='share',
        access_type=access_type,
        access_to=access_to,
        access_level=access_level,
    )


def networks(*rules, **options):
    return [tuple(each) for each in clients_of(rules, **options)[0]]


def test_narrowest_network_comes_first():
    assert networks(
        rule('0.0.0.0/0', 'ro'),
        rule('10.0.0.0/8'),
        rule('10.0.0.7', 'ro'),
        rule('::/0', 'ro'),
        rule('fd00::7'),
    ) == [
        ('10.0.0.7', 'ro'),
        ('10.0.0.0/8', 'rw'),
        ('0.0.0.0/0', 'ro'),
        ('fd00::7', 'rw'),
        ('::/0', 'ro'),
    ]


def test_snapshots_are_read_only():
    assert networks(rule('10.0.0.7'), read_only=True) == [('10.0.0.7', 'ro')]


def test_two_rules_for_one_network_give_the_lesser_access():
    assert networks(rule('10.0.0.0/8'), rule('10.1.2.3/8', 'ro')) == [
        ('10.0.0.0/8', 'ro')
    ]


TYPE = 'NFS takes rules of the type ip only'
ADDRESS = 'NFS takes addresses and networks only'
LEVEL = 'NFS takes the levels rw and ro only'


@pytest.mark.parametrize(
    'odd, reason',
    [
        (rule('alice', access_type='user'), TYPE),
        (rule('common name', access_type='cert'), TYPE),
        (rule('alice', access_type='cephx'), TYPE),
        (rule('10.0.0.1', access_level='rwx'), LEVEL),
        (rule('10.0.0.1; Access_Type = RW'), ADDRESS),
        (rule('a b(rw)'), ADDRESS),
        (rule('*'), ADDRESS),
        (rule('fe80::1%eth0'), ADDRESS),
        (rule('fe80::1%a; } CLIENT { Clients = *'), ADDRESS),
        (rule('fe80::1%eth0 *(rw)'), ADDRESS),
    ],
    ids=lambda odd: getattr(odd, 'id', None),
)
def test_rule_that_servers_cannot_apply_fails_with_the_reason(odd, reason):
    clients, replies = clients_of([odd, rule('10.0.0.7')])
    assert [client.network for client in clients] == ['10.0.0.7']
    assert replies[odd.id] == {'state': 'error', 'reason': reason}


@pytest.mark.parametrize(
    'access_to, written',
    [
        ('10.0.0.1/32', '10.0.0.1'),
        ('10.1.2.3/8', '10.0.0.0/8'),
        ('0.0.0.0/0', '0.0.0.0/0'),
        ('2001:DB8::1', '2001:db8::1'),
        ('2001:db8::/64', '2001:db8::/64'),
        ('::/0', '::/0'),
        ('::ffff:10.0.0.1', '10.0.0.1'),
        ('::ffff:10.0.0.0/120', '10.0.0.0/24'),
        ('::ffff:0:0/96', '0.0.0.0/0'),
    ],
)
def test_client_has_its_usual_spelling(access_to, written):
    assert networks(rule(access_to)) == [(written, 'rw')]
