"""The commands of `manila-lite-manage service`."""

import argparse
from collections.abc import Mapping, Sequence
import datetime
import json
import typing

from manila_lite.cmd import console
from manila_lite.cmd.gone_backends import opened
from manila_lite.db.queries.services import incarnations, pools, releases, services
from manila_lite.db.rows import ServiceRow
from manila_lite.db.session import Session
from manila_lite.rpc.share import BINARY as SHARE_BINARY
from manila_lite.work import table as work

_FIELDS = (
    'binary',
    'host',
    'zone',
    'status',
    'state',
    'release',
    'updated_at',
    'problem',
)


def list_all(args: argparse.Namespace) -> None:
    """list the services and their problems"""
    conf = console.configure(args)
    with console.database(conf, ready=True) as db:
        found = db.read(summaries, conf.service_down_time)
    console.show(args, _FIELDS, found)


def summaries(session: Session, down_time: float) -> list[dict[str, typing.Any]]:
    """Return what is printed of each service."""
    numbers = releases.numbers_by_service(session)
    problems = incarnations.problems_by_service(session, down_time)
    warnings = incarnations.warnings_by_service(session, down_time)
    return [
        _summary(row, down_time, numbers, warnings) | _problem(row, problems)
        for row in services.list_all(session)
    ]


def _problem(row: ServiceRow, problems: Mapping[int, Sequence[str]]) -> dict[str, str]:
    """Return the problem of another process if the one shown has none."""
    found = problems.get(row.id, ())
    if row.health is None and found:
        return {'problem': f'Of another process: {found[0]}'}
    return {}


def _summary(
    row: ServiceRow,
    down_time: float,
    numbers: releases.Numbers,
    warnings: Mapping[int, str],
) -> dict[str, typing.Any]:
    values = (
        row.binary,
        row.host,
        row.zone,
        'disabled' if row.disabled else 'enabled',
        'up' if services.is_up(row, down_time) else 'down',
        ', '.join(map(str, numbers.get(row.id, ()))) or None,
        row.updated_at and row.updated_at.isoformat(' ', 'seconds'),
        row.health or row.disabled_reason or warnings.get(row.id),
    )
    return dict(zip(_FIELDS, values, strict=True))


def describe(args: argparse.Namespace) -> None:
    """show one service with its processes, pools and work"""
    conf = console.configure(args)
    with console.database(conf, ready=True) as db:
        found = db.read(_describe, args.host, args.binary, conf.service_down_time)
    if args.json:
        print(json.dumps(found, indent=2))
        return
    parts = {name: found.pop(name) for name in ('work', 'processes', 'pools')}
    for name, value in found.items():
        print(f'{name}: {"-" if value is None else value}')
    for name, rows in parts.items():
        print(f'\n{name}:{"" if rows else " none"}')
        if rows:
            console.print_table(list(rows[0]), (row.values() for row in rows))


def _describe(
    session: Session, host: str, binary: str, down_time: float
) -> dict[str, typing.Any]:
    row = services.get(session, host, binary)
    queue = host if binary == SHARE_BINARY else row.topic
    return {
        **_summary(
            row,
            down_time,
            releases.numbers_by_service(session),
            incarnations.warnings_by_service(session, down_time),
        ),
        'ensures its shares': row.ensuring,
        'work': [
            {'kind': one.kind, 'state': one.state, 'count': one.unfinished}
            for one in work.count_by_kind(session, queue)
        ],
        'processes': [
            {
                'incarnation': one.incarnation,
                'state': 'up' if services.is_up(one, down_time) else 'down',
                'started_at': _time(one.started_at),
                'heartbeat_at': _time(one.heartbeat_at),
                'ready_at': _time(one.ready_at),
                'release': releases.number_of(one),
                'version': one.version,
                'problem': one.health or one.warning,
            }
            for one in incarnations.list_of_service(session, row.id)
        ],
        'pools': [
            {
                'host': one.host,
                'total_gb': one.total_gb,
                'free_gb': one.free_gb,
                'allocated_gb': one.allocated_gb,
                'pending_gb': one.pending_gb,
                'reported_at': _time(one.reported_at),
            }
            for one in (
                pools.list_of_service(session, host) if binary == SHARE_BINARY else ()
            )
        ],
    }


def _time(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return moment.replace(tzinfo=None).isoformat(' ', 'seconds')


def remove(args: argparse.Namespace) -> None:
    """remove a service that is down and will not come back"""
    with opened(args) as gone:
        count = gone.remove_service(
            args.host, args.binary, cancel_work=args.cancel_work
        )
    print(f'Removed {args.binary} on {args.host}; cancelled work: {count}.')


def add_to(nouns: console.Commands) -> None:
    """Add the commands and their arguments."""
    parsers = console.add(
        nouns,
        'service',
        'the services of all nodes',
        list=list_all,
        describe=describe,
        remove=remove,
    )
    for verb in ('describe', 'remove'):
        add = parsers[verb].add_argument
        add('host', metavar='HOST', help='host of the service, or host@backend')
        add(
            '--binary',
            default=SHARE_BINARY,
            help='binary of the service (default %(default)s)',
        )
    console.add_json(parsers['describe'])
    console.add_formats(parsers['list'])
    parsers['remove'].add_argument(
        '--cancel-work', action='store_true', help='let the work that waits for it fail'
    )
