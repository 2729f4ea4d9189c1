"""Whether the locks of this configuration reach all share services."""

import logging
import urllib.parse

from oslo_config import cfg

from manila_lite.db.queries.services import services
from manila_lite.db.session import Database, Session
from manila_lite.host import Host
from manila_lite.rpc.share import BINARY

LOG = logging.getLogger(__name__)

_LOCAL = ('file', 'ipc')
"""Schemes of tooz URLs whose locks end at the host."""


def warn(conf: cfg.ConfigOpts, db: Database) -> None:
    """Log a warning if locks do not reach all share services."""
    problem = failure_reason(conf, db, conf.host)
    if problem:
        LOG.warning('%s', problem)


def failure_reason(conf: cfg.ConfigOpts, db: Database, *hosts: str) -> str | None:
    """Return why locks do not reach all share services; None if they do.

    `hosts` have share services that may not be registered yet. Results do
    not depend on locks. Without them, drivers are called at the same time
    for different replicas of one share, for example.
    """
    scheme = urllib.parse.urlsplit(conf.coordination.backend_url).scheme
    if scheme not in _LOCAL:
        return None
    found = sorted({*hosts, *db.read(_list_hosts)})
    if len(found) < 2:
        return None
    return (
        f'[coordination] backend_url is {scheme}://, but share services run '
        f'on {len(found)} hosts: {", ".join(found)}. Locks do not reach the '
        'other hosts; use Redis or etcd, or a directory that all of them '
        'share.'
    )


def _list_hosts(session: Session) -> set[str]:
    return {
        Host.parse(service.host).machine
        for service in services.list_all(session)
        if service.binary == BINARY
    }
