"""Migrations of data, which run in batches beside the services.

Those of the schema only expand it. What an older release has written, or
has not, is brought to what this one expects afterwards, when all processes
run this release: by `manila-lite-manage db online_data_migrations`.
"""

import argparse
from collections.abc import Callable, Sequence
import dataclasses

from oslo_config import cfg

from manila_lite import exception
from manila_lite.cmd import console
from manila_lite.db import schema
from manila_lite.db.queries.shares import encryption_keys
from manila_lite.db.session import Database, Session
from manila_lite.quota import limits
from manila_lite.quota.encryption_keys import correct_some_uses

BATCH = 1000
"""The number of rows that one look finds."""

LEFT = 1
"""The exit code if rows are left."""


@dataclasses.dataclass(frozen=True)
class DataMigration:
    """A migration of rows that an older release has written.

    `release` is the first that has it. `count` returns how many rows wait;
    `migrate` migrates a limited number of them and returns that. Both may run at
    any time, again and beside the services of this release.
    `required_by` is the revision of the schema that removes what only rows
    that wait need.
    """

    name: str
    release: int
    count: Callable[[Session], int]
    migrate: Callable[[Database, cfg.ConfigOpts, int], int]
    required_by: str | None = None


def _count_keys(db: Database, conf: cfg.ConfigOpts, most: int) -> int:
    return correct_some_uses(db, limits.from_options(conf.quota), most)


MIGRATIONS: tuple[DataMigration, ...] = (
    DataMigration('encryption_key_uses', 2, encryption_keys.count_wrong, _count_keys),
)


class DataMigrationsWait(exception.ManilaLiteError):
    """A migration of the schema would remove what rows still need."""

    message = (
        'Rows wait for migrations of data that schema {revision} relies on: '
        '{waiting}. Run "manila-lite-manage db online_data_migrations" of '
        'the release before.'
    )


def count_waiting(
    session: Session, migrations: Sequence[DataMigration] = MIGRATIONS
) -> dict[str, int]:
    """Return the number of rows that wait, by migration that has some."""
    counts = {one.name: one.count(session) for one in migrations}
    return {name: count for name, count in counts.items() if count}


def describe(waiting: dict[str, int]) -> str:
    """Return how many rows wait, per migration, as text."""
    return ', '.join(f'{count} of {name}' for name, count in sorted(waiting.items()))


def check_contraction(
    session: Session,
    *,
    head: str = schema.HEAD,
    migrations: Sequence[DataMigration] = MIGRATIONS,
) -> None:
    """Refuse a migration of the schema that relies on rows that wait.

    Raises DataMigrationsWait, which names them.
    """
    found = schema.find_version(session)
    if found is None:
        return
    relying = [
        one
        for one in migrations
        if one.required_by is not None and found < one.required_by <= head
    ]
    waiting = count_waiting(session, relying)
    if waiting:
        raise DataMigrationsWait(revision=head, waiting=describe(waiting))


def run(args: argparse.Namespace) -> int:
    """migrate the data of older releases: exit code 0, or 1 if any is left"""
    conf = console.configure(args)
    rows = []
    with console.database(conf, ready=True) as db:
        left = args.max_count
        for one in MIGRATIONS:
            done = migrate_all(db, conf, one, left)
            if left is not None:
                left -= done
            rows.append(
                {'migration': one.name, 'migrated': done, 'left': db.read(one.count)}
            )
    console.show(args, ('migration', 'migrated', 'left'), rows)
    return LEFT if any(row['left'] for row in rows) else 0


def migrate_all(
    db: Database,
    conf: cfg.ConfigOpts,
    migration: DataMigration,
    most: int | None = None,
) -> int:
    """Migrate all rows that wait, or the first `most`; return the count."""
    done = 0
    while most is None or done < most:
        batch = BATCH if most is None else min(BATCH, most - done)
        migrated = migration.migrate(db, conf, batch)
        if not migrated:
            break
        done += migrated
    return done


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--max-count',
        metavar='N',
        type=_positive,
        help='end after so many rows; without it, all are migrated',
    )
    console.add_json(parser)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f'{text} is not positive')
    return number
