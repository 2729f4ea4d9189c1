"""Brokers of a cluster: this machine's, or nodes of RabbitMQ."""

import contextlib
import json
import subprocess
import urllib.parse

from tests.cluster import proxy
from tests.cluster.nodes import Node
from tests.support import broker
from tests.support.processes import wait_until

PORT = 5672
PATIENCE = 180.0
_PROGRAMS = '/usr/lib/rabbitmq/bin'


class MachineBroker:
    """A virtual host on the RabbitMQ that this machine runs."""

    names: tuple[str, ...] = ()
    nodes: tuple[Node, ...] = ()

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()
        self._url = ''

    def start(self, nodes: list[Node]) -> None:
        self._url = self._stack.enter_context(broker.virtual_host())

    def stop(self) -> None:
        self._stack.close()

    def url(self, address: str) -> str:
        parts = urllib.parse.urlsplit(self._url)
        user = parts.netloc.rpartition('@')[0]
        return parts._replace(netloc=f'{user}@{address}:{PORT}').geturl()

    def backend(self) -> proxy.Backend:
        return proxy.Backend('broker', PORT, (f'broker 127.0.0.1:{PORT}',))


class RabbitCluster:
    """Nodes of RabbitMQ that keep quorum queues on all of them.

    Services know all nodes, and connect to another one by themselves.
    """

    def __init__(self, size: int):
        self.names = tuple(f'mq{number + 1}' for number in range(size))
        self.nodes: list[Node] = []

    def start(self, nodes: list[Node]) -> None:
        self.nodes = nodes
        for node in nodes:
            self._configure(node)
        self.start_all()

    def stop(self) -> None:
        """Nothing remains outside of the nodes."""

    def start_node(self, node: Node) -> None:
        self.spawn(node)
        self._wait_for(node)

    def kill_all(self) -> None:
        for node in self.nodes:
            node.kill()

    def start_all(self) -> None:
        """Start nodes that all have ended: each waits for the others."""
        for node in self.nodes:
            self.spawn(node)
        for node in self.nodes:
            self._wait_for(node)

    def _wait_for(self, node: Node) -> None:
        wait_until(
            lambda: len(self.running(node)) == len(self.nodes),
            f'{node.name} runs with all others: {node.folder}/log',
            PATIENCE,
            interval=1,
        )

    def running(self, node: Node) -> list[str]:
        """Return the nodes that run, as one of them sees it."""
        try:
            done = node.run(
                *(f'{_PROGRAMS}/rabbitmqctl', '-q', 'cluster_status'),
                *('--timeout', 20, '--formatter', 'json'),
                env=self._env(node),
            )
        except subprocess.TimeoutExpired:  # it hangs while a node starts
            return []
        if done.returncode:
            return []
        return json.loads(done.stdout)['running_nodes']

    def _configure(self, node: Node) -> None:
        (node.folder / 'rabbitmq.conf').write_text(
            '\n'.join(
                [
                    f'listeners.tcp.1 = {node.address}:{PORT}',
                    'default_user = manila',
                    'default_pass = manila',
                    'loopback_users = none',
                    'cluster_formation.peer_discovery_backend = classic_config',
                    *(
                        f'cluster_formation.classic_config.nodes.{number} = '
                        f'rabbit@{one.name}'
                        for number, one in enumerate(self.nodes, start=1)
                    ),
                    'cluster_partition_handling = pause_minority',
                    'log.console = true',
                    'log.console.level = warning',
                    'disk_free_limit.absolute = 50MB',
                    '',
                ]
            )
        )
        (node.folder / 'plugins').write_text('[].\n')
        cookie = node.folder / '.erlang.cookie'
        cookie.write_text('manila')
        cookie.chmod(0o600)

    def _env(self, node: Node) -> dict[str, str]:
        folder = str(node.folder)
        return {
            'RABBITMQ_NODENAME': f'rabbit@{node.name}',
            'RABBITMQ_CONFIG_FILE': f'{folder}/rabbitmq.conf',
            'RABBITMQ_MNESIA_BASE': f'{folder}/mnesia',
            'RABBITMQ_LOG_BASE': f'{folder}/logs',
            'RABBITMQ_PID_FILE': f'{folder}/pid',
            'RABBITMQ_ENABLED_PLUGINS_FILE': f'{folder}/plugins',
            'RABBITMQ_CONF_ENV_FILE': '/dev/null',
            # As many threads as cores for each would be far too many.
            'RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS': '+S 1:1 +A 4',
        }

    def spawn(self, node: Node) -> None:
        # Otherwise the server starts it as a daemon.
        node.spawn('epmd')
        node.spawn(f'{_PROGRAMS}/rabbitmq-server', env=self._env(node))

    def url(self, address: str) -> str:
        hosts = ','.join(f'manila:manila@{node.address}:{PORT}' for node in self.nodes)
        return f'rabbit://{hosts}/'

    def backend(self) -> None:
        """Services need no proxy."""
