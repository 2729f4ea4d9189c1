"""Bring shares into stuck states and rescue them."""

from manila_lite.db.queries.recovery import recovery
from manila_lite.db.transitions import fire
from manila_lite.states.share_instance import SHARE_INSTANCE

# Actions and a detail of user messages.
CREATE, EXTEND, SHRINK, UPDATE, DELETE = '002', '008', '009', '005', '007'
REVERT = '006'
UNKNOWN = '001'

GOOD = {
    'status': 'available',
    'size': 3,
    'share_proto': 'NFS',
    'export_locations': ['1.2.3.4:/a'],
}
"""The reply of a back end about a share that is complete."""


def instance_id(node, share):
    return node.target(share).instance_id


def move(node, share, *events):
    """Fire events without work, as `reset_status` or a bug would."""
    for event in events:
        node.db.write(fire, SHARE_INSTANCE, instance_id(node, share), event)


def rescue(node):
    """Run one pass and its work; return the number of stuck rows."""
    found = node.backend().endpoints.reconciliation.run_pass()
    node.run()
    return found


def says(node, answer):
    """Set the reply of the back end to `get_share_status`."""

    def get_share_status(share, share_server=None):
        if isinstance(answer, (type, Exception)):
            raise answer
        return answer

    node.backend().endpoints.provisioning.driver = driver = node.driver()
    driver.get_share_status = get_share_status


def decisions(node):
    return node.db.read(recovery.list_log, limit=100)
