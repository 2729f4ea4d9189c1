"""Commands that break the nodes of a running cluster, and mend them.

They act on namespaces, files and processes, so that any process may give
them. Chaos uses the same functions.
"""

import argparse
from collections.abc import Callable
import pathlib
from typing import NamedTuple

from tests.cluster import cluster
from tests.cluster.nodes import Network, Node
from tests.support.processes import wait_until

RESTARTED_WITHIN = 120.0
USAGE = """
    {command} kill share1
    {command} restart share1
    {command} pause share2
    {command} resume share2
    {command} unplug api1
    {command} plug api1
    {command} partition share1,share2 proxy
    {command} join
    {command} clock {clock} +3600
    {command} clock {clock} 0
    {command} fill share1
    {command} free share1
    {command} delay api1 100
    {command} delay api1 0
    {command} loss api1 5
    {command} loss api1 0
"""


class Command(NamedTuple):
    """What to do with one node, and the value that it takes, if any."""

    help: str
    run: Callable[..., None]
    value: str = ''


def restart(node: Node) -> None:
    """End the processes in order; the cluster starts them again."""
    node.stop()
    wait_until(
        node.pids,
        f'{node.name} was started again; only `up` does that',
        RESTARTED_WITHIN,
        interval=0.5,
    )


COMMANDS = {
    'kill': Command('end it as a power failure does', Node.kill),
    'restart': Command('end it in order; it is started again', restart),
    'pause': Command('stop its processes', Node.pause),
    'resume': Command('let them go on', Node.resume),
    'unplug': Command('take the network from it', Node.unplug),
    'plug': Command('give it back', Node.plug),
    'fill': Command('leave no space on its disk', Node.fill_disk),
    'free': Command('leave space again', Node.clear_disk),
    'clock': Command(
        'let its clock differ by seconds; 0 mends it', Node.step_clock, 'seconds'
    ),
    'delay': Command(
        'delay what it sends by milliseconds; 0 mends it', Node.delay, 'milliseconds'
    ),
    'loss': Command(
        'lose some percent of what it sends; 0 mends it', Node.lose, 'percent'
    ),
}


def add_to(commands: argparse._SubParsersAction) -> None:
    for name, command in COMMANDS.items():
        parser = commands.add_parser(name, help=command.help)
        parser.add_argument('node')
        if command.value:
            parser.add_argument('value', metavar=command.value.upper(), type=float)
    parser = commands.add_parser(
        'partition', help='let nodes of different groups not reach each other'
    )
    parser.add_argument(
        'groups', nargs='+', metavar='NODE,...', type=lambda one: one.split(',')
    )
    commands.add_parser('join', help='end all partitions')


def run(args: argparse.Namespace) -> None:
    """Run a command; raise RuntimeError, with one line, if it cannot."""
    network = find_network(args.folder)
    if args.command == 'join':
        network.join()
    elif args.command == 'partition':
        network.part(
            [[find_node(network, name) for name in one] for one in args.groups]
        )
    else:
        node = find_node(network, args.node)
        value = [args.value] if 'value' in args else []
        COMMANDS[args.command].run(node, *value)


def find_network(folder: pathlib.Path) -> Network:
    found = cluster.find_network(folder)
    if found is None:
        raise RuntimeError(f'no cluster runs in {folder}')
    return found


def find_node(network: Network, name: str) -> Node:
    if name not in network.nodes:
        raise RuntimeError(f'there is no node {name}, but {", ".join(network.nodes)}')
    return network.nodes[name]
