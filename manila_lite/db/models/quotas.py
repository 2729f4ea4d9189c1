"""Quotas, usages, and the keys that shares are encrypted with."""

import sqlalchemy as sa
from sqlalchemy.orm import mapped_column

from manila_lite.db.models import base


class Quota(base.Base):
    __tablename__ = 'quotas'

    project_id = mapped_column(base.Name, primary_key=True)
    resource = mapped_column(base.Name, primary_key=True)
    hard_limit = mapped_column(sa.BigInteger, nullable=False)


class ProjectUserQuota(base.Base):
    __tablename__ = 'project_user_quotas'

    project_id = mapped_column(base.Name, primary_key=True)
    user_id = mapped_column(base.Name, primary_key=True)
    resource = mapped_column(sa.String(64), primary_key=True)
    hard_limit = mapped_column(sa.BigInteger, nullable=False)


class ProjectShareTypeQuota(base.Base):
    __tablename__ = 'project_share_type_quotas'

    project_id = mapped_column(base.Name, primary_key=True)
    share_type_id = base.part_of('share_types', primary_key=True)
    resource = mapped_column(sa.String(64), primary_key=True)
    hard_limit = mapped_column(sa.BigInteger, nullable=False)


class QuotaClass(base.Base):
    __tablename__ = 'quota_classes'

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

    project_id = mapped_column(base.Name, primary_key=True)
    scope = mapped_column(sa.String(16), primary_key=True)
    scope_id = mapped_column(base.Name, primary_key=True)
    resource = mapped_column(sa.String(64), primary_key=True)
    in_use = mapped_column(sa.BigInteger, nullable=False)
    reserved = mapped_column(sa.BigInteger, nullable=False)
    hard_limit = mapped_column(sa.BigInteger, nullable=False)


class EncryptionKey(base.Base):
    """A key that shares of a project use, as long as one does.

    `uses` is the number of these shares. The key is charged once, to the
    user and the share type of the share that has used it first.
    """

    __tablename__ = 'encryption_keys'

    project_id = mapped_column(base.Name, primary_key=True)
    key_ref = mapped_column(base.Id, primary_key=True)
    user_id = mapped_column(base.Name)
    share_type_id = mapped_column(base.Id)
    uses = mapped_column(sa.Integer, nullable=False)
