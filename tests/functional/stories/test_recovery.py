"""Everything in flight comes to rest after a kill, as the design says.

Real services with `dummy`: resources of every kind are put into every
status in flight there is, the share service is killed and started again.
"""

import json

import pytest
import sqlalchemy as sa

from manila_lite.db.models import engine
from manila_lite.db.models import shares
from manila_lite.db.queries.admin import recovery
from manila_lite.share.drivers.dummy import state
from manila_lite.states.machine import GONE
from tests.functional.stories.test_kill import make_default_type
from tests.support import dhss
from tests.support import rescues
from tests.support.installation import SEPARATE
from tests.support.processes import free_port
from tests.support.processes import wait_until
from tests.support.rescues import force_status
from tests.support.rescues import status_of

INSTANCE = shares.ShareInstance.__table__

# The pass of the start is what rescues here, and nothing else.
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
    'servers': dict(
        line.split(' = ') for line in dhss.SECTION.strip().splitlines()
    ),
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

# The others are about sets of rules, and so are their records.
WITH_A_RECORD = (
    'share_instance',
    'snapshot_instance',
    'share_server',
    'share_server_task',
)

# What the back end shows is not always what the row expects.
SURPRISES = {
    ('creating', 'lost'): ('error', 2),
    ('creating', 'spoilt'): ('error', 2),
    ('creating', 'larger'): ('error', 2),
    ('creating', 'foreign'): ('error', 2),
    ('extending', 'lost'): ('extending_error', 2),
    ('extending', 'larger'): ('available', 5),
    ('shrinking', 'larger'): ('available', 5),
    ('shrinking', 'spoilt'): ('shrinking_error', 2),
    ('deleting', 'lost'): (GONE, None),
}


class Stage:
    """An installation with one resource for each status in flight."""

    def __init__(self, installation):
        self.installation = installation
        self.user = installation.rest()
        self.db = installation.db
        self.back_end = state.DummyState(installation.dummy_state_dir('dummy'))
        self.placed = {}  # resource and status: share, id of the row
        self.surprised = {}  # the same of what the back end lost, say
        self.written = set()  # rows that no move has brought there

    def fill(self):
        """A share for each case, and what the case is about on it."""
        self._make_types()
        asked = {case: self._share(case) for case in [*CASES, *SURPRISES]}
        self.quiet()
        self._take_snapshots(asked)
        self._allow(asked)
        self.quiet()
        self.placed = {
            case: (asked[case], self._row(case[0], asked[case]))
            for case in CASES
        }
        self.surprised = {
            case: (asked[case], self._row('share_instance', asked[case]))
            for case in SURPRISES
        }
        for case in rescues.SERVER_CASES:  # a server outlives its shares
            self.user.delete(asked[case])
        self.quiet()

    def _make_types(self):
        make_default_type(self.user)
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

    def _take_snapshots(self, asked):
        snapshots = {
            case: self.user.request(
                'POST',
                '/snapshots',
                {'snapshot': {'share_id': asked[case]}},
                202,
            )['snapshot']['id']
            for case in CASES
            if case[0].startswith('snapshot')
        }
        self.quiet()
        for case, snapshot in snapshots.items():
            if case[0] == 'snapshot_access_rule':
                self.user.request(
                    'POST',
                    f'/snapshots/{snapshot}/action',
                    {'allow_access': RULE},
                    202,
                )

    def _allow(self, asked):
        for case in CASES:
            if case[0] in ('access_rule', 'share_instance_access'):
                self.user.act(
                    asked[case],
                    'allow_access',
                    RULE | {'access_level': 'rw'},
                    expect=200,
                )

    def _share(self, case):
        if case not in rescues.SERVER_CASES:
            return self.user.create(size=2)['id']
        network = self.user.request(
            'POST', '/share-networks', {'share_network': {}}
        )
        return self.user.create(
            size=2,
            share_type='served',
            share_network_id=network['share_network']['id'],
        )['id']

    def quiet(self):
        wait_until(
            lambda: not self.installation.pending_work(), 'nothing is owed', 60
        )

    def _row(self, resource, share_id):
        """The id of the only row of a kind that belongs to a share."""
        kind = recovery.KINDS[resource]
        id, of = kind.table.c.id, kind.from_clause
        if kind.table.name == 'share_servers':
            id, of = INSTANCE.c.share_server_id, INSTANCE
        return self.db.read(
            lambda session: session.value(
                sa.select(id)
                .select_from(of)
                .where(INSTANCE.c.share_id == share_id)
            )
        )

    # What a crash leaves behind

    def disturb(self):
        """Put everything in flight, as decrees and moves can."""
        for (resource, status), (share, id) in self.placed.items():
            if not self._decree(resource, status, share, id):
                self._move(resource, status, share, id)
        for (status, how), (share, id) in self.surprised.items():
            if not self._decree('share_instance', status, share, id):
                self._move('share_instance', status, share, id)
            self._surprise(id, how)

    def _decree(self, resource, status, share, id):
        """By `reset_status`, where the API has it for this status."""
        path = {
            'share_instance': f'/shares/{share}',
            'snapshot_instance': f'/snapshot-instances/{id}',
            'share_server': f'/share-servers/{id}',
            'share_server_task': f'/share-servers/{id}',
        }.get(resource)
        if path is None or status not in (
            recovery.KINDS[resource].machine.resets
        ):
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
            # What only snapshots may be set to, not instances of them.
            assert self.user.last.status_code == 400
            return False
        return True

    def _move(self, resource, status, share, id):
        """By the moves of its table, with nobody to work on it."""
        if status == 'deferred_deleting':  # quota is given back with it
            self.user.delete(share)
            self.db.write(
                lambda session: session.run(sa.delete(engine.Work.__table__))
            )
        elif not force_status(self.db, resource, id, status):
            self.written.add(id)

    def _surprise(self, id, how):
        record = self.back_end.shares.find(id)
        if how == 'lost':
            self.back_end.shares.drop(id)
        else:
            self.back_end.shares.put(
                id,
                record
                | {
                    'spoilt': {'status': 'error'},
                    'larger': {'size': 5},
                    'foreign': {'share_proto': 'CIFS'},
                }[how],
            )

    # What is there

    def statuses(self):
        return {
            (resource, status): status_of(self.db, resource, id)
            for (resource, status), (_, id) in self.placed.items()
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
            options=f'{OPTIONS}transport_url = '
            f'rabbit://127.0.0.1:{free_port()}/',
            sections=SECTIONS,
        ).start()
    )
    stage.fill()
    return stage


