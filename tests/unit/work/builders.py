"""Build work rows with defaults that a test may override."""

import sqlalchemy as sa

from manila_lite.work import table


def submit(session, **values):
    """Submit work on a resource of its own; return its id."""
    defaults = {
        'kind': 'painting.paint',
        'topic': 'painters',
        'queue': 'blue',
        'resource': 'wall',
        'resource_id': session.new_id(),
        'args': {},
    }
    context = values.pop('context', {})
    return table.submit(session, context, **defaults | values)


def submit_work(db, **values):
    return db.write(submit, **values)


def claim(db, work_id, owner='me', lease=60.0, queues=('blue',), **values):
    """Return the claim or None; a negative lease has expired already."""
    return db.write(table.claim, work_id, queues, owner, lease, **values)


def taken_over(db, by='another', **values):
    """Return two claims of one row: the lost one and the current one."""
    work_id = submit_work(db, **values)
    lost = claim(db, work_id, lease=-1.0)
    return lost, claim(db, work_id, by, abandoned=True)


def row(db, work_id):
    return db.read(
        lambda session: session.first(
            sa.select(table.WORK).where(table.WORK.c.id == work_id)
        )
    )


def sweep(db, queues=('blue',), kinds=('painting.paint',), batch=50):
    return db.read(table.sweep, queues, kinds, batch)
