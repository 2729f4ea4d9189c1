"""The command `manila-lite-manage db purge`."""

import argparse
import os
import socket
import typing

from manila_lite.cmd import console
from manila_lite.cmd.build import purges

DAY = 86400.0
MOST = 36500


def run(args: argparse.Namespace) -> None:
    """delete old rows now, as the schedulers do from time to time"""
    conf = console.configure(args)
    age = None if args.age is None else args.age * DAY
    with console.database(conf, ready=True) as db:
        if args.dry_run:
            counts = db.read(purges.count_old_rows, conf, age)
        else:
            counts = {}
            owner = f'{socket.gethostname()}:{os.getpid()}:db purge'
            for purge in purges.purges_of(conf, db, owner, age):
                counts.update(purge.run_now())
    rows: list[dict[str, typing.Any]] = [
        {'table': table, 'rows': count} for table, count in counts.items()
    ]
    console.show(args, ('table', 'rows'), rows)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--age',
        metavar='DAYS',
        type=_days,
        help='delete what is older, at least 1, whatever the options say; '
        'user messages are kept until they expire',
    )
    parser.add_argument(
        '--dry-run', action='store_true', help='print the number of rows; delete none'
    )
    console.add_json(parser)


def _days(text: str) -> int:
    """Parse an age; a live service, which has one too, is younger."""
    number = int(text)
    if not 1 <= number <= MOST:
        raise argparse.ArgumentTypeError(f'{text} is not from 1 to {MOST}')
    return number
