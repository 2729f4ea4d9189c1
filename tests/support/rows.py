"""Rows that tests insert themselves."""

import datetime

import sqlalchemy as sa

from manila_lite.db.models import migrations, shares, types
from manila_lite.db.session import Session

SHARE = shares.Share.__table__
INSTANCE = shares.ShareInstance.__table__


def _flags(table: sa.Table) -> dict[str, bool]:
    return {
        column.name: False for column in table.c if isinstance(column.type, sa.Boolean)
    }


SHARE_FLAGS = _flags(SHARE)
"""All flags of a share, which must have a value."""

MIGRATION_FLAGS = _flags(migrations.ServerMigration.__table__)


def insert_share(session: Session, **columns: object) -> str:
    """Insert a share of 1 GiB without instances; return its id."""
    id = session.new_id()
    session.run(
        sa.insert(SHARE),
        **{
            'id': id,
            'project_id': 'p',
            'size': 1,
            'share_proto': 'NFS',
            'created_at': session.now,
            **SHARE_FLAGS,
            **columns,
        },
    )
    return str(columns.get('id', id))


def insert_instance(session: Session, share_id: str, **columns: object) -> str:
    """Insert an available instance of a share; return its id."""
    id = session.new_id()
    session.run(
        sa.insert(INSTANCE),
        **{
            'id': id,
            'share_id': share_id,
            'status': 'available',
            'cast_rules_to_readonly': False,
            'created_at': session.now,
            **columns,
        },
    )
    return id


def insert_type(
    session: Session, id: str, *, name: str = '', is_public: bool = True
) -> None:
    """Insert a share type without extra specs, by default named by its id."""
    session.run(
        sa.insert(types.ShareType.__table__),
        id=id,
        name=name or id,
        is_public=is_public,
        created_at=session.now,
    )


def insert_row_of(session: Session, table: sa.Table, **columns: object) -> str:
    """Insert a row of any table, with the rows that it must refer to.

    Columns that may be NULL are, unless they are given. Returns the id.
    """
    values = dict(columns)
    for column in table.c:
        if column.nullable or column.server_default or column.name in values:
            continue
        (foreign,) = column.foreign_keys or (None,)
        values[column.name] = (
            insert_row_of(session, foreign.column.table)
            if foreign
            else session.now
            if column.type.python_type is datetime.datetime
            else session.new_id()[: column.type.length]
            if column.type.python_type is str
            else column.type.python_type()
        )
    session.run(sa.insert(table), **values)
    return str(values['id'])


def delete_share(session: Session, share_id: str) -> None:
    """Delete a share with its instances."""
    session.run(sa.delete(INSTANCE).where(INSTANCE.c.share_id == share_id))
    session.run(sa.delete(SHARE).where(SHARE.c.id == share_id))
