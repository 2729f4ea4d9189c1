"""Limits, and the usage that they restrict."""

import sqlalchemy as sa
from sqlalchemy.orm import mapped_column

from manila_lite.db.models import base


class Quota(base.Base):
    __tablename__ = 'quotas'
    __table_args__ = base.table_args()

    project_id = mapped_column(base.Name, primary_key=True)
    resource = mapped_column(base.Name, primary_key=True)
    hard_limit = mapped_column(sa.BigInteger, nullable=False)


class ProjectUserQuota(base.Base):
    __tablename__ = 'project_user_quotas'
    __table_args__ = base.table_args()

    project_id = mapped_column(base.Name, primary_key=True)
    user_id = mapped_column(base.Name, primary_key=True)
    resource = mapped_column(sa.String(64), primary_key=True)
    hard_limit = mapped_column(sa.BigInteger, nullable=False)


class ProjectShareTypeQuota(base.Base):
    __tablename__ = 'project_share_type_quotas'
    __table_args__ = base.table_args()

    project_id = mapped_column(base.Name, primary_key=True)
    share_type_id = mapped_column(
        sa.ForeignKey('share_types.id', ondelete='CASCADE'), primary_key=True
    )
    resource = mapped_column(sa.String(64), primary_key=True)
    hard_limit = mapped_column(sa.BigInteger, nullable=False)


class QuotaClass(base.Base):
    __tablename__ = 'quota_classes'
    __table_args__ = base.table_args()

    class_name = mapped_column(base.Name, primary_key=True)
    resource = mapped_column(base.Name, primary_key=True)
    hard_limit = mapped_column(sa.BigInteger, nullable=False)


class QuotaUsage(base.Base):
    """The usage of one resource by a scope, and its effective limit.

    `scope` is `project` (`scope_id` empty), `user` or `share_type`. A
    `hard_limit` below zero is unlimited. `in_use` equals a recount of the
    resources, `reserved` a recount of the charges of work still owed.
    """

    __tablename__ = 'quota_usages'
    __table_args__ = base.table_args()

    project_id = mapped_column(base.Name, primary_key=True)
    scope = mapped_column(sa.String(16), primary_key=True)
    scope_id = mapped_column(base.Name, primary_key=True)
    resource = mapped_column(sa.String(64), primary_key=True)
    in_use = mapped_column(sa.BigInteger, nullable=False)
    reserved = mapped_column(sa.BigInteger, nullable=False)
    hard_limit = mapped_column(sa.BigInteger, nullable=False)
