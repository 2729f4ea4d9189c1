"""`status inventory`: what runs where, on one page."""

import argparse
import collections
from collections.abc import Iterator
import json
import pathlib
import typing

from manila_lite import release
from manila_lite.cmd import backups, certificates, console, disks, services
from manila_lite.db import errors, schema
from manila_lite.db.queries.services import releases
from manila_lite.db.session import Database, Session
from manila_lite.host import Host

_BACKUP_FIELDS = ('kind', 'number', 'newest', 'age_hours', 'bytes')
_SERVICE_FIELDS = ('node', 'binary', 'backend', 'state', 'release', 'problem')
_HEADS = {
    'services': _SERVICE_FIELDS,
    'disks': disks.FIELDS,
    'certificates': certificates.FIELDS,
    'backups': _BACKUP_FIELDS,
}


def show(args: argparse.Namespace) -> None:
    """show what runs where: schema, services, disks, certificates, backups"""
    conf = console.configure(args)
    with console.database(conf, ready=True) as db:
        found: dict[str, typing.Any] = {
            'schema': {
                'database': schema.version(db),
                'newest_known': schema.HEAD,
                'release': f'{release.NUMBER} ({release.version()})',
            },
            'services': db.read(_list_services, conf.service_down_time),
            'disks': _disks(db),
            'certificates': certificates.list_ends(conf, db),
            'backups': list(_list_backups(pathlib.Path(args.backups))),
        }
    if args.json:
        print(json.dumps(found, indent=2))
        return
    for name, value in found['schema'].items():
        print(f'{name.replace("_", " ")}: {value}')
    for name, head in _HEADS.items():
        none = ' none' if found[name] == [] else ' not for the account of this service'
        print(f'\n{name}:{"" if found[name] else none}')
        if found[name]:
            console.print_table(
                head, ([row[field] for field in head] for row in found[name])
            )


def _disks(db: Database) -> list[dict[str, typing.Any]] | None:
    """Return the recorded disks; None if the account may not read them."""
    try:
        return db.read(disks.rows)
    except errors.Denied:
        return None


def _list_services(session: Session, down_time: float) -> list[dict[str, typing.Any]]:
    """Return the services by node, each with the releases of live processes."""
    versions = collections.defaultdict(set)
    for process in releases.list_live(session, down_time):
        text = str(process.release_number)
        if process.version:
            text += f' ({process.version})'
        versions[process.binary, process.host].add(text)
    found = [
        {
            'node': Host.parse(row['host']).machine,
            'binary': row['binary'],
            'backend': Host.parse(row['host']).backend or None,
            'state': row['state'],
            'release': ', '.join(sorted(versions[row['binary'], row['host']])) or None,
            'problem': row['problem'],
        }
        for row in services.summaries(session, down_time)
    ]
    return sorted(found, key=_place)


def _place(row: dict[str, typing.Any]) -> tuple[str, str, str]:
    return row['node'], row['binary'], row['backend'] or ''


def _list_backups(folder: pathlib.Path) -> Iterator[dict[str, typing.Any]]:
    for one in backups.list_kinds(folder):
        yield {
            'kind': one.kind,
            'number': one.number,
            'newest': one.newest,
            'age_hours': round(one.age / 3600, 1),
            'bytes': one.bytes,
        }


def add_options(parser: argparse.ArgumentParser) -> None:
    console.add_json(parser)
    parser.add_argument(
        '--backups',
        metavar='DIR',
        default=backups.DIRECTORY,
        help='where deploy keeps backups on this machine (default %(default)s)',
    )
