"""A share with replicas, and what a manager knows of them."""

from collections.abc import Mapping
import contextlib
import dataclasses
import functools
import uuid

import pytest

from manila_lite import exception
import manila_lite.conf
from manila_lite.share.drivers import base
from manila_lite.share.drivers.btrfs import kernel
from manila_lite.share.drivers.contract import values
from manila_lite.share.drivers.contract.configuration import Configuration
from tests.drivers import driver_harness
from tests.drivers.contract import call_or_skip
from tests.drivers.driver_harness import CTX
from tests.drivers.replication_backends import (
    BACKEND_OPTIONS,
    COMMON_OPTIONS,
    NAMES,
    Site,
    new_ports,
)
from tests.support import storage, tenant_network

REPLICA_REPLY_KEYS = {
    'export_locations',
    'replica_state',
    'access_rules_status',
    'share_access_rules',
}
PROMOTION_KEYS = {'id', 'export_locations', 'replica_state', 'access_rules_status'}
SNAPSHOT_REPLY_KEYS = set(values.ReplicatedSnapshotReply.__annotations__)
STATES = {'active', 'in_sync', 'out_of_sync', 'error'}
_POOL_SIZE = 4 << 30
CLIENT = '10.0.0.1'
PASSIVE_LEVELS = {'readable': {'ro'}, 'dr': set(), 'writable': {'rw'}}