def test_what_a_kill_left_in_flight_is_at_rest_after_the_start(stage):
    installation = stage.installation
    installation.kill('share')
    stage.disturb()
    assert stage.statuses() == {case: case[1] for case in CASES}
    seen = asked(installation, 'preview')
    assert {
        (one['resource_type'], one['status'], one['resource_id'])
        for one in seen
    } >= {(*case, id) for case, (_, id) in stage.placed.items()}
    assert stage.statuses() == {case: case[1] for case in CASES}

    installation.start('share')
    wait_until(lambda: not stage.in_flight(), 'nothing is in flight')
    stage.quiet()
    assert stage.statuses() == {case: ENDS[case[0]][case[1]] for case in CASES}
    for case, (share, _) in stage.surprised.items():
        found = stage.user.find(share)
        assert SURPRISES[case] == (
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
    """Administrators are heard: by command about one, by REST about all."""
    again = [
        stage.placed['share_instance', status][1]
        for status in ('migrating', 'migrating_to')
    ]
    for id in again:
        force_status(stage.db, 'share_instance', id, 'migrating')
    stage.installation.manage('recovery', 'run', 'share_instance', again[0])
    wait_until(lambda: stage.status(again[0]) == 'error', 'one is rescued')
    assert stage.status(again[1]) == 'migrating'
    (newest,) = asked(
        stage.installation, 'log', '--resource-id', again[0], '--limit', 1
    )
    assert newest['asked_by'].endswith('(manila-lite-manage)')
    stage.user.request('POST', '/recovery/run', {'run': {}}, 202)
    wait_until(
        lambda: stage.status(again[1]) == 'error', 'the other is rescued'
    )
    stage.quiet()


def asked(installation, command, *args):
    """What `manila-lite-manage recovery` says."""
    return json.loads(
        installation.manage('recovery', command, '--json', *args)
    )


def check_log(stage, log):
    """Every decision is on record: before, deed, after, by whom, why."""
    decided = {
        (one['resource_type'], one['status_before'], one['resource_id'])
        for one in log
    }
    for (resource, status), (_, id) in stage.placed.items():
        if resource in WITH_A_RECORD:
            assert (resource, status, id) in decided
    for one in log:
        assert one['made_by'].startswith(
            f'manila-share@{stage.installation.host}@'
        ), one
        assert one['reason'] or one['evidence'], one
        assert one['asked_by'] is None


def check_messages(stage):
    """Who owns what was given up finds a message about it."""
    told = {
        one['resource_id'] for one in stage.user.get('/messages')['messages']
    }
    ends = {
        share: ENDS[case[0]][case[1]]
        for case, (share, _) in stage.placed.items()
        if case[0] == 'share_instance'
    } | {
        share: SURPRISES[case][0]
        for case, (share, _) in stage.surprised.items()
    }
    assert told >= {
        share for share, end in ends.items() if end not in ('available', GONE)
    }
