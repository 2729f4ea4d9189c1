"""Everything in flight is rescued after a kill, as designed.

Real services with `dummy`: the share service is killed, resources of every
kind are put into every status in flight, and the service is started again.
"""

import json

import pytest
import sqlalchemy as sa

from manila_lite.db.models import engine, shares
from manila_lite.db.queries.recovery import recovery
from manila_lite.share.drivers.dummy import state
from manila_lite.states.machine import GONE
from tests.functional.stories import suites
from tests.support import dhss, rescues
from tests.support.installation import SEPARATE
from tests.support.processes import free_port, wait_until
from tests.support.rescues import force_status, status_of

pytestmark = suites.failures

INSTANCE = shares.ShareInstance.__table__

# Only the recovery pass at start rescues here.
OPTIONS = """
default_share_type = default
is_deferred_deletion_enabled = true
startup_reconciliation_wait_seconds = 1
"""
SECTIONS = """
[recovery]
interval = 0
[quota]
shares = -1
snapshots = -1
share_networks = -1
"""
BACKENDS = {
    'dummy': {},
    'servers': dict(line.split(' = ') for line in dhss.SECTION.strip().splitlines()),
}
ENDS = rescues.EXPECTED_ENDS | rescues.EXPECTED_SERVER_ENDS
CASES = rescues.CASES + rescues.SERVER_CASES
SPECS = {
    'snapshot_support': 'True',
    'revert_to_snapshot_support': 'True',
    'create_share_from_snapshot_support': 'True',
    'mount_snapshot_support': 'True',
}
RULE = {'access_type': 'ip', 'access_to': '10.0.0.1'}

# For the others the recovery log has sets of rules.
LOGGED = ('share_instance', 'snapshot_instance', 'share_server', 'share_server_task')

# Outcomes where the back end does not have what the row expects.
MISMATCHES = {
    ('creating', 'lost'): ('error', 2),
    ('creating', 'spoilt'): ('error', 2),
    ('creating', 'larger'): ('error', 2),
    ('creating', 'foreign'): ('error', 2),
    ('extending', 'lost'): ('extending_error', 2),
    ('extending', 'larger'): ('available', 5),
    ('shrinking', 'larger'): ('available', 5),
    ('shrinking', 'spoilt'): ('shrinking_error', 2),
    # No process has begun to remove it.
    ('deleting', 'lost'): ('error_deleting', 2),
}


