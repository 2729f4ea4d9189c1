"""How databases execute queries."""

import sqlalchemy as sa

_EXPLAIN = {
    'sqlite': 'EXPLAIN QUERY PLAN ',
    'mysql': 'EXPLAIN ',
    'postgresql': 'EXPLAIN ',
}


def analyze(session, *tables):
    """Give the planner the statistics of long tables."""
    for table in tables:
        if session.dialect == 'mysql':
            session.rows(sa.text(f'ANALYZE TABLE {table}'))
        elif session.dialect == 'postgresql':
            session.run(sa.text(f'ANALYZE {table}'))


def plans(db, query, *args, **kwargs):
    """Return the plan of each statement of a query as text."""
    statements = []

    def note(connection, cursor, statement, parameters, context, many):
        if statement.startswith('SELECT'):
            statements.append((statement, parameters))

    sa.event.listen(sa.Engine, 'before_cursor_execute', note)
    try:
        db.read(query, *args, **kwargs)
    finally:
        sa.event.remove(sa.Engine, 'before_cursor_execute', note)
    with db.engine.connect() as connection:
        return [
            '\n'.join(
                ' '.join(map(str, row))
                for row in connection.exec_driver_sql(
                    _EXPLAIN[db.dialect] + statement, parameters
                )
            )
            for statement, parameters in statements
        ]
