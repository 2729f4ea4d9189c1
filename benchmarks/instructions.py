"""Instructions per request, counted by callgrind in a child process.

A count is the same on a busy machine. `PYTHONHASHSEED` is fixed, the
requests have been made before they count, and only they are counted.
"""

import contextlib
import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading

from benchmarks import application
from benchmarks import raw
from benchmarks.verdict import Verdict

SHARES = 1000
WARM_UP = 3
REQUESTS = 10
TIMEOUT = 300.0
RAW = 'raw:'
"""Before a path: the same rows, read by the bare driver."""

_TOTAL = re.compile(r'^totals: (\d+)', re.MULTILINE)


def run(verdict: Verdict) -> None:
    if shutil.which('valgrind') is None:
        verdict.not_measured('instructions', 'valgrind is not installed')
        return
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        url = application.sqlite(folder)
        with application.filled(url, SHARES) as app:
            one = app.first_share()
        counts = counted(
            folder,
            url,
            [
                f'/shares/{one}',
                '/shares/detail?limit=50',
                '/shares/detail',
                RAW + '/shares/detail',
            ],
        )
    get, page, everything, bare = (count / 1e6 for count in counts)
    verdict.record('GET share', get, 'million instructions', at_most=1.2)
    verdict.record('list of 50 in detail', page, 'million instructions')
    verdict.record(
        f'list of {SHARES} in detail',
        everything,
        'million instructions',
        at_most=140,
    )
    verdict.record(
        'the same rows by the bare driver, dumped',
        bare,
        'million instructions',
    )


def counted(folder: pathlib.Path, url: str, paths: list[str]) -> list[float]:
    """Instructions that one request to each path takes."""
    child = subprocess.Popen(
        [
            'valgrind',
            '--tool=callgrind',
            '--instr-atstart=no',
            '--quiet',
            f'--callgrind-out-file={folder}/counts',
            sys.executable,
            '-m',
            'benchmarks.instructions',
            url,
            *paths,
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, 'PYTHONHASHSEED': '0'},
    )
    watch = threading.Timer(TIMEOUT, child.kill)
    watch.start()
    try:
        return [
            _count(child, folder, place) for place in range(1, len(paths) + 1)
        ]
    finally:
        watch.cancel()
        child.kill()
        child.wait()


def _count(child: subprocess.Popen, folder: pathlib.Path, place: int) -> float:
    _heard(child, 'warm')
    _control(child, '--instr=on')
    _say(child)
    _heard(child, 'done')
    _control(child, '--instr=off')
    _control(child, '--dump')
    text = (folder / f'counts.{place}').read_text()
    _say(child)
    return int(_TOTAL.search(text)[1]) / REQUESTS


def _control(child: subprocess.Popen, order: str) -> None:
    subprocess.run(
        ['callgrind_control', order, str(child.pid)],
        check=True,
        capture_output=True,
        timeout=60,
    )


def _say(child: subprocess.Popen) -> None:
    child.stdin.write('go\n')
    child.stdin.flush()


def _heard(child: subprocess.Popen, word: str) -> None:
    line = child.stdout.readline().strip()
    if line != word:
        raise RuntimeError(f'the counted process said {line!r}')


def _be_counted(url: str, paths: list[str]) -> None:
    """The child: make the requests when told so."""
    app = application.Application(url)
    with contextlib.ExitStack() as stack:
        for path in paths:
            request = functools.partial(app.get, path)
            if path.startswith(RAW):
                request = stack.enter_context(
                    raw.reader(app, path.removeprefix(RAW))
                )
            for _ in range(WARM_UP):
                request()
            _wait('warm')
            for _ in range(REQUESTS):
                request()
            _wait('done')


def _wait(word: str) -> None:
    print(word, flush=True)
    sys.stdin.readline()


if __name__ == '__main__':
    _be_counted(sys.argv[1], sys.argv[2:])
