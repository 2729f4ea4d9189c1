"""The end of share server migrations, and what they have reserved."""

from manila_lite.db.queries.servers import migrations
from manila_lite.db.queries.services import pools
from manila_lite.db.rows import MigrationRow
from manila_lite.db.session import Session
from manila_lite.states.share_server import TaskState


def end(
    session: Session, migration: MigrationRow, outcome: str, reason: str | None = None
) -> None:
    """Close a migration whose shares stay, and release what it reserved.

    Repeating it changes nothing.
    """
    reserved = migrations.close(session, migration, outcome, reason)
    for host, gb in sorted(reserved.items()):
        pools.adjust_allocated(session, host, -gb)


def end_left_open(session: Session, source_server_id: str) -> None:
    """End a migration that `reset_task_state` has left open, if any."""
    migration = migrations.find_open(session, source_server_id)
    if migration is not None:
        end(session, migration, TaskState.ERROR)
