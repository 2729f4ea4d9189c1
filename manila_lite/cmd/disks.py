"""The commands of `manila-lite-manage storage` about recorded disks."""

import argparse
import typing

from manila_lite import exception
from manila_lite.cmd import console
from manila_lite.db.queries.services import disks, incarnations, services
from manila_lite.db.session import Session
from manila_lite.host import Host
from manila_lite.rpc.share import BINARY
from manila_lite.work import cancel

FIELDS = ('host', 'identity', 'file_system', 'location')


class DiskInUse(exception.Conflict):
    message = '{host} {why}. {advice}'


def list_all(args: argparse.Namespace) -> None:
    """list which disk belongs to which pool or back end"""
    with console.database(console.configure(args), ready=True) as db:
        found = db.read(rows)
    console.show(args, FIELDS, found)


def rows(session: Session) -> list[dict[str, typing.Any]]:
    """Return what is printed of each recorded disk."""
    return [
        {name: getattr(row, name) for name in FIELDS}
        | ({} if row.identity else {'identity': 'declared lost'})
        for row in disks.list_all(session)
    ]


def declare_lost(args: argparse.Namespace) -> int:
    """give up a disk and its shares, so that another may take its place"""
    conf = console.configure(args)
    with console.database(conf, ready=True) as db:
        cost = db.read(disks.count_cost, args.host)
        row = db.read(disks.find_at, args.host)
        was = f', seen last at {row.location}' if row and row.location else ''
        print(
            f'{args.host}{was}: {cost.shares} shares and {cost.snapshots} '
            f'snapshots of {cost.gigabytes} GiB are lost with its disk.'
        )
        if not args.yes:
            print('Nothing was changed. To declare it lost, add --yes.')
            return 1
        db.write(_declare_lost, args.host, conf.service_down_time)
    print(
        'It is declared lost. The next disk that is found there is used; '
        'shares that it does not have are set to error, and can be '
        'force-deleted.'
    )
    return 0


def _declare_lost(session: Session, host: str, down_time: float) -> None:
    service = services.find(session, Host.parse(host).service_host, BINARY, lock=True)
    if service is None and disks.find_at(session, host) is None:
        raise exception.ServiceNotFound(binary=BINARY, host=host)
    if service is not None and services.is_up(service, down_time):
        raise DiskInUse(
            host=host, why='is up and uses its disk', advice='Stop it first.'
        )
    disks.mark_lost(session, host)
    disks.ensure_at_start(session, Host.parse(host).service_host)


def move_disk(args: argparse.Namespace) -> None:
    """let a pool or back end have the disk of another, with its shares"""
    conf = console.configure(args)
    with console.database(conf, ready=True) as db:
        moved = db.write(_move, args.old, args.new, conf.service_down_time)
    print(f'{args.new} has the disk of {args.old}, with {moved} shares.')


def _move(session: Session, old: str, new: str, down_time: float) -> int:
    there, here = Host.parse(old), Host.parse(new)
    if bool(there.pool) != bool(here.pool) or old == new or not here.backend:
        raise exception.InvalidInput(
            reason='name two pools as host@backend#pool, or two back ends as '
            'host@backend'
        )
    for host in sorted({there.service_host, here.service_host}):
        service = services.find(session, host, BINARY, lock=True)
        if (
            service is not None
            and service.health != incarnations.STOPPED
            and service.now - service.heartbeat_at <= down_time
        ):
            raise DiskInUse(host=host, why='runs', advice='Stop it first.')
        if cancel.has_work(session, host):
            raise DiskInUse(
                host=host,
                why='has unfinished work',
                advice='Let it end, or cancel it: see "work list".',
            )
    if there.service_host != here.service_host:
        _refuse_bound(session, old)
    if disks.find_at(session, old) is None:
        raise exception.InvalidInput(reason=f'no disk is recorded for {old}')
    found = disks.find_at(session, new)
    if found is not None and found.identity is not None:
        raise DiskInUse(
            host=new,
            why=f'has disk {found.identity}',
            advice='Move that one first, or declare it lost.',
        )
    count = disks.move(session, old, new)
    disks.ensure_at_start(session, here.service_host)
    return count


def _refuse_bound(session: Session, host: str) -> None:
    """Refuse what has more in its back end than is on the disk."""
    if disks.has_bound_resources(session, host):
        raise DiskInUse(
            host=host,
            why='has share servers, share groups, replicas or a migration',
            advice='Only pools of one back end can be renamed with these.',
        )


def add_to(verbs: console.Commands) -> None:
    """Add the commands to those of the noun."""
    parsers = console.add_verbs(
        verbs, disks=list_all, declare_lost=declare_lost, move_disk=move_disk
    )
    console.add_json(parsers['disks'])
    add = parsers['declare_lost'].add_argument
    add('host', metavar='HOST', help='host@backend#pool or host@backend')
    add('--yes', action='store_true', help='do it after having seen the cost')
    for name in ('old', 'new'):
        parsers['move_disk'].add_argument(
            name, metavar=name.upper(), help='host@backend#pool or host@backend'
        )
