"""Tells the project's user what became of work, in published words."""

import typing

import sqlalchemy as sa

from manila_lite import messages
from manila_lite.db.models import shares
from manila_lite.db.session import Session
from manila_lite.work.table import Job

INSTANCE = shares.ShareInstance.__table__
SHARE = shares.Share.__table__

_SHARE_OF = sa.select(SHARE.c.id, SHARE.c.project_id).join(INSTANCE).where(
    INSTANCE.c.id == sa.bindparam('instance_id'))


def tell(session: Session, job: Job, action: messages.Action,
         detail: messages.Detail, ttl: int) -> None:
    """Write a user message about what the job worked on.

    Users know shares, not their instances. An administrator may have
    asked without a project; then the project of the share is told.
    """
    share = session.one(_SHARE_OF, instance_id=job.resource_id)
    project_id = job.project_id or (share and share.project_id)
    if project_id is None:
        return  # there is nobody to tell
    messages.record(
        session, project_id=project_id, request_id=job.request_id,
        action=action, detail=detail, resource_type='SHARE',
        resource_id=share.id if share else job.resource_id, ttl=ttl)


def detail_of(error: Exception, failure: typing.Any) -> messages.Detail:
    """The detail to tell: the error's own, or the declared one."""
    own = getattr(error, 'facts', {}).get('message_detail')
    return own or failure.detail or messages.Detail.UNKNOWN_ERROR
