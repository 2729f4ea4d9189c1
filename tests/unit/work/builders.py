"""Work with sensible facts, changed by name."""

import sqlalchemy as sa

from manila_lite.work import table


def submit(session, **facts):
    """Leave work about something of its own; its id."""
    values = {
        'kind': 'painting.paint',
        'topic': 'painters',
        'queue': 'blue',
        'resource': 'wall',
        'resource_id': session.new_id(),
        'args': {},
    }
    return table.submit(session, facts.pop('context', {}), **values | facts)


def put(db, **facts):
    return db.write(submit, **facts)


def claim(db, work_id, owner='me', lease=60.0, queues=('blue',), **facts):
    """The job, or None; a lease below nothing is over at once."""
    return db.write(table.claim, work_id, queues, owner, lease, **facts)


def taken_over(db, **facts):
    """One job twice: of who has lost it, and of who has it now."""
    work_id = put(db, **facts)
    lost = claim(db, work_id, lease=-1.0)
    return lost, claim(db, work_id, 'another', abandoned=True)


def row(db, work_id):
    return db.read(
        lambda session: session.one(
            sa.select(table.WORK).where(table.WORK.c.id == work_id)
        )
    )


def sweep(db, queues=('blue',), kinds=('painting.paint',), batch=50):
    return db.read(table.sweep, queues, kinds, batch)
