"""manila-lite-share: run the configured back ends.

Liveness locks find dead processes of a service on this machine; an expired
lease shows them too, but later. Each process locks a file named after its
incarnation, and the kernel releases the lock however the
process ends. Files of other machines that share the directory are left
alone: file locks may not work between machines.
"""

from collections.abc import Callable
import contextlib
import fcntl
import functools
import logging
import os
import pathlib
import socket
import typing

from oslo_config import cfg

from manila_lite.cmd import lock_reach, registered, running, start
from manila_lite.cmd.api import arguments
from manila_lite.cmd.build.database_metrics import page_of_process
from manila_lite.cmd.build.health import checks_of_share_process
from manila_lite.cmd.build.share import build_share_service

LOG = logging.getLogger(__name__)


def hold_liveness_lock(folder: pathlib.Path, id: str) -> Callable[[], None]:
    """Hold the liveness lock of this process until it has ended.

    The file then shows that the process is dead. Call the result to remove
    it, once the process holds no work.
    """
    path = folder / f'{_machine()}{id}'
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
        fcntl.flock(file, fcntl.LOCK_EX)
    except OSError as error:
        LOG.warning(
            'Cannot create the liveness lock; takeover waits for the '
            'lease to expire: %s',
            error,
        )
        return lambda: None
    return functools.partial(path.unlink, missing_ok=True)


def reap_dead(folder: pathlib.Path, take_over: Callable[[str], typing.Any]) -> None:
    """Call `take_over` with the id of each dead process; remove its file.

    After a crash in between, the next start calls it again.
    """
    machine = _machine()
    for path in sorted(folder.glob(f'{machine}*')):
        with contextlib.suppress(OSError), path.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            take_over(path.name.removeprefix(machine))
            path.unlink(missing_ok=True)


def _machine() -> str:
    return f'{socket.gethostname()}_'


PROG = 'manila-lite-share'


def main() -> None:
    with start.report_errors(PROG):
        serve(start.configure(PROG, config_files=arguments(PROG).config_file))


def serve(conf: cfg.ConfigOpts, forked: running.Forked | None = None) -> None:
    """Serve until a signal ends the process."""
    signals = running.receive_signals(PROG, conf)
    db = running.checked_database(conf, signals, forked)
    folder = pathlib.Path(conf.state_path, 'alive')
    with running.process(conf, db) as process:
        forget = hold_liveness_lock(folder, process.id)
        lock_reach.warn(conf, db)
        share = build_share_service(process)
        monitored = registered.servers(
            conf,
            conf.monitoring.share_port,
            checks_of_share_process(process, share.backends),
            page_of_process(process),
        )
        with start.if_possible('Taking over from dead processes'):
            reap_dead(folder, lambda id: share.take_over_from_dead(process, id))
        with start.if_possible('Retiring back ends'):
            share.mark_others_down(process)
        if running.serve_until_stopped(
            process, signals, [*monitored, share], has_backends=True, forked=forked
        ):
            forget()  # else the next one takes its work over


if __name__ == '__main__':
    main()
