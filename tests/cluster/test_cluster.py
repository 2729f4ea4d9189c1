"""A small cluster starts, survives the loss of a node, and leaves nothing."""

import contextlib
import signal
import subprocess

import pytest

from tests.cluster import __main__, cluster, nodes
from tests.support import sampling
from tests.support.processes import free_port, wait_until

pytestmark = [pytest.mark.timeout(600), sampling.suite('clusters of nodes', 1)]


@pytest.fixture(scope='module')
def small(tmp_path_factory):
    """A running cluster; nothing is left of it afterwards."""
    cluster.require()
    running = cluster.Cluster(
        tmp_path_factory.mktemp('small') / 'cluster', cluster.SMALL, port=free_port()
    )
    try:
        yield running.start()
    finally:
        running.close()
    assert namespaces(running) == []
    assert not (running.folder / cluster.STATE).exists()


def namespaces(running):
    return [*nodes.NAMESPACES.glob(f'{running.network.prefix}-*')]


def test_share_services_of_one_back_end_replace_each_other(small):
    admin = small.rest('admin')
    small.create_types()
    pair = f'pair@{cluster.PAIR}'
    admin.create_type('pair', share_backend_name=cluster.PAIR)
    share = admin.create_available(share_type='pair')
    assert share['host'].startswith(pair)
    for name, size in (('share1', 2), ('share2', 3)):
        small.services[name].node.kill()
        admin.act(share['id'], 'extend', {'new_size': size})
        share = admin.wait_at_rest(share['id'], timeout=60)
        assert (share['status'], share['size']) == ('available', size)
        small.services[name].start()
        wait_until(lambda one=small.services[name]: one.is_ready, 'it is back')


def answers(user):
    # The check of a loaded machine may have failed for a moment.
    with contextlib.suppress(AssertionError):
        return user.get('/shares')
    return None


def test_api_that_is_cut_off_gets_no_requests(small):
    small.network.nodes['api1'].unplug()
    wait_until(
        lambda: small.proxy.status('api') == {'api1': 'DOWN', 'api2': 'UP'},
        'the proxy knows it',
    )
    user = small.rest()
    for _ in range(5):
        wait_until(lambda: answers(user), 'the other one answers')
    small.network.nodes['api1'].plug()
    wait_until(
        lambda: set(small.proxy.status('api').values()) == {'UP'},
        'the proxy uses it again',
    )


def test_commands_break_nodes_and_mend_them(small, capsys):
    def command(*words):
        code = __main__.main(['--folder', str(small.folder), *words])
        return code, capsys.readouterr().err

    def apis():
        return small.proxy.status('api')

    api = small.network.nodes['api1']
    assert command('partition', 'api1', 'proxy') == (0, '')
    wait_until(lambda: apis() == {'api1': 'DOWN', 'api2': 'UP'}, 'it is apart')
    assert not api.is_unplugged()
    assert command('join') == (0, '')
    wait_until(lambda: set(apis().values()) == {'UP'}, 'it is used again')

    assert command('fill', 'api1') == (0, '')
    assert api.has_full_disk()
    assert command('free', 'api1') == (0, '')
    assert not api.has_full_disk()

    for words in (('clock', 'api1', '-3600'), ('kill', 'api9')):
        code, error = command(*words)
        assert (code, error.count('\n')) == (1, 1)


def test_delays_and_losses_need_netem(small, capsys):
    folder = ['--folder', str(small.folder)]
    for words in (['delay', 'api1', '20'], ['loss', 'api1', '1']):
        code = __main__.main([*folder, *words])
        assert code == ('netem' in capsys.readouterr().err)
        assert __main__.main([*folder, *words[:-1], '0']) == 0


def test_network_of_the_nodes_is_in_namespaces_only(small):
    assert len(namespaces(small)) == len(small.network.nodes) + 1
    shown = subprocess.run(
        ['ip', '-o', 'address'], capture_output=True, text=True, check=True
    ).stdout
    assert nodes.NETWORK not in shown


def test_next_cluster_removes_what_a_killed_process_has_left(tmp_path):
    cluster.require()
    ended = subprocess.Popen(['true'])
    network = nodes.Network(tmp_path, f'{nodes.PREFIX}{ended.pid}', ['one'])
    network.create()
    left = network.nodes['one'].spawn('sleep', '600')
    try:
        wait_until(lambda: left.pid in network.nodes['one'].pids(), 'it runs there')
        ended.wait()
        nodes.remove_abandoned()
        assert not [*nodes.NAMESPACES.glob(f'{network.prefix}-*')]
        assert left.wait(10) == -signal.SIGKILL
    finally:
        network.remove()
