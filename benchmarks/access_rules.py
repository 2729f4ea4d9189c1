"""Access rules over HTTP: added by many at once, and at random."""

from collections.abc import Callable
from concurrent import futures
import contextlib
import functools
import multiprocessing
import pathlib
import random
import sqlite3
import statistics
import tempfile
import threading
import time
import typing

from benchmarks import service
from benchmarks.creation import CLIENTS
from benchmarks.creation import LIST_POLL_INTERVAL
from benchmarks.creation import QUIET_READS
from benchmarks.creation import READ_INTERVAL
from benchmarks.creation import _percentile
from benchmarks.creation import _read
from benchmarks.creation import _read_until
from benchmarks.verdict import Verdict
from tests.support.installation import Installation

RULES = 100
MORE = 400
PHASES = 9
PROCESSES = 4
"""Those that the clients who add rules beside a reader are spread over."""

SHARES = 20
REQUESTS = 10_000
TARGETS = 20
"""How many clients a share may have; the driver refuses one of them."""


def run(verdict: Verdict) -> None:
    with (
        service.running() as serve,
        contextlib.closing(service.Client(serve)) as client,
    ):
        _together(verdict, serve, client)
        _interference(verdict, serve, client)
    with tempfile.TemporaryDirectory() as folder:
        _at_random(verdict, pathlib.Path(folder))


def _together(
    verdict: Verdict, serve: service.Service, client: service.Client
) -> None:
    share = _share(client)
    _add(serve, client, share, 1)  # fills caches of statements
    before = _calls(serve)
    seconds = _add(serve, client, share, RULES)
    verdict.record(
        f'{RULES} rules by {CLIENTS} clients, active', seconds, 's', at_most=2
    )
    verdict.record(
        f'{RULES} rules by {CLIENTS} clients, driver calls',
        _calls(serve) - before,
        'calls',
        at_most=5,
    )


def _interference(
    verdict: Verdict, serve: service.Service, client: service.Client
) -> None:
    """What somebody who reads another share notices of many rules.

    The reader and those who add have processes of their own: the threads
    of one would wait for each other, and not for the service. He pauses
    alone as he does among them, and both are measured in turn.
    """
    at = service.Address(serve.port)
    path = '/shares/' + _share(client)
    spawned = multiprocessing.get_context('spawn')
    over = spawned.Event()
    taken = []
    with (
        futures.ProcessPoolExecutor(1, spawned, _know, (over,)) as reader,
        futures.ProcessPoolExecutor(PROCESSES, spawned) as writers,
    ):
        for _ in range(1 + PHASES):
            share = _share(client)
            quiet = reader.submit(_reads_alone, at, path).result()
            over.clear()
            reads = reader.submit(_reads_among, at, path)
            try:
                list(
                    writers.map(
                        functools.partial(_add_part, at, share),
                        range(PROCESSES),
                    )
                )
            finally:
                over.set()
            taken.append(
                [
                    _percentile(sorted(found), 95)
                    for found in (quiet, reads.result())
                ]
            )
            _wait_until_active(client, share)
    taken = taken[1:]  # the first one fills caches of statements
    alone, among = map(statistics.median, zip(*taken, strict=True))
    ratios = [later / before for before, later in taken]
    verdict.record(
        'reader of another share, 95th percentile while '
        f'{CLIENTS} clients add rules, to alone',
        statistics.median(ratios),
        'times',
        at_most=3,
        alone_ms=round(alone, 2),
        among_ms=round(among, 2),
        smallest=round(min(ratios), 2),
        largest=round(max(ratios), 2),
    )


def _know(over: typing.Any) -> None:
    """Have a process know when it is to stop reading."""
    global _over
    _over = over


_over: typing.Any = None


def _reads_alone(at: service.Address, path: str) -> list[float]:
    with contextlib.closing(service.Client(at)) as reader:
        found = []
        for _ in range(QUIET_READS):
            time.sleep(READ_INTERVAL)
            found.append(_read(reader, path))
        return found


def _reads_among(at: service.Address, path: str) -> list[float]:
    with contextlib.closing(service.Client(at)) as reader:
        return _read_until(_over, reader, path)


def _add_part(at: service.Address, share: str, part: int) -> None:
    """Add what one process of those adds, by its share of the clients."""
    _by_all(
        lambda: service.Client(at),
        lambda mine, number: _allow(mine, share, number),
        range(part, MORE, PROCESSES),
        CLIENTS // PROCESSES,
    )


def _share(client: service.Client) -> str:
    share = client.request(
        'POST',
        '/shares',
        {'share': {'share_proto': 'NFS', 'size': 1, 'share_type': 'dummy'}},
    )['share']['id']
    while client.get(f'/shares/{share}')['share']['status'] == 'creating':
        time.sleep(LIST_POLL_INTERVAL)
    return share


