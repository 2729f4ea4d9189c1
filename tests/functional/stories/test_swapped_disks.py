"""Disks that are not where they belong, as users and operators see it."""

import pytest

from manila_lite.cmd import manage
from tests.functional.stories import suites
from tests.functional.stories.conftest import new_installation
from tests.support import command_line
from tests.support.processes import wait_until

pytestmark = suites.clients

CLIENT = '192.0.2.7'


class Disks:
    """An installation with a `local` back end for each of some disks."""

    def __init__(self, installation, roots):
        self.installation = installation
        self.roots = roots
        self.rest = installation.rest()

    def name(self, backend):
        return self.installation.service_host(backend)

    def service(self, backend):
        found = self.installation.rest('admin').get(
            f'/services?host={self.name(backend)}'
        )
        return found['services'][0]

    def wait_for_state(self, state, *backends):
        for name in backends or self.roots:
            wait_until(
                lambda name=name: self.service(name)['state'] == state,
                f'{name} is {state}',
            )

    def problem(self, backend):
        """Return the line of `service list` about a back end."""
        return next(
            line
            for line in self.installation.manage('service', 'list').split('\n')
            if line.split()[1:2] == [self.name(backend)]
        )

    def create_on(self, backend):
        return self.rest.create_available(share_type=backend)['id']

    def allow(self, share_id, backend):
        """Let a client in; return the id of the rule."""
        rule = self.rest.act(
            share_id,
            'allow_access',
            {'access_type': 'ip', 'access_to': CLIENT},
            expect=200,
        )
        wait_until(lambda: CLIENT in self.clients(backend), 'it is let in')
        return rule['access']['id']

    def rules(self, share_id):
        """Return the states of the access rules."""
        found = self.rest.get(f'/share-access-rules?share_id={share_id}')
        return [rule['state'] for rule in found['access_list']]

    def wait_for_problem(self, backend, *texts):
        wait_until(
            lambda: all(text in self.problem(backend) for text in texts),
            f'{texts} are shown for {backend}',
        )

    def wait_until_denied(self, share_id, backend):
        wait_until(lambda: not self.rules(share_id), 'the rule is gone')
        assert CLIENT not in self.clients(backend)

    def swap(self, one, other):
        roots = [self.roots[name] for name in (one, other)]
        away = roots[0].with_name('away')
        roots[0].rename(away)
        roots[1].rename(roots[0])
        away.rename(roots[1])

    def clients(self, backend):
        """Return what the export files let in."""
        return ''.join(
            file.read_text()
            for file in (self.roots[backend] / 'exports').glob('*.exports')
        )


@pytest.fixture
def disks(tmp_path):
    roots = {name: tmp_path / f'disk-{name}' / 'root' for name in 'ab'}
    with new_installation(
        tmp_path / 'installation',
        options='scheduler_wait_for_backends = 0',
        backends={
            name: {
                'share_driver': 'local',
                'local_root': root,
                'share_backend_name': name,
            }
            for name, root in roots.items()
        },
    ) as installation:
        installation.start()
        for name in roots:
            installation.rest().create_type(name, share_backend_name=name)
        yield Disks(installation, roots)


def files(root):
    """Return what a directory has, without what calls leave for a moment."""
    return sorted(
        (path, path.read_bytes())
        for path in root.rglob('*')
        if path.is_file() and path.parent.name not in ('work', 'fencing')
    )


def test_disks_that_change_places_at_a_reboot_serve_nothing(disks):
    ids = {name: disks.create_on(name) for name in 'ab'}
    rule = disks.allow(ids['a'], 'a')
    disks.installation.stop()
    disks.swap('a', 'b')
    before = {name: files(disks.roots[name]) for name in 'ab'}
    disks.installation.start(wait=False)
    for name, other in ('ab', 'ba'):
        disks.wait_for_problem(name, f'belongs to {disks.name(other)}')
    health = disks.installation.rest(url=disks.installation.root)
    answer = health.get('/healthcheck?detail', expect=503)
    assert disks.name('a') in str(answer)
    disks.rest.act(ids['a'], 'deny_access', {'access_id': rule})
    disks.rest.delete(ids['b'])
    assert disks.rules(ids['a']) == ['queued_to_deny']
    assert {name: files(disks.roots[name]) for name in 'ab'} == before
    disks.swap('a', 'b')
    disks.wait_for_state('up')
    disks.rest.wait_gone(ids['b'])
    disks.wait_until_denied(ids['a'], 'a')


def test_deny_fails_visibly_while_disks_are_in_each_others_place(disks):
    ids = {name: disks.create_on(name) for name in 'ab'}
    rule = disks.allow(ids['a'], 'a')
    disks.swap('a', 'b')
    disks.rest.act(ids['a'], 'deny_access', {'access_id': rule})
    wait_until(lambda: disks.rules(ids['a']) == ['error'], 'it has failed')
    disks.rest.delete(ids['b'])
    assert disks.rest.wait_at_rest(ids['b'])['status'] == 'error_deleting'
    disks.wait_for_state('down')
    disks.wait_for_problem('a', 'is on another disk')
    disks.swap('a', 'b')
    disks.wait_for_state('up')
    disks.rest.act(ids['a'], 'deny_access', {'access_id': rule})
    disks.wait_until_denied(ids['a'], 'a')


