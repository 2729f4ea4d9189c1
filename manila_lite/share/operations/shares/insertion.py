"""Insert new shares with their first instance."""

from collections.abc import Mapping
import typing

from oslo_db import exception as db_exc

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.db.queries.replicas import replicas
from manila_lite.db.queries.shares import shares
from manila_lite.db.session import Session
from manila_lite.db.transitions import insert_row
from manila_lite.states.access_rule import RulesStatus
from manila_lite.states.share_instance import SHARE_INSTANCE


def insert(
    session: Session,
    ctx: RequestContext,
    share: Mapping[str, typing.Any],
    instance: Mapping[str, typing.Any],
    metadata: Mapping[str, str],
) -> tuple[str, str]:
    """Insert a share of the caller that is being created.

    `share` and `instance` are values of columns; the others are the same
    for every new share. Returns the ids of the share and its instance.
    Raises ShareTypeNotFound if the type has just been deleted.
    """
    share_id, instance_id = session.new_id(), session.new_id()
    shares.insert(
        session,
        {
            'id': share_id,
            'project_id': ctx.project_id,
            'user_id': ctx.user_id,
            'is_soft_deleted': False,
            'created_at': session.now,
            **share,
        },
        metadata,
    )
    try:
        insert_row(
            session,
            SHARE_INSTANCE,
            'create',
            id=instance_id,
            share_id=share_id,
            access_rules_status=RulesStatus.ACTIVE,
            cast_rules_to_readonly=False,
            created_at=session.now,
            **replicas.initial_columns(share_id, share['replication_type']),
            **instance,
        )
    except db_exc.DBReferenceError:
        # The type was deleted after it was read.
        raise exception.ShareTypeNotFound(
            share_type_id=instance['share_type_id']
        ) from None
    return share_id, instance_id
