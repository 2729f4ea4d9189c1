"""An NFS gateway: a process that lets NFS-Ganesha export what the records say.

It runs on any machine, as root, and needs no other service: a new one learns all
exports from the records of the driver. It starts the NFS server and its bus, which
end with it. If one of them ends or stops answering, the gateway ends, too, and systemd
starts it again. What clients had open and locked is in RADOS: they reclaim it from a
gateway that was started again, and meanwhile no other client gets it.

    FOLDER/exports/NUMBER.conf   what the server exports
    FOLDER/server.conf           what it is started with
    FOLDER/ceph.conf             how its own Ceph user reaches the cluster
"""

from collections.abc import Callable
import ctypes
import json
import os
import pathlib
import signal
import subprocess
import time
from typing import NamedTuple
import uuid

from oslo_log import log

from manila_lite import exception
from manila_lite.share.drivers import ganesha, records
from manila_lite.share.drivers.cephfs import capabilities
from manila_lite.share.drivers.cephfs.backend import CephfsBackend, cluster_as
from manila_lite.share.drivers.cephfs.cluster import GATEWAYS
from manila_lite.share.drivers.cephfs.exports import (
    CHANGES,
    EXPORT,
    FENCE,
    GATEWAY,
    NO_CHANGE,
    Gateways,
    gateway_name,
    sessions_of,
    user_of,
)
from manila_lite.share.drivers.cephfs.records import Record
from manila_lite.share.drivers.contract.configuration import Configuration
from manila_lite.share.drivers.handle_guard import HandleGuard
from manila_lite.share.drivers.nfs_clients import Client

LOG = log.getLogger(__name__)

GUARD = HandleGuard(
    'libfsalceph.so',
    'nfs-ganesha-ceph',
    pathlib.Path(__file__).with_name('handle_guard.c'),
    'manila-lite-manage storage build-guard --driver cephfs',
)
"""What keeps NFS clients in their shares."""

LEASE, GRACE = 10, 12
"""Seconds. A client that is disconnected for longer than the lease loses its locks. In
the grace period after the start of a gateway, clients of all gateways only reclaim. It
begins before the server reads its exports, a second for more than ten of them."""

GONE_SECONDS = 30.0
"""After this time without a sign of life, others no longer wait for a gateway whose
clients may have to reclaim."""

_START_SECONDS = 300.0
_POLL_SECONDS = 0.1
_BEAT_SECONDS = 1.0
_RETRY_SECONDS = 2.0
_ATTEMPTS = 5
_LONGEST_GRACE = 180  # that the server accepts
_PR_SET_PDEATHSIG = 1
_NEEDED, _ENFORCED = 1, 2  # flags of nodes in the object of ganesha-rados-grace


class _Served(NamedTuple):
    """How an export is served."""

    number: int
    user_key: str
    text: str