@pytest.mark.parametrize('is_marked', [False, True])
def test_new_disk_is_not_used_in_place_of_one_with_shares(disks, is_marked):
    share_id = disks.create_on('a')
    disks.installation.stop()
    root = disks.roots['a']
    root.rename(root.with_name('lost'))
    root.mkdir()
    if is_marked:
        (root / '.manila_lite').touch()
    before = files(root)
    disks.installation.start(wait=False)
    disks.wait_for_state('up', 'b')
    disks.wait_for_problem('a', 'declare-lost')
    assert files(root) == before
    assert disks.rest.show(share_id)['status'] == 'available'


def test_two_nodes_with_one_host_and_two_disks_do_not_both_serve(disks, tmp_path):
    first = disks.installation
    with new_installation(
        tmp_path / 'second',
        kind=('share',),
        database_url=first.database_url,
        options=f'host = {first.host}',
        backends={
            name: {'share_driver': 'local', 'local_root': tmp_path / f'2{name}'}
            for name in 'ab'
        },
    ) as second:
        second.start(wait=False)
        log = second.running['share']
        for name in 'ab':
            log.wait_for(
                lambda name=name: (
                    f'{disks.name(name)}: the disk at {tmp_path}/2{name}' in log.output
                ),
                'the disk is refused',
            )
        disks.wait_for_state('up')
        for name in 'ab':
            disks.create_on(name)
            disks.wait_for_problem(name, 'Of another process', 'declare-lost')
            assert not (tmp_path / f'2{name}').exists()


def test_disk_that_is_lost_is_declared_so(disks):
    share_id = disks.create_on('a')
    disks.installation.stop()
    root = disks.roots['a']
    root.rename(root.with_name('lost'))
    cost = refused_by(disks, 'declare-lost', disks.name('a'))
    assert '1 shares and 0 snapshots of 1 GiB are lost' in cost.out
    assert 'add --yes' in cost.out
    disks.installation.start(wait=False)
    disks.wait_for_problem('a', 'has no file .manila_lite')
    disks.wait_for_state('up', 'b')
    in_use = refused_by(disks, 'declare-lost', disks.name('b'), '--yes')
    assert 'is up and uses its disk' in in_use.err
    disks.installation.manage('storage', 'declare-lost', disks.name('a'), '--yes')
    disks.wait_for_state('up', 'a')
    wait_until(
        lambda: disks.rest.show(share_id)['status'] == 'error', 'the share is in error'
    )
    disks.rest.delete(share_id)
    assert disks.rest.wait_at_rest(share_id)['status'] == 'error_deleting'
    disks.rest.act(share_id, 'force_delete')
    disks.rest.wait_gone(share_id)
    disks.create_on('a')


@pytest.mark.facts('add-update-host-command')
def test_back_end_that_is_renamed_keeps_its_disk_and_shares(disks):
    share_id = disks.create_on('a')
    rule = disks.allow(share_id, 'a')
    running = refused_by(disks, 'move-disk', disks.name('a'), disks.name('c'))
    assert 'Stop it first' in running.err
    disks.installation.stop()
    taken = refused_by(disks, 'move-disk', disks.name('a'), disks.name('b'))
    assert 'has disk' in taken.err
    disks.installation.configure(
        {
            name: {
                'share_driver': 'local',
                'local_root': disks.roots[root],
                'share_backend_name': root,
            }
            for name, root in {'c': 'a', 'b': 'b'}.items()
        }
    )
    disks.installation.start(wait=False)
    disks.wait_for_problem('c', f'belongs to {disks.name("a")}', 'move-disk')
    disks.installation.stop()
    disks.installation.manage('storage', 'move-disk', disks.name('a'), disks.name('c'))
    disks.installation.start()
    listed = disks.installation.manage('storage', 'disks')
    assert disks.name('c') in listed
    assert disks.name('a') not in listed
    disks.rest.act(share_id, 'deny_access', {'access_id': rule})
    disks.wait_until_denied(share_id, 'a')
    disks.rest.act(share_id, 'extend', {'new_size': 2})
    assert disks.rest.wait_at_rest(share_id)['size'] == 2
    disks.create_on('a')
    disks.rest.delete(share_id)
    disks.rest.wait_gone(share_id)


def refused_by(disks, *args):
    """Run a command that changes nothing; return what it says."""
    ended = command_line.run(
        manage.main, ['storage', *args, '--config-file', str(disks.installation.conf)]
    )
    assert ended.code == 1, ended
    return ended
