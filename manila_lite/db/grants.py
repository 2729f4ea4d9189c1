"""What the database account of each service may do.

A share service or data service runs beside storage, on nodes that are reached
by clients; its account can only do what its own statements need. API and
scheduler read and write all rows. None of them can change the schema: migrations
run with an account that owns the tables.
"""

from collections.abc import Iterator
import re
import typing

import sqlalchemy as sa

from manila_lite import exception
from manila_lite.db import models, schema

SHARE, DATA, CONTROLLER = 'share', 'data', 'controller'
SERVICES = (CONTROLLER, SHARE, DATA)

VERBS = {'S': 'SELECT', 'I': 'INSERT', 'U': 'UPDATE', 'D': 'DELETE'}
LOCK = 'L'
"""Lock rows, without changing them: with the right to update one column."""

_ALL = 'SIUD'

# fmt: off
_TABLE = (
    # table                                       share     data
    ('availability_zones',                        'SI',     'SI'),
    ('cluster_tasks',                             'SID',    'SID'),
    ('driver_calls',                              'SID',    'SID'),
    ('drivers_private_data',                      'SIUD',   ''),
    ('encryption_keys',                           'SIUDL',  ''),
    ('freed_addresses',                           'SID',    ''),
    ('messages',                                  'SI',     'SI'),
    ('network_allocations',                       'SIUD',   ''),
    ('network_segments',                          'SIL',    ''),
    ('pools',                                     'SIUD',   'S'),
    ('qos_type_specs',                            'S',      ''),
    ('qos_types',                                 'S',      ''),
    ('quota_usages',                              'SIUL',   'SUL'),
    # What the limit of a new row of usage follows from.
    ('project_share_type_quotas',                 'S',      ''),
    ('project_user_quotas',                       'S',      ''),
    ('quota_classes',                             'S',      ''),
    ('quotas',                                    'S',      ''),
    ('recovery_log',                              'SI',     'SI'),
    ('resource_locks',                            'SD',     ''),
    ('security_services',                         'S',      ''),
    ('service_incarnations',                      'SIUDL',  'SIUDL'),
    ('services',                                  'SIUL',   'SIUL'),
    ('share_access_map',                          'SUDL',   ''),
    ('share_access_rules_metadata',               'S',      ''),
    ('share_backups',                             'SUDL',   'SUDL'),
    ('share_group_share_type_mappings',           'S',      ''),
    ('share_group_snapshot_members',              'SUDL',   ''),
    ('share_group_snapshots',                     'SUDL',   'S'),
    ('share_groups',                              'SUDL',   'S'),
    ('share_instance_access_map',                 'SIUDL',  'S'),
    ('share_instance_export_locations',           'SIUD',   'S'),
    ('share_instance_export_locations_metadata',  'SID',    ''),
    ('share_instance_metadata',                   'SIUD',   ''),
    ('share_instances',                           'SUDL',   'SUL'),
    ('share_metadata',                            'SID',    'S'),
    ('share_migrations',                          'SUDL',   'SUL'),
    ('share_network_checks',                      'SUD',    ''),
    ('share_network_security_services',           'SIUD',   ''),
    ('share_network_subnet_metadata',             'S',      ''),
    ('share_network_subnets',                     'SUDL',   ''),
    ('share_networks',                            'SUL',    'S'),
    ('share_server_backend_details',              'SIUD',   ''),
    ('share_server_migrations',                   'SUL',    'S'),
    ('share_server_subnets',                      'SIUD',   ''),
    ('share_servers',                             'SIUDL',  'S'),
    ('share_snapshot_access_map',                 'SDL',    ''),
    ('share_snapshot_instance_access_map',        'SUDL',   'S'),
    ('share_snapshot_instance_export_locations',  'SIUD',   ''),
    ('share_snapshot_instances',                  'SUDL',   'S'),
    ('share_snapshot_metadata',                   'S',      ''),
    ('share_snapshots',                           'SUDL',   'S'),
    ('share_type_extra_specs',                    'S',      ''),
    ('share_type_projects',                       'S',      ''),
    ('share_types',                               'S',      ''),
    ('shares',                                    'SUDL',   'SUL'),
    ('storage_disks',                             'SIUD',   ''),
    ('transfers',                                 'SUD',    'S'),
    ('transitions',                               'SI',     'SI'),
    ('work',                                      'SIUDL',  'SIUDL'),
)
# fmt: on


