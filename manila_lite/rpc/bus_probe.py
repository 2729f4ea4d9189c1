"""Whether messages can be sent, for a health check."""

import typing

from manila_lite import exception

REFUSED = 'does not accept messages'


def send_ping(transport: typing.Any, topic: str) -> str | None:
    """Send a message to a topic; return what is wrong, without addresses."""
    try:
        transport.client(topic).cast(None, 'ping', {})
    except exception.ServiceUnavailable as error:
        if type(error.__cause__).__name__ == 'MessageUndeliverable':
            return None  # the broker answers, without a listener
        return REFUSED
    return None
