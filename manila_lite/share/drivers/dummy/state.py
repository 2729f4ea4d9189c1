"""The state of a dummy back end on disk.

It outlives the process and can be read from outside whether or not the
driver is running.
"""

from collections.abc import Callable
import hashlib
import pathlib

from manila_lite.share.drivers import base, records
from manila_lite.share.drivers.contract.access import RuleChanges
from manila_lite.share.drivers.contract.values import AccessReply, AccessRuleForDriver

# Type, target as given in the rule, level.
Client = tuple[str, str, str]
Clients = dict[str, set[Client]]
# Whether a rule fails, given allow, update or deny, and the rule.
RefusesRule = Callable[[str, AccessRuleForDriver], bool]

INCOMING = 'incoming'
"""The key of the record of an incomplete copy; its value is the source."""

_UNREACHABLE_FILE = 'away'
_KEY_TYPE = 'cephx'  # rules of this type get an access key


class DummyState:
    """Folders of records below the state path of a dummy driver."""

    def __init__(self, path: str | pathlib.Path):
        self.path = pathlib.Path(path)
        self.shares = records.RecordFolder(self.path / 'shares')
        self.snapshots = records.RecordFolder(self.path / 'snapshots')
        self.unmanaged_shares = records.RecordFolder(self.path / 'unmanaged')
        self.unmanaged_snapshots = records.RecordFolder(
            self.path / 'unmanaged_snapshots'
        )
        self.groups = records.RecordFolder(self.path / 'groups')
        self.backups = records.RecordFolder(self.path / 'backups')
        self.servers = records.RecordFolder(self.path / 'servers')
        self.unmanaged_servers = records.RecordFolder(self.path / 'unmanaged_servers')
        # Server migrations to this back end, and the copies made for them.
        self.migrations = records.RecordFolder(self.path / 'migrations')
        self.incoming = records.RecordFolder(self.path / 'arriving')
        self.access = AccessStore(self.path / 'access')
        self.snapshot_access = AccessStore(self.path / 'snapshot_access')

    def content(self, share_id: str) -> pathlib.Path:
        """Return the directory with the content of a share."""
        return self.path / 'content' / share_id

    def domain(self) -> records.Record | None:
        """Return the path of its replication domain and its type there."""
        return records.find(self.path / 'domain.json')

    # Simulated outage

    def is_unreachable(self) -> bool:
        return (self.path / _UNREACHABLE_FILE).exists()

    def make_unreachable(self) -> None:
        (self.path / _UNREACHABLE_FILE).touch()

    def make_reachable(self) -> None:
        (self.path / _UNREACHABLE_FILE).unlink(missing_ok=True)

    # Incoming servers

    def discard_incoming(self, server_id: str) -> None:
        """Remove what was copied for a server that is deleted."""
        for name, record in self.incoming.records():
            if record.get('to') == server_id:
                self.incoming.drop(name)
        self.migrations.drop(server_id)


class AccessStore:
    """Clients, by the share or snapshot they may use.

    Like a real back end it applies exactly the given changes; everything
    else stays unchanged.
    """

    def __init__(self, path: pathlib.Path):
        self._folder = records.RecordFolder(path)

    def inventory(self) -> Clients:
        """Return the clients of each share or snapshot that has any."""
        return {
            name: {
                (client['type'], client['to'], client['level'])
                for client in record['clients']
            }
            for name, record in self._folder.records()
            if record['clients']
        }

    def remove(self, name: str) -> None:
        """Remove all clients; none is success."""
        self._folder.drop(name)

    def copy_from(self, name: str, source: 'AccessStore') -> None:
        """Copy the clients of another back end."""
        self._put_clients(name, source._clients(name))

    def change(
        self,
        name: str,
        rules: RuleChanges,
        *,
        refuses: RefusesRule,
        midway: Callable[[], None],
    ) -> dict[str, AccessReply]:
        """Apply the changes; without any, set exactly those rules.

        Changes that are refused are not made.
        """
        clients = {} if rules.is_resync else self._clients(name)
        allowed = rules.access_rules if rules.is_resync else rules.add_rules
        steps = [('deny', rule) for rule in rules.delete_rules]
        steps += [('allow', rule) for rule in allowed]
        steps += [('update', rule) for rule in rules.update_rules]
        replies = {}
        for number, (verb, rule) in enumerate(steps):
            if number == len(steps) // 2:
                self._put_clients(name, clients)
                midway()
            if refuses(verb, rule):
                replies[rule['access_id']] = AccessReply(state='error')
            elif verb == 'deny':
                clients.pop(_key(rule), None)
            else:
                clients[_key(rule)] = rule['access_level']
                replies[rule['access_id']] = _allow_reply(name, rule)
        self._put_clients(name, clients)
        return replies

    def _clients(self, name: str) -> dict[tuple[str, str], str]:
        record = self._folder.find(name) or {'clients': []}
        return {
            (client['type'], client['to']): client['level']
            for client in record['clients']
        }

    def _put_clients(self, name: str, clients: dict[tuple[str, str], str]) -> None:
        self._folder.put(
            name,
            {
                'clients': [
                    {'type': kind, 'to': to, 'level': level}
                    for (kind, to), level in clients.items()
                ]
            },
        )


def _key(rule: AccessRuleForDriver) -> tuple[str, str]:
    return rule['access_type'], rule['access_to']


def _allow_reply(name: str, rule: AccessRuleForDriver) -> AccessReply:
    if rule['access_type'] != _KEY_TYPE:
        return {'state': 'active'}
    secret = hashlib.sha256(f'{name} {rule["access_to"]}'.encode())
    return {'state': 'active', 'access_key': secret.hexdigest()}


ADDRESS = '10.0.0.10'
ADMIN_ADDRESS = '10.0.0.20'


def share_exports(record: records.Record) -> list[base.ExportLocation]:
    """Return the export locations of a share."""
    return _export_locations(record, 'shares')


def snapshot_exports(record: records.Record) -> list[base.ExportLocation]:
    """Return the export locations of a snapshot."""
    return _export_locations(record, 'snapshots')


def _export_locations(record: records.Record, folder: str) -> list[base.ExportLocation]:
    return [
        _export_location(record, folder, address, is_admin_only)
        for addresses, is_admin_only in (
            (record.get('addresses', [ADDRESS]), False),
            (record.get('admin_addresses', [ADMIN_ADDRESS]), True),
        )
        for address in addresses
    ]


def _export_location(
    record: records.Record, folder: str, address: str, is_admin_only: bool
) -> base.ExportLocation:
    path = (
        f'\\\\{address}\\{record["export"]}'
        if record['share_proto'] == 'CIFS'
        else f'{address}:/{folder}/{record["export"]}'
    )
    return {
        'path': path,
        'is_admin_only': is_admin_only,
        'metadata': {'preferred': str(not is_admin_only)},
    }