class Stage:
    """An installation with one resource for each status in flight."""

    def __init__(self, installation):
        self.installation = installation
        self.user = installation.rest()
        self.db = installation.db
        self.back_end = state.DummyState(installation.dummy_state_dir('dummy'))
        self.resources = {}  # (resource, status): share id, row id
        self.mismatched = {}  # the same where the back end differs
        self.written = set()  # rows whose status was written directly

    def fill(self):
        """Create a share for each case, and the resource of the case."""
        self._make_types()
        share_ids = {case: self._share(case) for case in [*CASES, *MISMATCHES]}
        self.wait_idle()
        self._take_snapshots(share_ids)
        self._allow(share_ids)
        self.wait_idle()
        self.resources = {
            case: (share_ids[case], self._row(case[0], share_ids[case]))
            for case in CASES
        }
        self.mismatched = {
            case: (share_ids[case], self._row('share_instance', share_ids[case]))
            for case in MISMATCHES
        }
        for case in rescues.SERVER_CASES:  # the server remains
            self.user.delete(share_ids[case])
        self.wait_idle()

    def _make_types(self):
        self.user.make_default_type()
        share_type = self.user.get('/types/default')['share_type']['id']
        self.user.request(
            'POST', f'/types/{share_type}/extra_specs', {'extra_specs': SPECS}
        )
        self.user.request(
            'POST',
            '/types',
            {
                'share_type': {
                    'name': 'served',
                    'extra_specs': {'driver_handles_share_servers': 'True'},
                }
            },
        )

    def _take_snapshots(self, share_ids):
        snapshots = {
            case: self.user.request(
                'POST', '/snapshots', {'snapshot': {'share_id': share_ids[case]}}, 202
            )['snapshot']['id']
            for case in CASES
            if case[0].startswith('snapshot')
        }
        self.wait_idle()
        for case, snapshot in snapshots.items():
            if case[0] == 'snapshot_access_rule':
                self.user.request(
                    'POST', f'/snapshots/{snapshot}/action', {'allow_access': RULE}, 202
                )

    def _allow(self, share_ids):
        for case in CASES:
            if case[0] in ('access_rule', 'share_instance_access'):
                self.user.act(
                    share_ids[case],
                    'allow_access',
                    RULE | {'access_level': 'rw'},
                    expect=200,
                )

    def _share(self, case):
        if case not in rescues.SERVER_CASES:
            return self.user.create(size=2)['id']
        network = self.user.request('POST', '/share-networks', {'share_network': {}})
        return self.user.create(
            size=2, share_type='served', share_network_id=network['share_network']['id']
        )['id']

    def wait_idle(self):
        wait_until(
            lambda: not self.installation.pending_work(), 'no work is pending', 60
        )

    def _row(self, resource, share_id):
        """Return the id of the only row of a resource of a share."""
        kind = recovery.KINDS[resource]
        id, of = kind.table.c.id, kind.from_clause
        if kind.table.name == 'share_servers':
            id, of = INSTANCE.c.share_server_id, INSTANCE
        return self.db.read(
            lambda session: session.value(
                sa.select(id).select_from(of).where(INSTANCE.c.share_id == share_id)
            )
        )

    # The state after a crash

    def put_in_flight(self):
        """Put everything in flight, by `reset_status` or by moves."""
        for (resource, status), (share, id) in self.resources.items():
            if not self._reset(resource, status, share, id):
                self._move(resource, status, share, id)
        for (status, mismatch), (share, id) in self.mismatched.items():
            if not self._reset('share_instance', status, share, id):
                self._move('share_instance', status, share, id)
            self._change_backend(id, mismatch)

    def _reset(self, resource, status, share, id):
        """By `reset_status`, where the API has it for this status."""
        path = {
            'share_instance': f'/shares/{share}',
            'snapshot_instance': f'/snapshot-instances/{id}',
            'share_server': f'/share-servers/{id}',
            'share_server_task': f'/share-servers/{id}',
        }.get(resource)
        if path is None or status not in (recovery.KINDS[resource].machine.resets):
            return False
        try:
            self.user.request(
                'POST',
                f'{path}/action',
                {'reset_task_state': {'task_state': status}}
                if resource == 'share_server_task'
                else {'reset_status': {'status': status}},
                202,
            )
        except AssertionError:
            # Allowed for snapshots only, not for their instances.
            assert self.user.last.status_code == 400
            return False
        return True

    def _move(self, resource, status, share, id):
        """By the moves of its table, without work."""
        if status == 'deferred_deleting':  # this also releases quota
            if resource == 'share_instance':
                self.user.delete(share)
            else:
                self.user.request(
                    'DELETE', f'/snapshots/{self._snapshot_of(share)}', None, 202
                )
            self.db.write(lambda session: session.run(sa.delete(engine.Work.__table__)))
        elif not force_status(self.db, resource, id, status):
            self.written.add(id)

    def _snapshot_of(self, share):
        (snapshot,) = self.user.get(f'/snapshots?share_id={share}')['snapshots']
        return snapshot['id']

    def _change_backend(self, id, mismatch):
        record = self.back_end.shares.find(id)
        if mismatch == 'lost':
            self.back_end.shares.drop(id)
        else:
            self.back_end.shares.put(
                id,
                record
                | {
                    'spoilt': {'status': 'error'},
                    'larger': {'size': 5},
                    'foreign': {'share_proto': 'CIFS'},
                }[mismatch],
            )

    # Queries

    def statuses(self):
        return {
            (resource, status): status_of(self.db, resource, id)
            for (resource, status), (_, id) in self.resources.items()
        }

    def status(self, id):
        return status_of(self.db, 'share_instance', id)

    def in_flight(self):
        return self.user.get('/recovery/in-flight')['in_flight']


