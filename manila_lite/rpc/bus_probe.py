"""Whether messages can be sent, for a health check."""

import typing

from manila_lite import exception
from manila_lite.rpc import listening

SILENT = 'does not accept messages'


def send_ping(transport: typing.Any, topic: str) -> str | None:
    """Send a message to a topic; return what is wrong, without addresses.

    That includes what keeps the servers of this process from listening.
    """
    if refused := transport.refusals.reason:
        return f'the broker {refused}'
    try:
        transport.client(topic).cast(None, 'ping', {})
    except exception.ServiceUnavailable as error:
        if type(error.__cause__).__name__ == 'MessageUndeliverable':
            return None  # the broker answers, without a listener
        refused = listening.reason_of(error)
        return f'the broker {refused}' if refused else SILENT
    return None
