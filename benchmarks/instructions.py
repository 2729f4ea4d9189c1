"""Instructions per request, counted by callgrind in a child process.

Counts do not depend on the load of the machine. `PYTHONHASHSEED` is fixed,
and after a warm-up only the requests are counted.
"""

from collections.abc import Callable
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

from benchmarks import application, raw
from benchmarks.verdict import Verdict
from manila_lite.cmd import start

SHARES = 1000
WARM_UP = 20
"""Requests before those that are counted.

The interpreter adapts functions from their eighth call on.
"""

REQUESTS = 10
TIMEOUT = 300.0
RAW = 'raw:'
"""Prefix of a path: read the same rows with the bare driver."""

LOGGED = 'logged:'
"""Prefix of a path: write the log of a service, to /dev/null."""

_TOTAL = re.compile(r'^totals: (\d+)', re.MULTILINE)


def run(verdict: Verdict) -> None:
    if shutil.which('valgrind') is None:
        verdict.record_missing('instructions', 'valgrind is not installed')
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
                f'{LOGGED}/shares/{one}',
            ],
        )
    get, page, everything, bare, logged = (count / 1e6 for count in counts)
    verdict.record('GET share', get, 'million instructions', at_most=1.0)
    verdict.record(
        'the line of a request in the log',
        logged - get,
        'million instructions',
        at_most=0.1,
    )
    verdict.record('list of 50 in detail', page, 'million instructions')
    verdict.record(
        f'list of {SHARES} in detail', everything, 'million instructions', at_most=140
    )
    verdict.record(
        'the same rows by the bare driver, dumped', bare, 'million instructions'
    )


def counted(
    folder: pathlib.Path,
    first: str,
    paths: list[str],
    module: str = 'benchmarks.instructions',
    **environ: str,
) -> list[float]:
    """Return the number of instructions of one request to each path.

    `module` is run as a program with the arguments `first` and the paths.
    """
    child = subprocess.Popen(
        [
            'valgrind',
            '--tool=callgrind',
            '--instr-atstart=no',
            '--quiet',
            f'--callgrind-out-file={folder}/counts',
            sys.executable,
            '-m',
            module,
            first,
            *paths,
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **environ, 'PYTHONHASHSEED': '0'},
    )
    watch = threading.Timer(TIMEOUT, child.kill)
    watch.start()
    try:
        return [_count(child, folder, place) for place in range(1, len(paths) + 1)]
    finally:
        watch.cancel()
        child.kill()
        child.wait()


def _count(child: subprocess.Popen, folder: pathlib.Path, place: int) -> float:
    _expect_line(child, 'warm')
    _control(child, '--instr=on')
    _continue(child)
    _expect_line(child, 'done')
    _control(child, '--instr=off')
    _control(child, '--dump')
    text = (folder / f'counts.{place}').read_text()
    _continue(child)
    return int(_TOTAL.search(text)[1]) / REQUESTS


def _control(child: subprocess.Popen, order: str) -> None:
    subprocess.run(
        ['callgrind_control', order, str(child.pid)],
        check=True,
        capture_output=True,
        timeout=60,
    )


def _continue(child: subprocess.Popen) -> None:
    child.stdin.write('go\n')
    child.stdin.flush()


def _expect_line(child: subprocess.Popen, word: str) -> None:
    line = child.stdout.readline().strip()
    if line != word:
        raise RuntimeError(f'unexpected line of the child: {line!r}')


def _run_child(url: str, paths: list[str]) -> None:
    """Run in the child: send the requests on command of the parent."""
    app = application.Application(url)
    with contextlib.ExitStack() as stack:
        for path in paths:
            request = functools.partial(app.get, path)
            if path.startswith(LOGGED):
                _write_log(pathlib.Path(url.removeprefix('sqlite:///')).parent)
                request = functools.partial(app.get, path.removeprefix(LOGGED))
            elif path.startswith(RAW):
                request = stack.enter_context(raw.reader(app, path.removeprefix(RAW)))
            run_counted(request)


def run_counted(request: Callable[[], object]) -> None:
    """Run a request as often as `counted` expects of its child."""
    for _ in range(WARM_UP):
        request()
    _report_and_wait('warm')
    for _ in range(REQUESTS):
        request()
    _report_and_wait('done')


def _write_log(folder: pathlib.Path) -> None:
    """Log from now on as a service does that is configured to a file."""
    file = folder / 'log.conf'
    file.write_text(f'[DEFAULT]\nlog_file = {os.devnull}\n')
    start.configure('benchmark', config_files=[str(file)])


def _report_and_wait(word: str) -> None:
    print(word, flush=True)
    sys.stdin.readline()


if __name__ == '__main__':
    _run_child(sys.argv[1], sys.argv[2:])
