"""Encryption keys that shares use."""

import sqlalchemy as sa
from sqlalchemy.orm import mapped_column

from manila_lite.db.models import base


class EncryptionKey(base.Base):
    """A key that shares of a project use, as long as one does.

    `uses` is the number of these shares. The key is charged once, to the
    user and the share type of the share that has used it first.
    """

    __tablename__ = 'encryption_keys'
    __table_args__ = base.table_args()

    project_id = mapped_column(base.Name, primary_key=True)
    key_ref = mapped_column(base.Id, primary_key=True)
    user_id = mapped_column(base.Name)
    share_type_id = mapped_column(base.Id)
    uses = mapped_column(sa.Integer, nullable=False)
