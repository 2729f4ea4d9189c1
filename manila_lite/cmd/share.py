"""manila-lite-share: run the configured back ends."""

import pathlib

from manila_lite.cmd import liveness
from manila_lite.cmd import running
from manila_lite.cmd import start
from manila_lite.cmd.api import arguments
from manila_lite.cmd.build.process import Process
from manila_lite.cmd.build.share import ShareService
from manila_lite.cmd.build.share import build_share_service
from manila_lite.db import schema
from manila_lite.work import table

PROG = 'manila-lite-share'


def main() -> None:
    with start.report_errors(PROG):
        conf = start.configure(PROG, config_files=arguments(PROG).config_file)
        stop = running.StopSignal()
        db = start.database(conf)
        schema.check(db)
        folder = pathlib.Path(conf.state_path, 'alive')
        with (
            running.process(conf, db) as process,
            liveness.hold_lock(folder, process.id),
        ):
            share = build_share_service(process)
            liveness.reap_dead(
                folder, lambda id: _take_over(process, share, id)
            )
            running.serve_until(stop, [share])


def _take_over(process: Process, share: ShareService, id: str) -> None:
    """Expire the leases of a dead incarnation of this service."""
    for backend in share.backends:
        runner = backend.runner
        process.db.write(
            table.expire_leases,
            runner.queues,
            runner.owner.replace(process.id, id),
        )


if __name__ == '__main__':
    main()