class Sites:
    """A share on the first back end, and what a manager knows of it.

    Methods call drivers as a manager does and record the replies.
    """

    share_proto = 'NFS'
    groups: Mapping[str, str] = {}

    def __init__(self, folder, driver, style, servers=False, more='', names=NAMES):
        if driver == 'btrfs':
            for name in names:
                storage.create_pool(folder / f'{name}.img', _POOL_SIZE)
        file = folder / 'sites.conf'
        file.write_text(
            f'[DEFAULT]\nstate_path = {folder}\n'
            + ''.join(
                (COMMON_OPTIONS + BACKEND_OPTIONS[driver]).format(
                    name=name,
                    driver=driver,
                    folder=folder,
                    style=style,
                    servers=servers,
                    more=more,
                    cifs=self.share_proto == 'CIFS',
                    group=self.groups.get(name) or f'{name}-{uuid.uuid4().hex[:8]}',
                    **new_ports(driver),
                )
                for name in names
            )
        )
        self._open(driver, [(name, file, name) for name in names], servers)

    @classmethod
    def of_file(cls, driver, file, sections):
        """Return back ends whose sections are in one file."""
        sites = cls.__new__(cls)
        sites._open(
            driver,
            [
                (name, file, section)
                for name, section in zip(NAMES, sections, strict=False)
            ],
        )
        return sites

    @classmethod
    def of_services(cls, driver, files, section):
        """Return back ends of several services with the same name each."""
        sites = cls.__new__(cls)
        sites._open(driver, [(file.parent.name, file, section) for file in files])
        return sites

    def _open(self, driver, backends, servers=False):
        self.share_id = str(uuid.uuid4())
        self.size = 1
        self.snapshots = {}
        self.rules = []
        read = functools.cache(manila_lite.conf.new)
        self.sites = [
            Site(
                name,
                self.new_harness(
                    driver,
                    lambda file=file, section=section: Configuration(
                        read(files=(str(file),)), section
                    ),
                ),
                servers,
                section,
            )
            for name, file, section in backends
        ]
        self.here, self.there, *more = self.sites
        self.beyond = more[0] if more else None
        self.style = self.here.driver.get_share_stats().get('replication_type')
        if self.style is None:
            pytest.skip('the driver does not replicate')
        self.here.state, self.here.status = 'active', 'available'
        self.here.locations = self.here.driver.create_share(
            CTX, self.share_for(self.here), share_server=self.here.server
        )
        self.rules = [self.rule(CLIENT)]
        self.apply_rules(self.here)

    def new_harness(self, *values):
        return driver_harness.DriverHarness(*values)

    def clean_up(self):
        """Delete everything that tests have created."""
        for site in self.sites:
            if site.is_unreachable:
                site.make_reachable()
        last = next((site for site in self.sites if site.state == 'active'), self.here)
        for site in self.sites:
            if site.state and site is not last:
                self.delete(site)
        for id in self.snapshots:
            last.driver.delete_snapshot(CTX, self.instance(id, last), last.server)
        last.driver.delete_share(CTX, self.share_for(last), last.server)
        for site in self.sites:
            if site.server:
                site.driver.teardown_server(
                    {'server_id': site.server.id, **site.server.backend_details}
                )

    # Values for drivers

    def share_for(self, site):
        return base.ShareForDriver(
            id=site.id,
            share_id=self.share_id,
            name=f'share-{site.id}',
            size=self.size,
            share_proto=self.share_proto,
            project_id=CTX.project_id,
            host=site.host,
            status=site.status,
            replica_state=site.state,
            replication_type=self.style,
            access_rules_status='active',
            cast_rules_to_readonly=self.has_readonly_rules(site),
            share_server_id=site.server and site.server.id,
            share_server=site.server,
            export_locations=base.normalise_export_locations(site.locations),
        )

    def has_readonly_rules(self, site):
        return self.style == 'readable' and site.state != 'active'

    @property
    def replica_list(self):
        return [self.share_for(site) for site in self.sites if site.state]

    def rule(self, to, level='rw'):
        return base.AccessRuleForDriver(
            id=str(uuid.uuid4()),
            share_id=self.share_id,
            access_type='user' if self.share_proto == 'CIFS' else 'ip',
            access_to=to,
            access_level=level,
        )

    def rules_for(self, site):
        return [
            dataclasses.replace(rule, access_level='ro')
            if self.has_readonly_rules(site)
            else rule
            for rule in self.rules
        ]

    def instance(self, snapshot_id, site):
        status, size = self.snapshots[snapshot_id]
        id = str(uuid.uuid5(uuid.UUID(snapshot_id), site.name))
        return base.SnapshotForDriver(
            id=id,
            snapshot_id=snapshot_id,
            name=f'snapshot-{id}',
            size=size,
            status=status.get(site.name),
            share=self.share_for(site),
        )

    def instances(self, snapshot_id):
        return [self.instance(snapshot_id, site) for site in self.sites if site.state]

    def pairs(self, site):
        active = self.active
        return [
            {
                'active_replica_snapshot': self.instance(id, active),
                'share_replica_snapshot': self.instance(id, site),
            }
            for id, (status, _) in self.snapshots.items()
            if status.get(active.name) == 'available'
        ]

    @property
    def active(self):
        return next(site for site in self.sites if site.state == 'active')

    # Actions of a manager

    def create(self, site=None):
        site = site or self.there
        site.state = site.state or 'out_of_sync'
        reply = (
            site.driver.create_replica(
                CTX,
                self.replica_list,
                self.share_for(site),
                self.rules_for(site),
                self.pairs(site),
                share_server=site.server,
            )
            or {}
        )
        assert set(reply) <= REPLICA_REPLY_KEYS
        assert reply.get('replica_state') in {*STATES, None}
        site.status = 'available'
        site.state = reply.get('replica_state') or site.state
        site.locations = reply.get('export_locations') or site.locations
        if reply.get('access_rules_status') != 'active':
            self.apply_rules(site)
        return reply

    def create_in_sync(self, site=None):
        """Create a replica and update it until it is in sync."""
        self.create(site)
        for _ in range(5):
            if (site or self.there).state in ('active', 'in_sync'):
                return self
            self.update(site)
        raise AssertionError('it never is in sync')

    def update(self, site=None, *, took_over=False):
        site = site or self.there
        reply = site.driver.update_replica_state(
            CTX,
            self.replica_list,
            self.share_for(site),
            self.rules_for(site),
            self.pairs(site),
            share_server=site.server,
        )
        if isinstance(reply, dict):
            assert set(reply) <= {'replica_state', 'synced_at'}
            site.synced_at = reply.get('synced_at', site.synced_at)
            reply = reply['replica_state']
        passive = {'in_sync', 'out_of_sync', 'error', None}
        assert reply in (
            {*passive, 'active'} if took_over or self.style == 'writable' else passive
        )
        site.state = reply or site.state
        return reply

    def delete(self, site=None):
        site = site or self.there
        site.driver.delete_replica(
            CTX,
            self.replica_list,
            [self.instance(id, site) for id in self.snapshots],
            self.share_for(site),
            share_server=site.server,
        )

    def promote(self, site=None, **values):
        site = site or self.there
        replies = site.driver.promote_replica(
            CTX,
            self.replica_list,
            self.share_for(site),
            self.rules,
            share_server=site.server,
            **values,
        )
        replies_by_id = {one['id']: one for one in replies or ()}
        assert all(set(one) <= PROMOTION_KEYS for one in replies_by_id.values())
        for other in self.sites:
            if other.state and other is not site:
                replica_state = replies_by_id.get(other.id, {}).get('replica_state')
                assert replica_state != 'active'
                if other.state == 'active' or replica_state:
                    other.state = replica_state or 'out_of_sync'
        site.state = 'active'
        site.locations = (
            replies_by_id.get(site.id, {}).get('export_locations') or site.locations
        )
        for other in self.sites:
            if other.state:
                with contextlib.suppress(exception.ManilaLiteError):
                    self.apply_rules(other)
        return replies

    def apply_rules(self, site):
        site.driver.apply_access(
            CTX, self.share_for(site), self.rules_for(site), share_server=site.server
        )

    def status(self, site=None):
        site = site or self.there
        return call_or_skip(
            site.driver.get_replica_status, self.share_for(site), site.server
        )

    def snapshot(self):
        """Create a snapshot and return its id."""
        id = str(uuid.uuid4())
        self.snapshots[id] = (
            {site.name: 'creating' for site in self.sites if site.state},
            self.size,
        )
        self.take_snapshot(id)
        return id

    def take_snapshot(self, id):
        return self._record_replies(
            id,
            call_or_skip(
                self.active.driver.create_replicated_snapshot,
                CTX,
                self.replica_list,
                self.instances(id),
                self.active.server,
            ),
        )

    def delete_snapshot(self, id):
        status, _ = self.snapshots[id]
        status.update(dict.fromkeys(status, 'deleting'))
        return self._record_replies(
            id,
            self.active.driver.delete_replicated_snapshot(
                CTX, self.replica_list, self.instances(id), self.active.server
            ),
        )

    def update_snapshot(self, id, site=None):
        site = site or self.there
        return self._record_replies(
            id,
            [
                site.driver.update_replicated_snapshot(
                    CTX,
                    self.replica_list,
                    self.share_for(site),
                    self.instances(id),
                    self.instance(id, site),
                    site.server,
                )
                or {}
            ],
        )

    def _record_replies(self, id, replies):
        there = {self.instance(id, site).id: site for site in self.sites}
        for reply in replies or ():
            assert set(reply) <= SNAPSHOT_REPLY_KEYS
            if reply.get('status'):
                assert reply['status'] in ('available', 'creating', 'deleted', 'error')
                self.snapshots[id][0][there[reply['id']].name] = reply['status']
        return replies

    def revert(self, id):
        size = call_or_skip(
            self.active.driver.revert_to_replicated_snapshot,
            CTX,
            self.share_for(self.active),
            self.replica_list,
            self.instance(id, self.active),
            self.instances(id),
            self.rules,
            [],
            self.active.server,
        )
        self.size = size or self.size
        return size

    # Actions and access of users

    def write(self, text, site=None):
        site = site or self.active
        site.users(self.share_for(site)).write(text)

    def read(self, site=None):
        site = site or self.there
        return site.users(self.share_for(site)).read()

    def levels(self, site=None):
        """Return the access levels that a replica grants the client."""
        site = site or self.there
        clients = site.harness.clients(site.driver, self.share_for(site))
        if clients is None:
            pytest.skip('tests cannot see the clients of its shares')
        return {level for _, to, level in clients if to == CLIENT}


@contextlib.contextmanager
def btrfs_sites(style, with_servers=False, kind=Sites):
    """Provide two btrfs back ends of their own, and a share on the first."""
    is_cifs = kind.share_proto == 'CIFS'
    values = {'names': ('here', 'there')}
    (storage.require_cifs if is_cifs else storage.require)()
    with contextlib.ExitStack() as stack:
        if with_servers:
            storage.require_servers()
            bridge = stack.enter_context(tenant_network.bridge())
            values |= {'servers': True, 'more': f'btrfs_bridge = {bridge}'}
            if is_cifs:
                values['tenant'] = stack.enter_context(
                    tenant_network.client_on(bridge, '10.20.0.4/24')
                )
        folder = stack.enter_context(storage.folder())
        # No process with a mount namespace keeps a pool that fails.
        kernel.share_mounts(folder)
        sites = kind(folder, 'btrfs', style, **values)
        sites.folder = folder
        yield sites
        sites.clean_up()
