"""Build the sender of events."""

import typing

from manila_lite.cmd.build.process import Process
from manila_lite.periodic import Task
from manila_lite.rpc.notifications import Notifications
from manila_lite.scheduler.events import EventSender


def build_events(process: Process, owner: str) -> EventSender | None:
    """Build the sender of events; None if they are not enabled."""
    conf = process.conf
    if not conf.events.enabled:
        return None
    notifications = Notifications(conf, f'manila_lite.{conf.host}')
    return EventSender(process.db, owner, notifications.send, notifications.close)


def event_tasks(conf: typing.Any, events: EventSender | None) -> list[Task]:
    """Return the task of a scheduler that sends events."""
    if events is None:
        return []
    return [Task('events', conf.events.interval, events.run_pass)]