@pytest.fixture
def stage(install, new_database):
    """Separate services on one file, without a broker."""
    stage = Stage(
        install(
            kind=SEPARATE,
            database_url=new_database('sqlite'),
            lease=1,
            backends=BACKENDS,
            options=f'{OPTIONS}transport_url = rabbit://127.0.0.1:{free_port()}/',
            sections=SECTIONS,
        ).start()
    )
    stage.fill()
    return stage


def test_everything_in_flight_is_rescued_after_a_restart(stage):
    installation = stage.installation
    installation.kill('share')
    stage.put_in_flight()
    assert stage.statuses() == {case: case[1] for case in CASES}
    seen = recovery_output(installation, 'preview')
    assert {
        (one['resource_type'], one['status'], one['resource_id']) for one in seen
    } >= {(*case, id) for case, (_, id) in stage.resources.items()}
    assert stage.statuses() == {case: case[1] for case in CASES}

    installation.start('share')
    wait_until(lambda: not stage.in_flight(), 'nothing is in flight')
    stage.wait_idle()
    assert stage.statuses() == {case: ENDS[case[0]][case[1]] for case in CASES}
    for case, (share, _) in stage.mismatched.items():
        found = stage.user.find(share)
        assert MISMATCHES[case] == (
            (found['status'], found['size']) if found else (GONE, None)
        ), case
    check_log(stage, stage.user.get('/recovery/log')['log'])
    check_requests(stage)
    check_messages(stage)
    assert [
        problem
        for problem in installation.problems()
        if not any(id in problem for id in stage.written)
    ] == []


def check_requests(stage):
    """Administrators request recovery: one by command, all by REST."""
    again = [
        stage.resources['share_instance', status][1]
        for status in ('migrating', 'migrating_to')
    ]
    for id in again:
        force_status(stage.db, 'share_instance', id, 'migrating')
    stage.installation.manage('recovery', 'run', 'share_instance', again[0])
    wait_until(lambda: stage.status(again[0]) == 'error', 'one is rescued')
    assert stage.status(again[1]) == 'migrating'
    (newest,) = recovery_output(
        stage.installation, 'log', '--resource-id', again[0], '--limit', 1
    )
    assert newest['asked_by'].endswith('(manila-lite-manage)')
    stage.user.request('POST', '/recovery/run', {'run': {}}, 202)
    wait_until(lambda: stage.status(again[1]) == 'error', 'the other is rescued')
    stage.wait_idle()


def recovery_output(installation, command, *args):
    """Return the JSON output of `manila-lite-manage recovery`."""
    return json.loads(installation.manage('recovery', command, '--json', *args))


def check_log(stage, log):
    """Every decision is recorded, with its author and reason."""
    decided = {
        (one['resource_type'], one['status_before'], one['resource_id']) for one in log
    }
    for (resource, status), (_, id) in stage.resources.items():
        if resource in LOGGED:
            assert (resource, status, id) in decided
    for one in log:
        assert one['made_by'].startswith(f'manila-share@{stage.installation.host}@'), (
            one
        )
        assert one['reason'] or one['evidence'], one
        assert one['asked_by'] is None


def check_messages(stage):
    """There is a user message about every share that was given up."""
    notified = {one['resource_id'] for one in stage.user.get('/messages')['messages']}
    ends = {
        share: ENDS[case[0]][case[1]]
        for case, (share, _) in stage.resources.items()
        if case[0] == 'share_instance'
    } | {share: MISMATCHES[case][0] for case, (share, _) in stage.mismatched.items()}
    assert notified >= {
        share for share, end in ends.items() if end not in ('available', GONE)
    }