def rights(service: str) -> dict[str, str]:
    """Return the letters of what a service may do, by table."""
    version = dict.fromkeys(schema.VERSION_TABLES, 'S')
    if service == CONTROLLER:
        return dict.fromkeys(models.metadata.tables, _ALL) | version
    column = 1 + (SHARE, DATA).index(service)
    return {row[0]: row[column] for row in _TABLE if row[column]} | version


def merged(services: typing.Iterable[str]) -> dict[str, str]:
    """Return what an account may do that several services have."""
    found: dict[str, str] = {}
    for service in services:
        for table, letters in rights(service).items():
            found[table] = ''.join(sorted({*found.get(table, ''), *letters}))
    return found


def statements(
    dialect: str, services: typing.Iterable[str], account: str, host: str = '%'
) -> list[str]:
    """Return the statements that give an account these rights and no others.

    They are run in the database, by its administrator; the account exists.
    While they run, services that use the account go on.
    """
    granted = merged(services)
    names = {*models.metadata.tables, *schema.VERSION_TABLES}
    build = {'mysql': _for_mysql, 'postgresql': _for_postgresql}[dialect]
    return list(build(granted, names, _quoted(dialect, account, host)))


_IS_NAME = re.compile(r'[A-Za-z_][A-Za-z0-9_.%-]*|%|[0-9.:%/]+')


def _quoted(dialect: str, account: str, host: str) -> str:
    for name in (account, host):
        if not _IS_NAME.fullmatch(name):
            raise exception.InvalidInput(reason=f'"{name}" is no name of an account')
    return f'"{account}"' if dialect == 'postgresql' else f"'{account}'@'{host}'"


def _for_mysql(granted: dict[str, str], names: set[str], account: str) -> Iterator[str]:
    """MariaDB has no transaction around grants, so nothing is taken first."""
    for table in sorted(names):
        letters = granted.get(table, '')
        if words := _words(letters):
            yield f'GRANT {words} ON `{table}` TO {account}'
        if taken := _words(''.join(VERBS.keys() - set(letters))):
            # It is an error to revoke what was not granted.
            yield (
                'BEGIN NOT ATOMIC '
                'DECLARE CONTINUE HANDLER FOR 1141, 1147 BEGIN END; '
                f'REVOKE {taken} ON `{table}` FROM {account}; '
                'END'
            )


def _for_postgresql(
    granted: dict[str, str], names: set[str], account: str
) -> Iterator[str]:
    yield 'BEGIN'
    yield f'REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {account}'
    yield f'REVOKE ALL ON ALL SEQUENCES IN SCHEMA public FROM {account}'
    yield 'REVOKE CREATE ON SCHEMA public FROM PUBLIC'
    for table in sorted(names & granted.keys()):
        letters = granted[table]
        yield f'GRANT {_words(letters)} ON {table} TO {account}'
        if LOCK in letters and 'U' not in letters:
            column = _lock_column(models.metadata.tables[table])
            yield f'GRANT UPDATE ({column}) ON {table} TO {account}'
        if 'I' in letters and (counter := _counter(table)) is not None:
            yield f'GRANT USAGE ON SEQUENCE {table}_{counter}_seq TO {account}'
    yield 'COMMIT'


def _words(letters: str) -> str:
    return ', '.join(word for verb, word in VERBS.items() if verb in letters)


def _lock_column(table: sa.Table) -> str:
    """Return the column that an account may update to lock rows."""
    if 'updated_at' in table.c:
        return 'updated_at'
    return next(iter(table.primary_key)).name


def _counter(name: str) -> str | None:
    """Return the column of a table that counts by a sequence."""
    table = models.metadata.tables.get(name)
    column = None if table is None else table.autoincrement_column
    return None if column is None else column.name
