"""Stands in for systemctl where systemd is not process 1.

The services of Debian's packages are started by their init scripts.

It starts services as their unit files say: user, directories, capabilities,
command, and readiness; what a unit file may say beyond that is checked by
`systemd-analyze verify`. Only the standard library is available.

Its exit codes are those of systemd 252.
"""

import configparser
import contextlib
import functools
import os
import pathlib
import pwd
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time

UNITS = pathlib.Path('/etc/systemd/system')
RUN = pathlib.Path('/run/units')
ENABLED = pathlib.Path('/etc/systemd/enabled')
INIT_SCRIPTS = pathlib.Path('/etc/init.d')
# Nothing is done at a time or when a file changes.
TRIGGERS = ('.path', '.timer')


class Values(dict):
    """The settings of a section; those that are repeated are joined."""

    def __setitem__(self, name, value):
        if isinstance(value, list) and isinstance(self.get(name), list):
            value = [*self[name], *value]
        super().__setitem__(name, value)


def read(name):
    parser = configparser.RawConfigParser(strict=False, dict_type=Values)
    parser.optionxform = str
    with open(UNITS / f'{name.removesuffix(".service")}.service') as file:
        parser.read_file(file)
    return parser


def unit_name(name):
    """Return the name of a unit that may be given by an alias."""
    if name.endswith(TRIGGERS):
        return name
    path = UNITS / f'{name.removesuffix(".service")}.service'
    if path.is_symlink() and path.readlink().parent == UNITS:
        return path.readlink().stem
    return path.stem


def aliases(name):
    return read(name)['Install'].get('Alias', '').split()


def enable(name):
    (ENABLED / name).touch()
    for alias in aliases(name) if is_ours(name) else ():
        path = UNITS / alias
        if path.exists() and not path.is_symlink():
            sys.exit(f'Failed to enable unit: {path} exists already')
        path.unlink(missing_ok=True)
        path.symlink_to(UNITS / f'{name}.service')


def disable(name):
    (ENABLED / name).unlink(missing_ok=True)
    for path in UNITS.glob('*.service'):
        if path.is_symlink() and path.readlink().stem == name:
            path.unlink()


def conflicts(name):
    """Return the units that must not run beside this one."""
    found = read(name)['Unit'].get('Conflicts', '').split()
    return [other.removesuffix('.service') for other in found]


def make_directories(service):
    user = pwd.getpwnam(service['User'])
    for setting, parent in (
        ('StateDirectory', '/var/lib'),
        ('LogsDirectory', '/var/log'),
    ):
        for name in service.get(setting, '').split():
            path = pathlib.Path(parent, name)
            path.mkdir(exist_ok=True)
            os.chown(path, user.pw_uid, user.pw_gid)
            path.chmod(int(service.get(f'{setting}Mode', '0755'), 8))


def credentials(name, service):
    """Write the credential of a unit; return the variable that leads to it."""
    folder = pathlib.Path('/run/credentials', f'{name}.service')
    shutil.rmtree(folder, ignore_errors=True)
    if 'LoadCredential' not in service:
        return {}
    user = pwd.getpwnam(service['User'])
    folder.mkdir(parents=True)
    identifier, _, source = service['LoadCredential'].partition(':')
    default = service.get('SetCredential', '').removeprefix(f'{identifier}:')
    file = folder / identifier
    if default and not os.path.exists(source):
        file.write_text(default)
    else:
        shutil.copyfile(source, file)
    for path, mode in ((file, 0o400), (folder, 0o500)):
        os.chown(path, user.pw_uid, user.pw_gid)
        path.chmod(mode)
    return {'CREDENTIALS_DIRECTORY': str(folder)}


def words(command, variables):
    """Return the words of a command, with variables in braces replaced."""
    for variable, value in variables.items():
        command = command.replace(f'${{{variable}}}', value)
    return shlex.split(command)


