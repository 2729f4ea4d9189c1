import pytest

from manila_lite.share.drivers.base import AccessRuleForDriver
from manila_lite.share.drivers.btrfs.clients import clients_of


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


@pytest.mark.parametrize(
    'odd',
    [
        rule('alice', access_type='user'),
        rule('10.0.0.1', access_level='rwx'),
        rule('10.0.0.1; Access_Type = RW'),
        rule('*'),
        rule('fe80::1%eth0'),
        rule('fe80::1%a; } CLIENT { Clients = *'),
    ],
    ids=lambda rule: rule.id,
)
def test_rule_that_the_server_cannot_apply_fails(odd):
    clients, replies = clients_of([odd, rule('10.0.0.7')])
    assert [client.network for client in clients] == ['10.0.0.7']
    assert replies[odd.id] == {'state': 'error'}
