"""Inserts many shares into the database, available and at rest."""

import datetime

import sqlalchemy as sa

from manila_lite.db.models import shares
from manila_lite.db.session import Session
from tests.support.rows import SHARE_FLAGS


def share_id(number: int) -> str:
    return f'{number:036}'


def insert_shares(
    session: Session,
    number: int,
    *,
    type_id: str,
    projects: int = 1,
    public_every: int | None = None,
    per_second: int = 1,
) -> None:
    """Insert shares, `per_second` of them created at the same time.

    Share N is of the project `project N % projects`. One of
    `public_every` is public.
    """
    numbers = range(number)
    made = [
        session.now + datetime.timedelta(seconds=number // per_second)
        for number in numbers
    ]
    session.run_many(
        sa.insert(shares.Share.__table__),
        [
            {
                **SHARE_FLAGS,
                'id': share_id(number),
                'project_id': f'project {number % projects}',
                'size': 1,
                'share_proto': 'NFS',
                'display_name': f'share {number}',
                'display_description': 'd' * 200,
                'is_public': bool(public_every) and number % (public_every or 1) == 0,
                'created_at': made[number],
            }
            for number in numbers
        ],
    )
    session.run_many(
        sa.insert(shares.ShareInstance.__table__),
        [
            {
                'id': share_id(number),
                'share_id': share_id(number),
                'status': 'available',
                'host': 'h@b#p',
                'share_type_id': type_id,
                'access_rules_status': 'active',
                'cast_rules_to_readonly': False,
                'created_at': made[number],
            }
            for number in numbers
        ],
    )
    session.run_many(
        sa.insert(shares.ShareMetadata.__table__),
        [
            {'share_id': share_id(number), 'key': 'key', 'value': 'value'}
            for number in numbers
        ],
    )
