"""Start, use, break and end a cluster of many nodes on this machine."""

import argparse
from collections.abc import Iterator
import contextlib
import itertools
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import typing

from benchmarks.verdict import Verdict
from tests.cluster import breaking, chaos, cluster, figures, growth, upgrade
from tests.cluster.load import summary
from tests.cluster.services import Timing
from tests.support.cli import Cli
from tests.support.processes import wait_until

USAGE = """
The API is at {url}, through HAProxy. With the official client:

    export OS_AUTH_TYPE=none OS_ENDPOINT={url}
    {bin}/openstack share service list
    {bin}/openstack share create NFS 1 --name second
    {bin}/openstack share list

Nodes: {nodes}
Each has a folder in {folder}, with its configuration and its log.
These commands break and mend a node, or run something in its network;
what is killed is started again after some seconds, as systemd does:
{breaking}
    {command} exec api1 curl http://{api}/healthcheck

Ctrl-C here, or `make stop-cluster` elsewhere, ends everything.
"""
RESTART_AFTER = 5.0


def main(words: list[str] | None = None) -> int:
    args = _parser().parse_args(words)
    if os.geteuid() != 0:
        print('only root may make network namespaces', file=sys.stderr)
        return 1
    if args.command == 'up':
        return up(args)
    if args.command == 'chaos':
        return run_chaos(args)
    if args.command == 'figures':
        return measure(args)
    if args.command == 'upgrade':
        return run_upgrade(args)
    if args.command == 'stop':
        if not cluster.stop(args.folder):
            print(f'no cluster runs in {args.folder}', file=sys.stderr)
            return 1
        return 0
    try:
        if args.command == 'exec':
            return run_on_node(args)
        breaking.run(args)
    except (RuntimeError, AssertionError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def run_on_node(args: argparse.Namespace) -> int:
    node = breaking.find_node(breaking.find_network(args.folder), args.node)
    return subprocess.run(node.words(args.words), check=False).returncode


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog='python -m tests.cluster')
    parser.add_argument(
        '--folder', type=pathlib.Path, default=pathlib.Path('state-cluster')
    )
    commands = parser.add_subparsers(dest='command', required=True)
    start = commands.add_parser('up', help='start a cluster and wait')
    beat = commands.add_parser('chaos', help='start one and let it fail')
    beat.add_argument('--seed', type=int, default=random.randrange(10**6))
    beat.add_argument('--rounds', type=int, default=5)
    beat.add_argument(
        '--hours', type=float, help='begin rounds for so long, instead of --rounds'
    )
    beat.add_argument('--seconds', type=float, default=60, help='of a round')
    beat.add_argument(
        '--faults', default='', help='only those with this in their names'
    )
    times = commands.add_parser(
        'figures', help='start one and measure how long it needs to recover'
    )
    times.add_argument('--only', choices=('services', 'database'), default='')
    rise = commands.add_parser(
        'upgrade', help='start one of the previous release and upgrade it'
    )
    rise.add_argument('--seed', type=int, default=random.randrange(10**6))
    for parser_of_size in (start, beat, times, rise):
        _add_size(parser_of_size)
    commands.add_parser('stop', help='end the cluster of another process')
    breaking.add_to(commands)
    run = commands.add_parser('exec', help='run a command on a node')
    run.add_argument('node')
    run.add_argument('words', nargs=argparse.REMAINDER)
    return parser


def _add_size(start: argparse.ArgumentParser) -> None:
    start.add_argument('--port', type=int, default=8786, help='of the API')
    start.add_argument(
        '--small',
        action='store_true',
        help='start from few nodes and the servers of this machine',
    )
    start.add_argument('--database', choices=cluster.DATABASES)
    for name, what in (
        ('brokers', 'RabbitMQ nodes; 0: that of this machine'),
        ('apis', 'API services'),
        ('schedulers', 'schedulers'),
        ('shares', 'share services; the first two on one back end'),
        ('data', 'data services'),
    ):
        start.add_argument(f'--{name}', type=int, help=f'number of {what}')


def _new_cluster(
    args: argparse.Namespace,
    timing: Timing,
    small: cluster.Size = cluster.SMALL,
    **facts: typing.Any,
) -> cluster.Cluster:
    size = small if args.small else cluster.Size()
    wanted = {
        name: value
        for name in cluster.Size._fields
        if (value := getattr(args, name, None)) is not None
    }
    return cluster.Cluster(
        args.folder.resolve(),
        size._replace(**wanted),
        port=args.port,
        timing=timing,
        **facts,
        say=lambda text: print(text, flush=True),
    )


