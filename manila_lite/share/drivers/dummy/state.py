"""What the dummy back end has, remembered on disk.

All of it outlives the process, and can be read from outside whether the
driver is running or not.
"""

from collections.abc import Callable, Sequence
import hashlib
import pathlib

from manila_lite.share.drivers import records
from manila_lite.share.drivers.contract.values import AccessReply
from manila_lite.share.drivers.contract.values import AccessRuleForDriver

# Type, target as given, level.
Client = tuple[str, str, str]
Clients = dict[str, set[Client]]
# Whether a rule, given by what is to be done with it and itself, fails.
RefusesRule = Callable[[str, AccessRuleForDriver], bool]

_AWAY = 'away'
_KEYED = 'cephx'  # the type of rule that makes a key


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
        self.servers = records.RecordFolder(self.path / 'servers')
        self.unmanaged_servers = records.RecordFolder(
            self.path / 'unmanaged_servers'
        )
        # Of servers that come here, and what is copied before they are.
        self.migrations = records.RecordFolder(self.path / 'migrations')
        self.incoming = records.RecordFolder(self.path / 'arriving')
        self.access = AccessStore(self.path / 'access')
        self.snapshot_access = AccessStore(self.path / 'snapshot_access')

    def domain(self) -> records.Record | None:
        """The path of its replication domain, and its style there."""
        return records.find(self.path / 'domain.json')

    # A site that is lost

    def is_unreachable(self) -> bool:
        return (self.path / _AWAY).exists()

    def make_unreachable(self) -> None:
        (self.path / _AWAY).touch()

    def make_reachable(self) -> None:
        (self.path / _AWAY).unlink(missing_ok=True)

    # Servers that come

    def discard_incoming(self, server_id: str) -> None:
        """Remove what was copied for a server that is removed."""
        for name, record in self.incoming.records():
            if record.get('to') == server_id:
                self.incoming.drop(name)
        self.migrations.drop(server_id)


class AccessStore:
    """Clients, by the share or snapshot they may use.

    Like a real back end it does no more than it is told: changes are
    made to what it has, and what it was not told of stays as it is.
    """

    def __init__(self, path: pathlib.Path):
        self._folder = records.RecordFolder(path)

    def inventory(self) -> Clients:
        """All who may use anything."""
        return {
            name: {
                (client['type'], client['to'], client['level'])
                for client in record['clients']
            }
            for name, record in self._folder.records()
            if record['clients']
        }

    def forget(self, name: str) -> None:
        """Nobody may use it; gone is success."""
        self._folder.drop(name)

    def take(self, name: str, source: 'AccessStore') -> None:
        """Have the clients of another back end."""
        self._keep(name, source._clients(name))

    def change(
        self,
        name: str,
        rules: Sequence[AccessRuleForDriver],
        *,
        add: Sequence[AccessRuleForDriver],
        delete: Sequence[AccessRuleForDriver],
        update: Sequence[AccessRuleForDriver] = (),
        refused: RefusesRule,
        midway: Callable[[], None],
    ) -> dict[str, AccessReply]:
        """Make the changes; without any, have exactly those rules.

        Changes refused are not made.
        """
        everything = not (add or delete or update)
        clients = {} if everything else self._clients(name)
        steps = [('deny', rule) for rule in delete]
        steps += [('allow', rule) for rule in (rules if everything else add)]
        steps += [('update', rule) for rule in update]
        answers = {}
        for number, (verb, rule) in enumerate(steps):
            if number == len(steps) // 2:
                self._keep(name, clients)
                midway()
            if refused(verb, rule):
                answers[rule['access_id']] = AccessReply(state='error')
            elif verb == 'deny':
                clients.pop(_key(rule), None)
            else:
                clients[_key(rule)] = rule['access_level']
                answers[rule['access_id']] = _allowed(name, rule)
        self._keep(name, clients)
        return answers

    def _clients(self, name: str) -> dict[tuple[str, str], str]:
        record = self._folder.find(name) or {'clients': []}
        return {
            (client['type'], client['to']): client['level']
            for client in record['clients']
        }

    def _keep(self, name: str, clients: dict[tuple[str, str], str]) -> None:
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


def _allowed(name: str, rule: AccessRuleForDriver) -> AccessReply:
    if rule['access_type'] != _KEYED:
        return {'state': 'active'}
    secret = hashlib.sha256(f'{name} {rule["access_to"]}'.encode())
    return {'state': 'active', 'access_key': secret.hexdigest()}