class Gateway:
    """One gateway of a back end, named by its address."""

    def __init__(
        self,
        configuration: Configuration,
        address: str,
        folder: pathlib.Path,
        port: int,
    ):
        self.name = gateway_name(address)
        self._options = configuration
        self._folder = folder
        self._port = port
        self._backend = CephfsBackend(configuration, time.time, time.sleep)
        self._backend.cluster = cluster_as(
            configuration,
            configuration.cephfs_nfs_auth_id,
            configuration.cephfs_nfs_keyring_path,
        )
        self._server = ganesha.Ganesha(folder / 'bus.sock', timeout=0)
        self._processes: dict[str, subprocess.Popen] = {}
        self._served: dict[str, _Served] = {}
        self._failed: dict[str, str] = {}
        self._version = -1
        self._retry_at = 0.0
        self._is_started = False
        self._life, self._beats, self._beaten_at = uuid.uuid4().hex, 0, 0.0
        self._generation = 0
        # The last generation of earlier processes: before and when it may be evicted.
        self._left, self._ended = 0, 0
        self._has_begun_grace = False
        self._own = Gateways(self._backend.cluster, [address])
        peers = [one for one in configuration.cephfs_nfs_gateways if one != address]
        self._peers = Gateways(self._backend.cluster, peers)
        self._peers_seen: dict[str, float] = {}

    def run(self) -> None:
        """Serve until something ends or does not answer."""
        self.check()
        self._prepare()
        self._start()
        while True:
            self._require_processes()
            try:
                self._follow()
                if self._beat():
                    self._forget_peers()
            except exception.FileServerUnresponsive as error:
                if error.params['server'] == 'NFS':
                    raise
                LOG.warning('The cluster does not answer: %s', error)
            time.sleep(_POLL_SECONDS)

    def check(self) -> None:
        """Raise BadConfiguration with the command that gives what is missing."""
        capabilities.check_gateway(self._backend)

    # Start

    def _prepare(self) -> None:
        exports = self._folder / 'exports'
        exports.mkdir(mode=0o700, parents=True, exist_ok=True)
        for file in exports.iterdir():
            file.unlink()
        own = self._own.states(self._backend.records.name).get(self.name, {})
        fence, last = self._find_fence(), own.get('generation', 0)
        self._begin_generation(max(fence, last) + 1)
        self._beat()
        self._set_member(self.name, True)
        self._left = last if last > fence else 0

    @property
    def _fence(self) -> str:
        return FENCE + self.name

    def _find_fence(self) -> int:
        return self._backend.records.get(self._fence) or 0

    def _begin_generation(self, generation: int) -> None:
        """Mark new sessions, so that an eviction of earlier ones does not hit them."""
        options, records_name = self._options, self._backend.records.name
        text = pathlib.Path(options.cephfs_conf_path).read_text()
        metadata = sessions_of(records_name, self.name, generation)
        text += f'\n[client]\nclient metadata = {metadata}\n'
        if options.cephfs_nfs_keyring_path:
            text += (
                f'\n[client.{options.cephfs_nfs_auth_id}]\n'
                f'keyring = {options.cephfs_nfs_keyring_path}\n'
            )
        records.write_text(self._folder / 'ceph.conf', text)
        self._generation = generation

    def _let_evict(self) -> None:
        """Let a share service evict the sessions that an earlier process has left.

        The server does so one after the other, which takes a second for each export.
        Not before no client of any gateway can take a lock that its owner is about to
        reclaim: all gateways let clients only reclaim, or ours have nothing to reclaim.
        """
        found = self._backend.cluster.read_all(self._grace, '', GATEWAYS)
        flags = {node: ord(text or '\0') for node, text in found.items()}
        is_needed = bool(flags.get(self._node(self.name), 0) & _NEEDED)
        if all(each & _ENFORCED for each in flags.values()) or (
            self._has_begun_grace and not is_needed
        ):
            self._ended, self._left = self._left, 0
        self._has_begun_grace = is_needed

    def _call_grace(self, verb: str, gateway: str) -> int:
        done = subprocess.run(
            [
                *('ganesha-rados-grace', '--cephconf', self._folder / 'ceph.conf'),
                *('--userid', self._options.cephfs_nfs_auth_id),
                *('--pool', self._backend.cluster.pool, '--ns', GATEWAYS),
                *('--oid', self._grace, verb, self._node(gateway)),
            ],
            timeout=self._options.cephfs_command_timeout,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        return done.returncode

    def _set_member(self, gateway: str, is_member: bool) -> None:
        """Add a gateway to those whose clients may reclaim, or remove it.

        The command may crash before or after its work.
        """
        for _ in range(_ATTEMPTS):
            self._call_grace('add' if is_member else 'remove', gateway)
            if (self._call_grace('member', gateway) == 0) == is_member:
                return
        raise exception.ShareBackendException(
            msg=f'the list of NFS gateways in {GATEWAYS}/{self._grace} '
            'cannot be changed'
        )

    def _node(self, gateway: str) -> str:
        """Return a name that no gateway of another back end has."""
        return f'{self._backend.records.name}-{gateway}'

    @property
    def _grace(self) -> str:
        return f'grace.{self._backend.records.name}'

    def _start(self) -> None:
        """Start the server with all exports, so that clients can reclaim."""
        folder, socket = self._folder, self._folder / 'bus.sock'
        includes = ''
        self._served = self._wanted()
        for export in self._served.values():
            records.write_text(self._file(export.number), export.text)
            includes += f'%include "{self._file(export.number)}"\n'
        (folder / 'bus.conf').write_text(ganesha.bus_config(socket))
        grace = min(GRACE + len(self._served) // 10, _LONGEST_GRACE)
        (folder / 'server.conf').write_text(self._server_config(grace) + includes)
        socket.unlink(missing_ok=True)
        self._run(
            'dbus-daemon',
            f'--config-file={folder / "bus.conf"}',
            *('--nofork', '--nopidfile'),
        )
        self._wait_for(socket.exists)
        self._run(
            *('ganesha.nfsd', '-F', '-f', str(folder / 'server.conf')),
            *('-L', str(folder / 'ganesha.log'), '-p', str(folder / 'ganesha.pid')),
            *('-N', 'NIV_EVENT'),
        )
        self._wait_for(self._server.is_answering)
        # It answers on its bus first.
        self._wait_for(lambda: ganesha.is_listening(self._port))
        self._is_started = True
        LOG.info('Gateway %s serves port %s', self.name, self._port)

    def _server_config(self, grace: int) -> str:
        options, pool = self._options, self._backend.cluster.pool
        recovery = ganesha.Recovery(
            f'Lease_Lifetime = {LEASE};\n    Grace_Period = {grace};',
            'RecoveryBackend = rados_cluster;',
        )
        text = ganesha.base_config(self._port, recovery, GUARD.require().parent)
        return text + (
            f'RADOS_KV {{\n    ceph_conf = "{self._folder / "ceph.conf"}";\n'
            f'    userid = "{options.cephfs_nfs_auth_id}";\n    pool = "{pool}";\n'
            f'    namespace = "{GATEWAYS}";\n    nodeid = "{self._node(self.name)}";\n'
            f'    grace_oid = "{self._grace}";\n}}\n'
        )

    def _run(self, *command: str) -> None:
        environment = {
            'DBUS_SYSTEM_BUS_ADDRESS': f'unix:path={self._folder}/bus.sock',
            # Each new session reads it; the server's own setting is not used if
            # there is no export at first.
            'CEPH_CONF': str(self._folder / 'ceph.conf'),
        }
        with (self._folder / f'{command[0]}.out').open('wb') as output:
            self._processes[command[0]] = subprocess.Popen(
                command,
                env=os.environ | environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                preexec_fn=_end_with_parent,
            )

    def _wait_for(self, is_met: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while not is_met():
            self._require_processes()
            if time.monotonic() > deadline:
                raise exception.FileServerUnresponsive(server='NFS')
            if self._left:
                self._let_evict()
            self._beat()
            time.sleep(_POLL_SECONDS)

    def _require_processes(self) -> None:
        for name, process in self._processes.items():
            if process.poll() is not None:
                raise exception.ShareBackendException(
                    msg=f'{name} has ended; see the logs in {self._folder}'
                )

    # Exports

    def _wanted(self) -> dict[str, _Served]:
        """Return what is to be exported here, by the names of subvolumes."""
        found = {}
        for subvolume, export in self._backend.records.get_all(EXPORT).items():
            key = export['users'].get(self.name)
            if key and export['clients']:
                text = self._export_config(subvolume, export, key)
                found[subvolume] = _Served(export['number'], key, text)
        return found

    def _export_config(self, subvolume: str, export: Record, key: str) -> str:
        return ganesha.export_config(
            ganesha.Export(
                export['number'],
                pathlib.PurePosixPath(export['path']),
                export['path'],
                [Client(*client) for client in export['clients']],
                f'Name = CEPH; User_Id = "{user_of(self.name, subvolume)}"; '
                f'Secret_Access_Key = "{key}"; '
                f'Filesystem = "{self._backend.filesystem}";',
            )
        )

    def _follow(self) -> None:
        """Apply what has changed; clients that lose access come first."""
        found = self._backend.records.get_several(CHANGES, self._fence)
        changes, fence = found[CHANGES] or NO_CHANGE, found[self._fence] or 0
        is_evicted = fence >= self._generation
        is_retry = bool(self._failed) and time.monotonic() > self._retry_at
        if changes['version'] == self._version and not is_retry and not is_evicted:
            return
        wanted = self._wanted()
        if self._version < 0:
            numbers = self._server.numbers()
            for subvolume, served in list(self._served.items()):
                if served.number not in numbers:  # it could not read its file
                    del self._served[subvolume]
        for subvolume, served in list(self._served.items()):
            new = wanted.get(subvolume)
            if is_evicted or new is None or new[:2] != served[:2]:
                self._remove(subvolume, served)
                self._beat()
        if is_evicted:
            LOG.warning('Gateway %s was taken for dead; it starts again', self.name)
            self._begin_generation(fence + 1)
        self._failed = {}
        for subvolume in sorted(wanted, key=lambda name: name not in self._served):
            if self._served.get(subvolume) != wanted[subvolume]:
                self._apply(subvolume, wanted[subvolume])
            self._beat()
        self._version = changes['version']
        self._retry_at = time.monotonic() + _RETRY_SECONDS
        self._beaten_at = 0.0  # callers that wait see the version at once

    def _file(self, number: int) -> pathlib.Path:
        return self._folder / 'exports' / f'{number}.conf'

    def _remove(self, subvolume: str, served: _Served) -> None:
        self._server.remove(served.number)
        self._file(served.number).unlink(missing_ok=True)
        del self._served[subvolume]

    def _apply(self, subvolume: str, export: _Served) -> None:
        file = self._file(export.number)
        records.write_text(file, export.text)
        try:
            self._server.apply(
                file, export.number, is_new=subvolume not in self._served
            )
        except exception.FileServerUnresponsive:
            raise
        except exception.ShareBackendException as error:
            LOG.error('%s is not exported: %s', subvolume, error)
            self._failed[subvolume] = str(error)
        else:
            self._served[subvolume] = export

    # Life

    def _beat(self) -> bool:
        """Publish once a second that it is alive, and what it has applied."""
        now = time.monotonic()
        if now - self._beaten_at < _BEAT_SECONDS:
            return False
        if self._beats and self._beaten_at and now - self._beaten_at > GONE_SECONDS:
            # Others have removed it from those whose clients may reclaim.
            raise exception.ShareBackendException(msg=f'{self.name} was silent')
        if self._is_started and not self._server.is_answering():
            raise exception.FileServerUnresponsive(server='NFS')
        self._beats += 1
        state = {
            'beat': f'{self._life}.{self._beats}',
            'generation': self._generation,
            'ended': self._ended,
            'version': self._version,
            'failed': self._failed,
        }
        self._backend.cluster.write(
            self._backend.records.name,
            {},
            {GATEWAY + self.name: json.dumps(state)},
            namespace=GATEWAYS,
        )
        self._beaten_at = now
        return True

    def _forget_peers(self) -> None:
        """Remove gateways that are gone: clients of all others would wait for them."""
        now = time.monotonic()
        alive = self._peers.alive(self._backend.records.name)
        for peer in self._peers.names:
            if peer in alive:
                self._peers_seen[peer] = now
            elif now - self._peers_seen.get(peer, now) > GONE_SECONDS:
                del self._peers_seen[peer]
                LOG.warning('Gateway %s is gone', peer)
                self._set_member(peer, False)


def _end_with_parent() -> None:
    """End with the gateway: nothing else tells the server what to export."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
