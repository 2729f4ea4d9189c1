"""Start a Ceph cluster of one node in a folder, for a test run or for a try.

Usage: ceph_supervisor.py FOLDER PID ADDRESS PORT PORT
       ceph_supervisor.py start FOLDER [ADDRESS [PORT]]
       ceph_supervisor.py stop FOLDER

The first one ends when the process PID does, however that ends: its daemons are
killed, what is mounted below the folder is unmounted, and the folder is
removed. The daemons are killed as well if this process is.

`start` returns when the cluster that is kept in the folder can be used, a new one
if there is none; a process in the background runs it until `stop`. Its
daemons end with that process, and the data stay. With an address, that process
keeps an NFS gateway of `manila-lite serve --ceph` running there, too.

`FOLDER/ready` is there when the file system can be used. If there is none, the first
one says why and ends, the others write it to `FOLDER/failed`. At `FOLDER/control` a
line such as `kill mgr 9` is carried out and answered.
"""

import contextlib
import ctypes
import json
import os
import pathlib
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid

CONFIGURATION = """
[global]
fsid = {fsid}
mon host = {addresses}
public addr = {address}
auth cluster required = cephx
auth service required = cephx
auth client required = cephx
auth allow insecure global id reclaim = false
osd pool default size = 1
osd pool default min size = 1
osd crush chooseleaf type = 0
osd pool default pg autoscale mode = off
mon allow pool size one = true
mon warn on pool no redundancy = false
mon data avail warn = 1
mon data avail crit = 0
run dir = {folder}/run
admin socket = {folder}/run/$cluster-$name.$pid.asok
pid file =
log file = {folder}/log/$name.log
keyring = {folder}/keyring
osd memory target = 939524096
mgr initial modules = volumes
# One process per service, so that restarts are quick.
mon lease = 2
mon mgr beacon grace = 8
mds beacon grace = 8
# A busy manager that comes later is shut out, and stays so until it restarts.
mds reconnect timeout = 8
# A clone waits for several flushes of the journal.
mds tick interval = 0.2
[mon.a]
mon data = {folder}/mon
[mgr.x]
mgr data = {folder}/mgr
[osd.0]
osd data = {folder}/osd
osd objectstore = bluestore
bluestore block size = {size}
[mds.a]
mds data = {folder}/mds
"""
SIZE = 8 << 30
COMMAND_SECONDS = 60
LOOK_SECONDS = 0.5
STOP_SECONDS = 10

DAEMONS = {
    'mon': ['ceph-mon', '-i', 'a'],
    'mgr': ['ceph-mgr', '-i', 'x'],
    'osd': ['ceph-osd', '-i', '0'],
    'mds': ['ceph-mds', '-i', 'a'],
}
KEYS = {
    'mon.': {'mon': 'allow *'},
    'client.admin': dict.fromkeys(('mon', 'osd', 'mds', 'mgr'), 'allow *'),
    'client.manila_lite': {
        'mon': 'allow r',
        'mgr': 'allow rw',
        'mds': 'allow *',
        'osd': 'allow rw pool=data namespace=manila_lite, '
        'allow r pool=data namespace=manila_lite_nfs',
    },
    'client.manila_lite_nfs': {
        'mon': 'allow r',
        'osd': 'allow r pool=data namespace=manila_lite, '
        'allow rw pool=data namespace=manila_lite_nfs',
    },
    'mgr.x': {'mon': 'allow profile mgr', 'osd': 'allow *', 'mds': 'allow *'},
    'osd.0': {'mon': 'allow profile osd', 'mgr': 'allow profile osd', 'osd': 'allow *'},
    'mds.a': {
        'mon': 'allow profile mds',
        'mgr': 'allow profile mds',
        'osd': 'allow rwx',
        'mds': 'allow',
    },
}

_PR_SET_PDEATHSIG = 1
_MNT_DETACH = 2
_libc = ctypes.CDLL(None, use_errno=True)


