"""What becomes of a migration when an administrator resets its server."""

from manila_lite.context import RequestContext
from manila_lite.db.queries.servers import migrations as server_migrations
from manila_lite.db.session import Session
from manila_lite.rpc.contract import Client


def settle_migration(
    session: Session, ctx: RequestContext, work: Client, server_id: str
) -> None:
    """Request that an open migration ends if nothing will continue it.

    The service of the destination decides that when it runs the work.
    """
    migration = server_migrations.find_open(session, server_id)
    if migration is not None:
        work.on(migration.destination_host).settle_server_migration(
            session, ctx, share_server_id=server_id
        )