def start(name):
    """Start a unit; return a function that waits until it is ready."""
    unit = read(name)
    service = unit['Service']
    for other in {unit_name(path.stem) for path in UNITS.glob('*.service')}:
        if name in map(unit_name, conflicts(other)) or (
            other in map(unit_name, conflicts(name))
        ):
            stop(other)
    make_directories(service)
    given = credentials(name, service)
    RUN.mkdir(exist_ok=True)
    ready = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    address = str(RUN / f'{name}.notify')
    pathlib.Path(address).unlink(missing_ok=True)
    ready.bind(address)
    os.chmod(address, 0o777)
    ready.settimeout(0.1)
    with (RUN / f'{name}.log').open('ab') as log:
        process = subprocess.Popen(
            [*privileges(service), *words(service['ExecStart'], given)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=service.get('WorkingDirectory', '/'),
            start_new_session=True,
            env={
                'PATH': '/usr/bin:/bin',
                'USER': service['User'],
                'HOME': pwd.getpwnam(service['User']).pw_dir,
                'NOTIFY_SOCKET': address,
                **given,
            },
        )
    (RUN / f'{name}.pid').write_text(str(process.pid))
    return functools.partial(wait_until_ready, name, process, ready)


def wait_until_ready(name, process, ready):
    """Wait for the message that a unit of the type notify sends."""
    if read(name)['Service']['Type'] == 'exec':
        return  # it is ready when it runs
    assert read(name)['Service']['Type'] == 'notify'
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        try:
            if b'READY=1' in ready.recv(1000):
                return
        except TimeoutError:
            continue
    sys.exit(f'{name}: {(RUN / f"{name}.log").read_text()}')


def privileges(service):
    """Return the command that runs another one with the rights of a unit."""
    user = pwd.getpwnam(service['User'])
    command = [
        'setpriv',
        f'--reuid={user.pw_uid}',
        f'--regid={user.pw_gid}',
        '--init-groups',
    ]
    given = service.get('AmbientCapabilities', '').split()
    names = ','.join(f'+{one.removeprefix("CAP_").lower()}' for one in given)
    if names:
        command += [f'--inh-caps={names}', f'--ambient-caps={names}']
    if service.get('NoNewPrivileges') == 'true':
        command.append('--no-new-privs')
    return command


def stop(name):
    path = RUN / f'{name}.pid'
    if path.exists():
        process = int(path.read_text())
        with contextlib.suppress(ProcessLookupError):  # it has ended
            os.kill(process, signal.SIGTERM)
        while is_running(process):
            time.sleep(0.05)
        path.unlink()


def is_running(process):
    """Return whether a process has not ended; it may do so at any moment."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return pathlib.Path(f'/proc/{process}/cmdline').read_bytes() != b''
    return False


def is_ours(name):
    return (UNITS / f'{name}.service').exists()


def is_known(name):
    if name.endswith(TRIGGERS):
        return (UNITS / name).exists()
    return is_ours(name) or (INIT_SCRIPTS / name).exists()


def require_known(verb, names):
    """Exit as systemd does if there is no unit of such a name."""
    for name in names:
        if is_known(name):
            continue
        if verb in ('enable', 'disable'):
            print(
                f'Failed to {verb} unit: Unit file {name}.service does not exist.',
                file=sys.stderr,
            )
            sys.exit(1)
        print(
            f'Failed to {verb} {name}.service: Unit {name}.service not loaded.',
            file=sys.stderr,
        )
        sys.exit(5)


def is_active(name):
    if name.endswith(TRIGGERS):
        return (ENABLED / name).exists()
    if is_ours(name):
        return (RUN / f'{name}.pid').exists()
    return (
        subprocess.run(['service', name, 'status'], capture_output=True).returncode == 0
    )


def start_all(names):
    """Start units together, and wait until they are ready."""
    waits = []
    for name in names:
        if is_active(name):
            continue
        if is_ours(name):
            waits.append(start(name))
        else:
            subprocess.run(['service', name, 'start'], check=True)
    for wait in waits:
        wait()


def reload_all(names):
    for name in names:
        if not is_active(name):
            sys.exit(f'{name}.service is not active, cannot reload.')
        if is_ours(name):
            os.kill(int((RUN / f'{name}.pid').read_text()), signal.SIGHUP)
        else:
            subprocess.run(['service', name, 'reload'], check=True)


def stop_all(names):
    for name in names:
        if is_ours(name):
            stop(name)
        elif not name.endswith(TRIGGERS) and is_active(name):
            subprocess.run(['service', name, 'stop'], check=True)


def main(verb, *names):
    now = '--now' in names
    names = [unit_name(name) for name in names if name != '--now']
    ENABLED.mkdir(parents=True, exist_ok=True)
    if verb == '--quiet':
        main(*names)
    elif verb == 'daemon-reload':
        for path in UNITS.glob('*.service'):
            assert read(path.stem)['Service']['ExecStart'], path
    elif verb == 'is-active':
        sys.exit(0 if all(map(is_active, names)) else 3)
    elif verb == 'is-enabled':
        sys.exit(0 if all((ENABLED / name).exists() for name in names) else 1)
    elif verb in ('enable', 'disable'):
        assert now, names
        require_known(verb, names)
        for name in names:
            (enable if verb == 'enable' else disable)(name)
        (start_all if verb == 'enable' else stop_all)(names)
    else:
        require_known(verb, names)
        VERBS[verb](names)


def restart_all(names):
    stop_all(names)
    start_all(names)


VERBS = {
    'start': start_all,
    'stop': stop_all,
    'restart': restart_all,
    'reload': reload_all,
}

os.umask(0o022)  # that of systemd, not of the caller
main(*sys.argv[1:])
