"""How databases execute queries."""

import contextlib
import re

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


def explain(db, statement, parameters):
    """Return the plan of a statement as text, and the steps of SQLite."""
    with db.engine.connect() as connection:
        rows = connection.exec_driver_sql(
            _EXPLAIN[db.dialect] + statement, parameters
        ).all()
        steps = 0
        if db.dialect == 'sqlite':
            steps, _ = _steps(connection, statement, parameters)
    return '\n'.join(' '.join(map(str, row)) for row in rows), steps


MANY = 300
"""More rows than a periodic query should read when nothing is wrong."""

COUNTED_STEPS = 100
STEPS_OF_ROW = 60
"""Instructions of SQLite for one row that a query reads, at most."""

_STATEMENTS = ('UPDATE', 'DELETE', 'SELECT')


class _RolledBack(Exception):
    pass


def scanned_tables(db, query, *args, **kwargs):
    """Return the tables of which a query reads many rows, with the plans.

    SQLite tells only which it reads in full, and how many steps it takes.
    The query may write; nothing is committed.
    """

    def run(session):
        query(session, *args, **kwargs)
        raise _RolledBack

    with recorded_statements() as statements, contextlib.suppress(_RolledBack):
        db.write(run)
    return explain_scans(db, statements)


@contextlib.contextmanager
def recorded_statements():
    """Yield a list to which the statements of this process are added."""
    found = []

    def note(connection, cursor, statement, parameters, context, many):
        if statement.startswith(_STATEMENTS):
            found.append((statement, parameters[0] if many else parameters))

    sa.event.listen(sa.Engine, 'before_cursor_execute', note)
    try:
        yield found
    finally:
        sa.event.remove(sa.Engine, 'before_cursor_execute', note)


def explain_scans(db, statements, *, in_order=False):
    """Return the tables of which statements read many rows.

    With `in_order`, a scan that ends early, as for a page in the order of an
    index, is none.
    """
    found = {}
    for statement, parameters in statements:
        with db.engine.connect() as connection:
            rows = connection.exec_driver_sql(
                _ANALYZE[db.dialect] + statement, parameters
            ).all()
            if db.dialect == 'sqlite':
                rows.append(_steps(connection, statement, parameters))
            connection.rollback()
        for table in _SCANS[db.dialect](rows, in_order):
            found[table] = '\n'.join(map(str, [statement, *rows]))
    return found


def _steps(connection, statement, parameters):
    """Return how many steps SQLite takes, as a row of the plan."""
    steps = 0

    def count():
        nonlocal steps
        steps += COUNTED_STEPS

    driver = connection.connection.dbapi_connection
    driver.set_progress_handler(count, COUNTED_STEPS)
    try:
        driver.execute(statement, parameters).fetchall()
    finally:
        driver.set_progress_handler(None, 0)
    return (steps, 'steps')


def _scans_of_sqlite(rows, in_order):
    *rows, (steps, _) = rows
    if steps > MANY * STEPS_OF_ROW:
        yield f'any table, {steps} steps'
    for row in () if in_order else rows:
        found = re.match(r'SCAN (\w+)', row[-1])
        if found and not found[1].startswith(('anon_', 'CONSTANT')):
            yield found[1]


def _scans_of_mysql(rows, in_order):
    for row in rows:
        # A name in brackets is the result of a subquery.
        if row.table and row.table[0] != '<':
            # With a rowid filter, its part follows in brackets.
            read = float((row.r_rows or '0').partition(' ')[0])
            is_scan = row.type in ('ALL', 'index') and not in_order
            if is_scan or read > MANY:
                yield row.table


def _scans_of_postgresql(rows, in_order):
    def visit(node):
        # Many scans are planned but end early, or are not executed at all.
        read = node['Actual Rows'] + node.get('Rows Removed by Filter', 0)
        if read * node['Actual Loops'] > MANY and 'Relation Name' in node:
            yield node['Relation Name']
        for child in node.get('Plans', ()):
            yield from visit(child)

    ((plans,),) = rows
    for plan in plans:
        yield from visit(plan['Plan'])


_ANALYZE = {
    'sqlite': _EXPLAIN['sqlite'],
    'mysql': 'ANALYZE ',
    'postgresql': 'EXPLAIN (ANALYZE, FORMAT JSON) ',
}
_SCANS = {
    'sqlite': _scans_of_sqlite,
    'mysql': _scans_of_mysql,
    'postgresql': _scans_of_postgresql,
}
