"""The start of one share service as a process of its own."""

import pathlib
import subprocess
import sys
import time

import sqlalchemy as sa

from benchmarks.service import cpu_seconds
from manila_lite.db.models import services
from manila_lite.db.session import Database, Session

COMMAND = pathlib.Path(sys.executable).with_name('manila-lite-share')
TIMEOUT = 120.0
POLL_INTERVAL = 0.01

_SERVICE = services.Service.__table__
_CONF = """
[DEFAULT]
host = {host}
state_path = {folder}
transport_url = memory://
enabled_share_backends = {backend}
[database]
connection = {url}
[coordination]
backend_url = file://{folder}/locks
[{backend}]
share_driver = dummy
driver_handles_share_servers = false
dummy_driver_state_path = {folder}/dummy
dummy_driver_default_driver_method_delay = 0
dummy_driver_driver_methods_delays =
"""


def seconds_until_up(
    db: Database, service_host: str, folder: pathlib.Path
) -> tuple[float, float]:
    """Start the service and stop it.

    Returns the seconds until it was up, and those of processor time.
    """
    host, _, backend = service_host.partition('@')
    file = folder / 'share.conf'
    file.write_text(
        _CONF.format(
            host=host,
            backend=backend,
            folder=folder / 'share',
            url=db.url.replace('%', '%%'),
        )
    )
    (folder / 'share').mkdir()
    before = db.read(_up, service_host)
    began = time.monotonic()
    with (folder / 'share.log').open('wb') as log:
        process = subprocess.Popen(
            [COMMAND, '--config-file', file], stdout=log, stderr=log
        )
        try:
            while db.read(_up, service_host) in (None, before):
                if process.poll() is not None or time.monotonic() - began > TIMEOUT:
                    raise RuntimeError((folder / 'share.log').read_text())
                time.sleep(POLL_INTERVAL)
            return time.monotonic() - began, cpu_seconds(process.pid)
        finally:
            process.terminate()
            process.wait(TIMEOUT)


def _up(session: Session, service_host: str) -> str | None:
    """Return the process that serves a host, if its driver is up."""
    return session.value(
        sa.select(_SERVICE.c.incarnation).where(
            _SERVICE.c.host == service_host, _SERVICE.c.health.is_(None)
        )
    )
