"""How a client mounts a share: the commands for each protocol."""

from collections.abc import Collection, Mapping
import typing

from manila_lite.share.operations.access.targets import ACCESS_TYPES

Rule = Mapping[str, typing.Any]


class Step(typing.NamedTuple):
    """A command and what it is for."""

    purpose: str
    command: str


class Guide(typing.NamedTuple):
    """The types of access rules of a protocol, most usual first, and their clients."""

    access_types: tuple[str, ...]
    client: str


_GUIDES = {
    'NFS': Guide(
        ('ip',), 'an address or a network of clients, such as 10.0.0.7 or 10.0.0.0/24'
    ),
    'CIFS': Guide(
        ('user', 'ip'), 'a user of the directory service, or for the type ip an address'
    ),
    'CEPHFS': Guide(
        ('cephx',), 'the name of a Ceph user, which is created if there is none'
    ),
}
_ANY = Guide(ACCESS_TYPES, 'a client of the type')
_DEBIAN, _FEDORA = 'on Debian and Ubuntu', 'on Fedora and RHEL'


def guide(protocol: str) -> Guide:
    """Return which access rules a protocol has."""
    return _GUIDES.get(protocol, _ANY)


def steps(share: Mapping[str, str], path: str, rules: Collection[Rule]) -> list[Step]:
    """Return the steps to mount it on a client; none if they are not known."""
    mount = _MOUNTS.get(share['share_proto'])
    if mount is None or not _is_plain(path):
        return []
    folder = f'/mnt/{share["id"]}'
    return [
        *_packages(share['share_proto']),
        *mount(path, folder, rules),
        Step('Unmount it', f'sudo umount {folder}'),
    ]


def _packages(protocol: str) -> list[Step]:
    debian, fedora = _PACKAGES[protocol]
    return [
        Step(f'Once per client, {_DEBIAN}', f'sudo apt install {debian}'),
        Step(f'Once per client, {_FEDORA}', f'sudo dnf install {fedora}'),
    ]


_PACKAGES = {
    'NFS': ('nfs-common', 'nfs-utils'),
    'CIFS': ('cifs-utils', 'cifs-utils'),
    'CEPHFS': ('ceph-common', 'ceph-common'),
}


def _folder(folder: str) -> Step:
    return Step('Make a folder', f'sudo mkdir -p {folder}')


def _nfs(path: str, folder: str, rules: Collection[Rule]) -> list[Step]:
    found = [
        _folder(folder),
        Step('Mount the share', f"sudo mount -t nfs '{path}' {folder}"),
    ]
    if ' ' not in path:
        line = f'{path} {folder} nfs _netdev 0 0'
        found.append(Step('Or let every start mount it: a line of /etc/fstab', line))
    return found


def _cifs(path: str, folder: str, rules: Collection[Rule]) -> list[Step]:
    path = path.replace('\\', '/')
    user = _client(rules, 'user')
    is_open = user is None and any(rule['access_type'] == 'ip' for rule in rules)
    options = 'guest' if is_open else f'username={user or "USER"}'
    windows = path.replace('/', '\\')
    account = '' if is_open else f' /user:{user or "USER"}'
    return [
        _folder(folder),
        Step(
            'Mount the share' if is_open else 'Mount the share; it asks for a password',
            f"sudo mount -t cifs '{path}' {folder} -o {options}",
        ),
        Step('Or on Windows', f'net use * "{windows}"{account}'),
    ]


def _cephfs(path: str, folder: str, rules: Collection[Rule]) -> list[Step]:
    user = _client(rules, 'cephx') or 'USER'
    monitors, _, inside = path.partition(':/')
    secret = f'/etc/ceph/{user}.secret'
    return [
        Step(
            'Save the access key of the rule: paste it, then press Enter and Ctrl+D',
            f'sudo install -D -m 600 /dev/stdin {secret}',
        ),
        _folder(folder),
        Step(
            'Mount the share',
            f"sudo mount -t ceph '{path}' {folder} -o name={user},secretfile={secret}",
        ),
        Step(
            'Or with FUSE, if the kernel is old and a keyring of the user is there',
            f"sudo ceph-fuse {folder} --id={user} -m '{monitors}' "
            f"--client-mountpoint='/{inside}'",
        ),
    ]


_MOUNTS = {'NFS': _nfs, 'CIFS': _cifs, 'CEPHFS': _cephfs}


def _client(rules: Collection[Rule], access_type: str) -> str | None:
    """Return the client for a command if rules of a type name only one."""
    found = {rule['access_to'] for rule in rules if rule['access_type'] == access_type}
    name = found.pop() if len(found) == 1 else ''
    is_safe = name.replace('-', '').replace('_', '').isalnum() and name.isascii()
    return name if is_safe else None


def _is_plain(path: str) -> bool:
    """Whether the path is safe between single quotes and names a server."""
    return (
        not {"'", '"'}.intersection(path)
        and path.isprintable()
        and not path.startswith('/ ')
    )