def run_chaos(args: argparse.Namespace) -> int:
    """Run rounds until one has found something; print what it was."""
    print(f'--seed {args.seed}', flush=True)
    with _until_interrupted(
        _new_cluster(args, chaos.TIMING, has_clocks=True)
    ) as running:
        running.start()
        running.create_types()
        rounds = chaos.Chaos(running, args.seed, faults=args.faults)
        memory = growth.Growth()
        for number in _numbers(args):
            found = rounds.round(args.seconds)
            print(f'round {number}: {found.text}; {memory.look(running)}', flush=True)
            for problem in (problems := [*found.problems, *memory.problems()]):
                print(f'  {problem}', flush=True)
            if problems:
                return 1
        print(summary(rounds.load))
        print('nothing is lost, nothing is wrong')
        return 0
    return 1


def _numbers(args: argparse.Namespace) -> Iterator[int]:
    """Yield the numbers of the rounds, from 1."""
    if args.hours is None:
        yield from range(1, args.rounds + 1)
        return
    end = time.monotonic() + 3600 * args.hours
    for number in itertools.count(1):
        if time.monotonic() >= end:
            return
        yield number


def measure(args: argparse.Namespace) -> int:
    """Print how long a cluster needs to recover; fail if it is too long."""
    verdict = Verdict()
    with _until_interrupted(_new_cluster(args, figures.defaults())) as running:
        running.start()
        figures.measure(verdict, running, args.only)
        return 0 if verdict.summarize() else 1
    return 1


def run_upgrade(args: argparse.Namespace) -> int:
    """Upgrade a cluster of the previous release under load."""
    print(f'--seed {args.seed}', flush=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        _until_interrupted(
            _new_cluster(
                args,
                upgrade.TIMING,
                upgrade.SIZE,
                release=upgrade.install(pathlib.Path(folder, 'old')),
            )
        ) as running,
    ):
        running.start()
        running.create_types()
        rise = upgrade.Upgrade(running, args.seed, lambda text: print(text, flush=True))
        problems = rise.run()
        for problem in problems:
            print(f'  {problem}', flush=True)
        print(summary(rise.load))
        print(rise.text)
        return 1 if problems else 0
    return 1


@contextlib.contextmanager
def _until_interrupted(running: cluster.Cluster) -> Iterator[cluster.Cluster]:
    """End the cluster after the block, or when it is interrupted."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield running
    except KeyboardInterrupt:
        print('ending', flush=True)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        running.close()


def up(args: argparse.Namespace) -> int:
    """Start a cluster, print how to use it, wait until interrupted."""
    with _until_interrupted(
        _new_cluster(args, cluster.DEMONSTRATION, has_clocks=True)
    ) as running:
        running.start()
        first_share(running)
        nodes_by_kind = ' '.join(running.network.nodes)
        command = f'{sys.executable} -m tests.cluster'
        print(
            USAGE.format(
                url=running.url,
                bin=pathlib.Path(sys.executable).parent,
                nodes=nodes_by_kind,
                folder=args.folder,
                command=command,
                breaking=breaking.USAGE.format(
                    command=command, clock=cluster.SKEWED
                ).rstrip(),
                api=f'{running.network.nodes["api1"].address}:8786',
            ),
            flush=True,
        )
        watch(running)
    return 0


def first_share(running: cluster.Cluster) -> None:
    """Create the share type and a share, with the official client."""
    client = Cli('--os-auth-type', 'none', '--os-endpoint', running.url)
    running.create_types()
    share = client('share create', 'NFS', 1, '--name', 'first')

    def is_available() -> dict | None:
        shown = client('share show', share['id'])
        assert shown['status'] in ('creating', 'available'), shown
        return shown if shown['status'] == 'available' else None

    shown = wait_until(is_available, 'the first share is there')
    print(f'share {shown["name"]} is available on {shown["host"]}')


def watch(running: cluster.Cluster) -> None:
    """Start again what has been killed, until interrupted."""
    pause = threading.Event()
    while not pause.wait(RESTART_AFTER):
        for service in running.services.values():
            if not service.is_running:
                print(f'{service.name} ended, starting it', flush=True)
                service.start()
        for server in (running.database, running.broker):
            for node in server.nodes:
                if not node.pids():
                    print(f'{node.name} ended, starting it', flush=True)
                    server.spawn(node)
        locks = running.network.nodes.get('locks')
        if locks is not None and not locks.pids():
            print('locks ended, starting it', flush=True)
            running.start_locks()


if __name__ == '__main__':
    sys.exit(main())
