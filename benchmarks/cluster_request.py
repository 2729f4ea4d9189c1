"""Requests to the configured WSGI application, counted by callgrind.

Run with MANILA_LITE_CONF: see `instructions.counted`.
"""

import functools
import sys

from benchmarks import application, instructions
from manila_lite.cmd import api, running


def _run_child(token: str, paths: list[str]) -> None:
    headers = {
        'HTTP_X_AUTH_TOKEN': token,
        'HTTP_X_OPENSTACK_MANILA_API_VERSION': application.VERSION,
    }
    running.tune_garbage_collector()
    for path in paths:
        instructions.run_counted(
            functools.partial(application.get, api.application, f'/v2{path}', headers)
        )


if __name__ == '__main__':
    _run_child(sys.argv[1], sys.argv[2:])
