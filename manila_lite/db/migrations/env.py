"""How alembic reaches the database: by the connection it is given.

`manila_lite.db.schema` hands over the one that holds the lock; a command
line names a database with `-x url=...`.
"""

from alembic import context
import sqlalchemy as sa

from manila_lite.db import models


def run(connection: sa.Connection) -> None:
    # SQLite cannot alter most things: there, tables are copied instead.
    context.configure(
        connection=connection,
        target_metadata=models.metadata,
        compare_type=True,
        compare_server_default=True,
        render_as_batch=True,
    )
    with context.begin_transaction():
        context.run_migrations()


given = context.config.attributes.get('connection')
if given is not None:
    run(given)
else:
    url = context.get_x_argument(as_dictionary=True)['url']
    with sa.create_engine(url).connect() as own:
        run(own)
