"""manila-lite-share: run the configured back ends."""

import pathlib

from oslo_config import cfg

from manila_lite.cmd import liveness, lock_reach, monitoring, running, start
from manila_lite.cmd.api import arguments
from manila_lite.cmd.build.health import checks_of_share_process
from manila_lite.cmd.build.metrics import page_of_process
from manila_lite.cmd.build.share import build_share_service

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
        forget = liveness.hold_lock(folder, process.id)
        lock_reach.warn(conf, db)
        share = build_share_service(process)
        monitored = monitoring.servers(
            conf,
            conf.monitoring.share_port,
            checks_of_share_process(process, share.backends),
            page_of_process(process),
        )
        with start.if_possible('Taking over from dead processes'):
            liveness.reap_dead(
                folder, lambda id: share.take_over_from_dead(process, id)
            )
        with start.if_possible('Retiring back ends'):
            share.retire_others(process)
        if running.serve_until_stopped(
            process, signals, [*monitored, share], has_backends=True, forked=forked
        ):
            forget()  # else the next one takes its work over


if __name__ == '__main__':
    main()