class Supervisor:
    def __init__(self, folder, ports, address='127.0.0.1'):
        self.folder = folder
        self.conf = folder / 'ceph.conf'
        self.daemons = {}
        self.killed = set()
        self.gateway, self.gateway_at = None, ()
        self.fsid = str(uuid.uuid4())
        self.addresses = f'[v2:{address}:{ports[0]},v1:{address}:{ports[1]}]'
        self.text = CONFIGURATION.format(
            fsid=self.fsid,
            folder=folder,
            address=address,
            addresses=self.addresses,
            size=SIZE,
        )

    def run(self, *command):
        subprocess.run(
            [str(one) for one in command],
            check=True,
            timeout=COMMAND_SECONDS,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def start(self, name):
        """Start a daemon, which ends with this process."""
        command = [*DAEMONS[name], '-f', '-c', self.conf]
        with (self.folder / 'log' / f'{name}.out').open('ab') as log:
            self.daemons[name] = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=die_with_parent,
            )

    def set_up(self):
        for name in ('mon', 'mgr', 'osd', 'mds', 'run', 'log'):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self.conf.write_text(self.text)
        ceph = ['ceph', '-c', self.conf, '--connect-timeout', COMMAND_SECONDS]
        keyring, monmap = self.write_keys(), self.folder / 'monmap'
        self.run(
            'monmaptool', '--create', '--fsid', self.fsid,
            *('--addv', 'a', self.addresses), monmap,
        )  # fmt: skip
        self.run(
            *DAEMONS['mon'], '-c', self.conf, '--mkfs',
            *('--monmap', monmap, '--keyring', keyring),
        )  # fmt: skip
        self.start('mon')
        self.start('mgr')
        osd = str(uuid.uuid4())
        self.run(*ceph, 'osd', 'new', osd)
        self.run(*DAEMONS['osd'], '-c', self.conf, '--mkfs', '--osd-uuid', osd)
        self.start('osd')
        self.start('mds')
        for pool in ('meta', 'data'):
            self.run(*ceph, 'osd', 'pool', 'create', pool, 8)
        self.run(*ceph, 'fs', 'new', 'cephfs', 'meta', 'data')
        self.wait_until_ready()

    def start_again(self):
        """Start the daemons of a cluster that was set up before."""
        for name in DAEMONS:
            self.start(name)
        # The metadata server waits up to 300 s for the sessions of the gateway, which
        # a new one takes over.
        self.keep_gateway()
        self.wait_until_ready()
        # Another release may have set it up.
        self.run('ceph', '-c', self.conf, 'auth', 'import', '-i', self.write_keys())

    def write_keys(self):
        """Write all users with their capabilities; keys that are there stay."""
        path = self.folder / 'keyring'
        path.touch(mode=0o600)
        for name, caps in KEYS.items():
            is_new = f'[{name}]\n' not in path.read_text()
            words = [word for kind in caps.items() for word in ('--cap', *kind)]
            self.run(
                *('ceph-authtool', path, '-n', name),
                *(['--gen-key'] if is_new else []),
                *words,
            )
        return path

    def keep_gateway(self):
        """Start the NFS gateway if there is to be one, again if it has ended."""
        is_running = self.gateway is not None and self.gateway.poll() is None
        if is_running or not self.gateway_at:
            return
        address, port = [*self.gateway_at, '2049'][:2]
        config = self.folder / 'gateway.conf'
        config.write_text(
            f'[ceph]\nshare_driver = cephfs\ncephfs_conf_path = {self.conf}\n'
            f'cephfs_nfs_gateways = {address}\n'
        )
        with (self.folder / 'log' / 'gateway.out').open('ab') as log:
            self.gateway = subprocess.Popen(
                [
                    *(sys.executable, '-m', 'manila_lite.cmd.nfs_gateway'),
                    *('--config-file', config, '--backend', 'ceph'),
                    *('--address', address, '--port', port),
                    *('--folder', self.folder / 'gateway'),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=die_with_parent,
            )

    def wait_until_ready(self):
        ceph = ['ceph', '-c', self.conf, '--connect-timeout', COMMAND_SECONDS]
        self.wait_for(*ceph, 'fs', 'subvolumegroup', 'create', 'cephfs', 'ready')

    def wait_for(self, *command):
        deadline = time.monotonic() + COMMAND_SECONDS
        while True:
            try:
                return self.run(*command)
            except subprocess.CalledProcessError:
                if time.monotonic() > deadline or self.has_lost_daemon():
                    raise
                time.sleep(0.2)

    def serve(self, pid):
        """Carry out orders until a process ends, or a daemon without an order.

        Tests then fail at once, instead of each waiting for an answer.
        """
        ended = os.pidfd_open(pid)
        orders = socket.socket(socket.AF_UNIX)
        orders.bind(str(self.folder / 'control'))
        orders.listen()
        self.announce()
        while not self.has_lost_daemon():
            readable, _, _ = select.select([ended, orders], [], [], LOOK_SECONDS)
            if ended in readable:
                self.folder.with_suffix('.lock').unlink(missing_ok=True)
                return
            if orders not in readable:
                continue
            with contextlib.suppress(OSError), orders.accept()[0] as connection:
                connection.settimeout(5)
                self.obey(*connection.recv(1000).decode().split())
                connection.send(b'done')

    def announce(self):
        text = json.dumps({'supervisor': os.getpid()})
        (self.folder / 'ready').write_text(text)

    def has_lost_daemon(self):
        return any(
            daemon.poll() is not None
            for name, daemon in self.daemons.items()
            if name not in self.killed
        )

    def obey(self, order, name, number='0'):
        daemon = self.daemons[name]
        if order == 'kill':
            if int(number) == signal.SIGKILL:
                self.killed.add(name)
            daemon.send_signal(int(number))
            if int(number) == signal.SIGKILL:
                daemon.wait(30)
        elif daemon.poll() is None:
            daemon.send_signal(signal.SIGCONT)
        else:
            self.start(name)
            self.killed.discard(name)

    def stop(self):
        """Let the daemons write what they have; those that hang are killed."""
        (self.folder / 'ready').unlink(missing_ok=True)
        if self.gateway is not None:
            self.gateway.kill()
            self.gateway.wait(30)
        for daemon in self.daemons.values():
            daemon.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            for daemon in self.daemons.values():
                daemon.wait(STOP_SECONDS)
        self.kill()

    def kill(self):
        for daemon in self.daemons.values():
            daemon.kill()
        for daemon in self.daemons.values():
            daemon.wait(30)

    def end(self):
        self.kill()
        remove(self.folder)

    def explain(self, error):
        """Return what a command that has failed and the daemons have said last."""
        found = [said_by(error)]
        for name, daemon in self.daemons.items():
            code = daemon.poll()
            found.append(f'{name} {"runs" if code is None else f"has ended: {code}"}')
            for path in sorted((self.folder / 'log').glob(f'{name}.*')):
                lines = path.read_text(errors='replace').splitlines()
                found += [f'  {path.name}: {line}' for line in lines[-10:]]
        return '\n'.join(found)


def die_with_parent():
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def remove(folder):
    """Unmount what is mounted in a folder, without a look at it; remove it.

    A look at what a dead cluster serves would never return.
    """
    for mount in mounts_below(folder):
        detach(mount)
    if not mounts_below(folder):
        shutil.rmtree(folder, ignore_errors=True)


def detach(path):
    """Unmount lazily; what is not mounted is success."""
    _libc.umount2(os.fsencode(path), _MNT_DETACH)


def mounts():
    lines = pathlib.Path('/proc/self/mountinfo').read_text().splitlines()
    return [line.split()[4] for line in lines]


def mounts_below(folder):
    return [mount for mount in mounts() if mount.startswith(f'{folder}/')][::-1]


# A cluster that is kept


def start(folder, *gateway):
    """Return when it can be used; a process in the background runs it."""
    if running_in(folder):
        return
    if not (folder / 'made').exists() and (folder / 'ceph.conf').exists():
        remove(folder)  # it was interrupted
    folder.mkdir(parents=True, exist_ok=True)
    for name in ('ready', 'failed'):
        (folder / name).unlink(missing_ok=True)
    print(
        f'Starting the Ceph cluster in {folder}, this takes some seconds.', flush=True
    )
    with (folder / 'supervisor.out').open('wb') as log:
        process = subprocess.Popen(
            [sys.executable, __file__, 'run', folder, *gateway],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    while not running_in(folder):
        if (folder / 'failed').exists():
            sys.exit((folder / 'failed').read_text())
        if process.poll() is not None:
            sys.exit((folder / 'supervisor.out').read_text())
        time.sleep(0.1)


def stop(folder):
    """Return when it has ended; what is mounted from it hangs then."""
    pid = running_in(folder)
    if pid is not None:
        ended = os.pidfd_open(pid)
        signal.pidfd_send_signal(ended, signal.SIGTERM)
        select.select([ended], [], [], STOP_SECONDS + 2 * COMMAND_SECONDS)


def running_in(folder):
    """Return the process that runs a cluster which can be used, or None."""
    with contextlib.suppress(FileNotFoundError, ValueError):
        pid = json.loads((folder / 'ready').read_text())['supervisor']
        command = pathlib.Path('/proc', str(pid), 'cmdline').read_bytes()
        if os.fsencode(folder) in command.split(b'\0'):
            return pid
    return None


def run(folder, *gateway):
    """Run the cluster of a folder until SIGTERM, or until a daemon ends."""
    supervisor = Supervisor(folder, free_ports(2))
    supervisor.gateway_at = gateway
    try:
        if (folder / 'made').exists():
            supervisor.start_again()
        else:
            supervisor.set_up()
            (folder / 'made').touch()
        supervisor.announce()
        while not supervisor.has_lost_daemon():
            supervisor.keep_gateway()
            time.sleep(LOOK_SECONDS)
    except subprocess.SubprocessError as error:
        (folder / 'failed').write_text(supervisor.explain(error))
    finally:
        supervisor.stop()


def free_ports(number):
    with contextlib.ExitStack() as stack:
        found = [stack.enter_context(socket.socket()) for _ in range(number)]
        for one in found:
            one.bind(('127.0.0.1', 0))
        return [one.getsockname()[1] for one in found]


def said_by(error):
    output = getattr(error, 'output', b'') or b''
    return f'{error}\n{output.decode(errors="replace")}'


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    verbs = {'start': start, 'stop': stop, 'run': run}
    if sys.argv[1] in verbs:
        folder = pathlib.Path(sys.argv[2]).absolute()
        verbs[sys.argv[1]](folder, *sys.argv[3:])
    else:
        run_for_tests()


def run_for_tests():
    folder, pid, address, *ports = sys.argv[1:]
    supervisor = Supervisor(pathlib.Path(folder), ports, address)
    try:
        supervisor.set_up()
        supervisor.serve(int(pid))
    except subprocess.SubprocessError as error:
        sys.exit(supervisor.explain(error))
    finally:
        supervisor.end()


if __name__ == '__main__':
    main()
