"""Run a command of manila_lite under libfaketime.

Usage: clocked.py COMMAND ARGUMENT...

libfaketime refuses sleeps on the monotonic clock when it leaves that clock
alone (EINVAL of clock_nanosleep), which is how Python sleeps.
"""

import importlib
import select
import sys
import time


def main() -> None:
    time.sleep = _sleep
    del sys.argv[0]
    name = sys.argv[0].removeprefix('manila-lite-')
    importlib.import_module(f'manila_lite.cmd.{name}').main()


def _sleep(seconds: float) -> None:
    select.select([], [], [], seconds)


if __name__ == '__main__':
    sys.exit(main())
