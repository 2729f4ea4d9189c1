"""Tasks that one process of the whole cluster runs at a time."""

from sqlalchemy.orm import mapped_column

from manila_lite.db.models import base


class ClusterTask(base.Base):
    """A periodic task: when it is due, and the process that runs it.

    `owner` and `lease_until` are null while no process runs it. The lease
    of a process that died expires, and another one continues. `position`
    is where a task began or goes on, if it reads a table in order.
    """

    __tablename__ = 'cluster_tasks'
    __table_args__ = base.table_args()

    name = mapped_column(base.Name, primary_key=True)
    due_at = mapped_column(base.EpochSeconds, nullable=False)
    owner = mapped_column(base.Name)
    lease_until = mapped_column(base.EpochSeconds)
    position = mapped_column(base.BigInteger)
