"""Hosts: host@backend#pool, and what is missing of it."""

import pytest

from manila_lite.host import Host


def test_a_host_has_a_machine_a_back_end_and_a_pool():
    host = Host.parse('node1@nfs#fast')
    assert host == Host('node1@nfs', 'fast')
    assert (host.machine, host.backend, host.pool) == ('node1', 'nfs', 'fast')


@pytest.mark.parametrize(
    'text, machine, backend, pool',
    [
        ('', '', '', ''),
        ('node1', 'node1', '', ''),
        ('node1@nfs', 'node1', 'nfs', ''),
        ('node1#fast', 'node1', '', 'fast'),
        ('node1@nfs#a#b', 'node1', 'nfs', 'a#b'),
    ],
)
def test_missing_parts_are_empty(text, machine, backend, pool):
    host = Host.parse(text)
    assert (host.machine, host.backend, host.pool) == (machine, backend, pool)
    assert str(host) == text


def test_an_empty_pool_is_left_out():
    assert str(Host.parse('node1@nfs#')) == 'node1@nfs'
