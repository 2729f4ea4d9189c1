"""Repeated short outages of the database."""

from oslo_db import exception as db_exc
import pytest

from manila_lite import exception
from tests.support.databases import kill_connections


def asked(call, *args):
    """Repeat a request until the database is available."""
    while True:
        try:
            return call(*args)
        except (db_exc.DBConnectionError, exception.OutcomeUnknown):
            continue  # the request may have been carried out, or not
        except (exception.Conflict, exception.NotFound):
            return None


@pytest.mark.parametrize('database_url', ['mysql', 'postgresql'], indirect=True)
def test_services_survive_the_loss_of_every_connection(build_node, database_url):
    node = build_node(delay=0.01, work='lease = 1').start()
    killed = 0
    for _ in range(5):
        shares = [asked(node.create, 1) for _ in range(3)]
        killed += kill_connections(database_url)
        asked(node.ask, 'force_delete', shares[0])
        killed += kill_connections(database_url)
    assert killed > 10
    node.until(lambda: not asked(node.owed))
    assert node.problems() == []
    # All threads are still alive.
    again = [node.created(1) for _ in range(4)]
    for share in again:
        node.ask('delete', share)
    node.quiet()
    assert node.problems() == []
