"""The alembic environment.

`manila_lite.db.schema` passes its connection; on a command line the
database is named with `-x url=...`.
"""

from alembic import context
import sqlalchemy as sa

from manila_lite.db import models


def run(connection: sa.Connection) -> None:
    # SQLite can alter little: there, tables are copied instead.
    context.configure(
        connection=connection,
        target_metadata=models.metadata,
        compare_type=True,
        compare_server_default=True,
        render_as_batch=True,
    )
    with context.begin_transaction():
        context.run_migrations()


connection = context.config.attributes.get('connection')
if connection is not None:
    run(connection)
else:
    url = context.get_x_argument(as_dictionary=True)['url']
    with sa.create_engine(url).connect() as own:
        run(own)
