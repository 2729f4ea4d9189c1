"""The address that keepalived moves between NFS gateways, as the page has it."""

import contextlib
import pathlib
import shutil
import socket
import subprocess
import sys

from tests.support import ceph_supervisor, clean_root, requirements, sampling
from tests.support.processes import wait_until
from tests.support.tenant_network import bridge, client_on

EXAMPLE = pathlib.Path(__file__).parents[3] / 'doc/source/examples/keepalived.conf'
MACHINES = '192.0.2.31', '192.0.2.32'
MOVING = '192.0.2.40'
SECONDS = 15
"""A client of a gateway that has died must be served by another one until then."""

SERVE = """
import socket, sys
server = socket.create_server(('', 2049))
while True:
    connection, _ = server.accept()
    connection.sendall(sys.argv[1].encode())
    connection.close()
"""


class Machine:
    """A namespace with an address, keepalived, and what listens to the port of NFS."""

    def __init__(self, stack, network: str, folder: pathlib.Path, address: str):
        self._stack = stack
        self._client = stack.enter_context(client_on(network, f'{address}/24'))
        self._address = address
        (other,) = set(MACHINES) - {address}
        text = EXAMPLE.read_text()
        for shown, wanted in zip(MACHINES, ('OWN', 'OTHER'), strict=True):
            text = text.replace(shown, wanted)
        config = folder / f'{address}.conf'
        config.write_text(text.replace('OWN', address).replace('OTHER', other))
        self.start()
        pids = (f'--pid={folder}/{address}.pid', f'--vrrp_pid={folder}/{address}.vrrp')
        self._run('keepalived', '-n', '-l', '-f', str(config), *pids)

    def start(self) -> None:
        self._server = self._run(sys.executable, '-c', SERVE, self._address)

    def end(self) -> None:
        self._server.kill()
        self._server.wait()

    def _run(self, *command: str) -> subprocess.Popen:
        process = subprocess.Popen(
            ['ip', 'netns', 'exec', self._client.namespace, *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=ceph_supervisor.die_with_parent,
        )
        self._stack.callback(process.wait, 30)
        self._stack.callback(process.terminate)
        return process


@sampling.suite('addresses of keepalived', 0)
def test_address_moves_to_the_other_gateway_and_stays_there(tmp_path):
    if shutil.which('keepalived') is None:
        requirements.missing('keepalived is missing')
    clean_root.require_namespaces()
    with contextlib.ExitStack() as stack:
        network = stack.enter_context(bridge())
        client = stack.enter_context(client_on(network, '192.0.2.99/24'))
        machines = {
            address: Machine(stack, network, tmp_path, address) for address in MACHINES
        }

        def answering() -> str:
            with (
                contextlib.suppress(OSError),
                client.call(
                    lambda: socket.create_connection((MOVING, 2049), 1)
                ) as connection,
            ):
                return connection.recv(100).decode()
            return ''

        first = wait_until(answering, 'one gateway has the address', 30)
        (other,) = set(MACHINES) - {first}
        machines[first].end()
        wait_until(lambda: answering() == other, 'the address moves', SECONDS)
        machines[first].start()
        machines[other].end()
        wait_until(lambda: answering() == first, 'it moves again', SECONDS)