def _add(
    serve: service.Service, client: service.Client, share: str, count: int
) -> float:
    """Seconds until so many more rules of the share are active."""
    known = len(_rules(client, share))

    began = time.perf_counter()
    _by_all(
        lambda: service.Client(serve),
        lambda mine, number: _allow(mine, share, known + number),
        range(count),
    )
    _wait_until_active(client, share)
    return time.perf_counter() - began


def _allow(client: service.Client, share: str, number: int) -> None:
    client.request(
        'POST',
        f'/shares/{share}/action',
        {
            'allow_access': {
                'access_type': 'ip',
                'access_to': f'10.0.{number // 250}.{number % 250}',
            }
        },
    )


def _wait_until_active(client: service.Client, share: str) -> None:
    deadline = time.monotonic() + service.TIMEOUT
    while {rule['state'] for rule in _rules(client, share)} != {'active'}:
        if time.monotonic() > deadline:
            raise RuntimeError('rules are on their way for ever')
        time.sleep(LIST_POLL_INTERVAL)


def _rules(client: service.Client, share: str) -> list[dict]:
    return client.get(f'/share-access-rules?share_id={share}')['access_list']


def _calls(serve: service.Service) -> int:
    """How many rounds the driver was called in, as the journal has it."""
    (file,) = serve.folder.glob('state/manila_lite.sqlite')
    with contextlib.closing(sqlite3.connect(file)) as journal:
        return journal.execute(
            'SELECT count(DISTINCT made_at) FROM transitions WHERE '
            "resource = 'access_rule' AND event = 'apply'"
        ).fetchone()[0]


def _by_all(
    connect: Callable[[], typing.Any],
    ask: Callable[[typing.Any, int], object],
    numbers: range,
    clients: int = CLIENTS,
) -> None:
    """Ask for every number, each thread on a connection of its own."""
    kept = threading.local()

    def run(number: int) -> None:
        if not hasattr(kept, 'client'):
            kept.client = connect()
        ask(kept.client, number)

    with futures.ThreadPoolExecutor(clients) as pool:
        list(pool.map(run, numbers))


# At random


def _at_random(verdict: Verdict, folder: pathlib.Path) -> None:
    """What is wrong at rest after requests in any order, and refusals."""
    installed = Installation(
        folder,
        backends={
            'dummy': {'dummy_driver_refuse_clients': f'*.{TARGETS - 1}'}
        },
    )
    try:
        installed.start()
        with contextlib.closing(service.Client(installed)) as client:
            client.request(
                'POST',
                '/types',
                {
                    'share_type': {
                        'name': 'dummy',
                        'extra_specs': {
                            'driver_handles_share_servers': 'False'
                        },
                    }
                },
            )
            client.request(
                'PUT', '/quota-sets/admin', {'quota_set': {'shares': -1}}
            )
            shares = [_share(client) for _ in range(SHARES)]
        began = time.perf_counter()
        _by_all(
            lambda: service.Client(installed),
            lambda mine, number: _ask(mine, random.Random(number), shares),
            range(REQUESTS),
        )
        asked = time.perf_counter() - began
        _wait_for_rest(installed)
        verdict.record(
            f'{REQUESTS} rules added and denied at random, wrong at rest',
            len(installed.problems()),
            'problems',
            at_most=0,
            requests_a_second=round(REQUESTS / asked, 1),
            seconds_until_rest=round(time.perf_counter() - began - asked, 2),
        )
    finally:
        installed.close()


def _wait_for_rest(installed: Installation) -> None:
    """Until nothing is owed, nor was a look later: doubts are looked up."""
    quiet = 0
    deadline = time.monotonic() + service.TIMEOUT
    while quiet < 3:
        if time.monotonic() > deadline:
            raise RuntimeError('rules are on their way for ever')
        quiet = 0 if installed.pending_work() else quiet + 1
        time.sleep(0.5)


def _ask(
    client: service.Client, rng: random.Random, shares: list[str]
) -> None:
    """Add or deny a rule; a refusal is an answer, an error is none."""
    share, verb = rng.choice(shares), rng.choice(['allow', 'deny'])
    args = {
        'access_type': 'ip',
        'access_to': f'10.0.0.{rng.randrange(TARGETS)}',
    }
    if verb == 'deny':
        known = _rules(client, share)
        if not known:
            return
        args = {'access_id': rng.choice(known)['id']}
    try:
        client.request(
            'POST', f'/shares/{share}/action', {f'{verb}_access': args}
        )
    except RuntimeError as error:
        if ': 400 ' not in str(error) and ': 404 ' not in str(error):
            raise
