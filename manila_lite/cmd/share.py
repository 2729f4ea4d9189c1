"""manila-lite-share: runs the configured back ends."""

import sys

from manila_lite.cmd import build
from manila_lite.cmd import running
from manila_lite.cmd import start
from manila_lite.cmd.api import arguments
from manila_lite.db import schema

PROG = 'manila-lite-share'


def main() -> None:
    with start.reporting(PROG):
        conf = start.configure(
            PROG, config_files=arguments(PROG).config_file)
        stop = running.Stop()
        db = start.database(conf)
        schema.check(db)
        with running.process(conf, db) as process:
            running.serve_until(stop, [build.share_service(process)])


if __name__ == '__main__':
    sys.exit(main())
