"""Notifications: oslo.messaging's notifier, with its failures reported."""

import logging
import typing

from oslo_config import cfg

from manila_lite import conf as options, exception
from manila_lite.rpc import transport

LOG = logging.getLogger(__name__)

SECTION = 'oslo_messaging_notifications'

_SENDING = frozenset({'messaging', 'messagingv2'})

RETRIES = 1
"""How often oslo tries again to connect; the sender tries later anyway."""


class Notifications:
    """Sends notifications to the bus and topics of SECTION.

    oslo's notifier only logs that it could not send. Here that is an error.
    """

    def __init__(self, conf: cfg.ConfigOpts, publisher_id: str):
        import oslo_messaging

        transport.register_global_options(conf)
        try:
            self._transport = oslo_messaging.get_notification_transport(conf)
            url = oslo_messaging.TransportURL.parse(conf, conf[SECTION].transport_url)
        except (
            oslo_messaging.InvalidTransportURL,
            oslo_messaging.DriverLoadFailure,
        ) as error:
            raise options.BadConfiguration(
                f'transport_url of [{SECTION}]: {error}'
            ) from error
        if url.transport not in ('rabbit', 'kombu'):
            # Others do not tell whether the broker has a message.
            raise options.BadConfiguration(
                'events need a message broker, RabbitMQ: set transport_url '
                f'of [{SECTION}], or enabled of [events] to false'
            )
        from manila_lite.rpc import rabbit  # only with a broker

        rabbit.prepare(conf)
        conf.set_default('driver', ['messagingv2'], SECTION)
        if not _SENDING.intersection(conf[SECTION].driver):
            raise options.BadConfiguration(
                f'driver of [{SECTION}] must be messagingv2 or messaging, as '
                'others send no events'
            )
        self._error: Exception | None = None
        self._send = self._transport._send_notification
        self._transport._send_notification = self._send_and_report
        self._notifier = oslo_messaging.Notifier(
            self._transport, publisher_id, retry=RETRIES
        )

    def send(self, event_type: str, payload: dict[str, typing.Any]) -> None:
        """Return when the bus has it; raise ServiceUnavailable if not."""
        self._error = None
        self._notifier.info({}, event_type, payload)
        if self._error is not None:
            raise exception.ServiceUnavailable(
                f'{event_type} was not sent: {self._error!r}'
            ) from self._error

    def _send_and_report(self, *args: object, **facts: object) -> None:
        try:
            self._send(*args, **facts)
        except Exception as error:  # noqa: BLE001 raised by `send`
            self._error = error

    def close(self) -> None:
        self._transport.cleanup()
