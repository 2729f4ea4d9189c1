"""NFS-Ganesha: its configuration, and changes to it while it runs.

Changes go over a private D-Bus, which takes about a millisecond; reading the
whole configuration again takes a second with 1,000 exports. The files of the
exports are what a restarted server reads.
"""

from collections.abc import Callable, Iterable, Sequence
import contextlib
import ipaddress
import os
import pathlib
import re
import socket
import sys
import threading
import time
from typing import Any, NamedTuple

from jeepney import DBusAddress, HeaderFields, Message, MessageType, new_method_call
from jeepney.io.blocking import DBusConnection, open_dbus_connection

from manila_lite import exception
from manila_lite.share.drivers import silence
from manila_lite.share.drivers.nfs_clients import Client, Network

_MANAGER = DBusAddress(
    '/org/ganesha/nfsd/ExportMgr',
    bus_name='org.ganesha.nfsd',
    interface='org.ganesha.nfsd.exportmgr',
)
_SAFE_PATH = re.compile(r'[A-Za-z0-9/][A-Za-z0-9/._+-]*')
_RETRY_INTERVAL = 0.02
_REPLY_TIMEOUT = 30.0
_CONNECT_TIMEOUT = 1.0


class Export(NamedTuple):
    """What the server is to export, and to which clients.

    `fsal` are the settings of the part of the server that reads the files.
    """

    number: int
    path: pathlib.PurePath
    pseudo: str
    clients: Sequence[Client]
    fsal: str = 'Name = VFS;'


class _Refused(Exception):
    """The server has answered with an error."""


class Recovery(NamedTuple):
    """What becomes of open files and locks when the server starts again."""

    grace: str
    backend: str


def without_grace(folder: pathlib.Path) -> Recovery:
    """Return the settings of a server that serves new clients at once."""
    return Recovery(
        'Graceless = true;',
        f'RecoveryBackend = fs;\n    RecoveryRoot = "{safe_path(folder)}";',
    )


def safe_path(path: pathlib.PurePath) -> str:
    """Return a path that needs no quoting in any configuration file."""
    if not _SAFE_PATH.fullmatch(str(path)):
        raise exception.BadConfiguration(
            reason=f'{path} has characters that are not allowed'
        )
    return str(path)


def base_config(port: int, recovery: Recovery, plugins: pathlib.Path) -> str:
    """Return the settings besides exports: NFS 4 and nothing else."""
    return f"""\
# Written by manila_lite. What is changed here will be lost.
NFS_CORE_PARAM {{
    Protocols = 4;
    NFS_Port = {port};
    Enable_NLM = false;
    Enable_RQUOTA = false;
    Enable_UDP = false;
    mount_path_pseudo = true;
    fsid_device = true;
    Plugins_Dir = "{safe_path(plugins)}";
}}
NFSv4 {{
    {recovery.grace}
    Minor_Versions = 0, 1, 2;
    {recovery.backend}
    Only_Numeric_Owners = true;
    Allow_Numeric_Owners = true;
}}
NFS_KRB5 {{ Active_krb5 = false; }}
EXPORT_DEFAULTS {{
    Access_Type = None;
    Protocols = 4;
    Transports = TCP;
    SecType = sys;
    Squash = No_Root_Squash;
}}
"""


def refusal(network: Network) -> str | None:
    """Return why the server cannot have a network as a client, or None.

    It does not parse prefixes of three digits: such a client matches none.
    """
    if 99 < network.prefixlen < network.max_prefixlen:
        return (
            'the NFS server takes IPv6 networks with prefixes of up to 99 '
            'bits, and single addresses'
        )
    return None


def export_config(export: Export) -> str:
    """Return the block of one export. The first matching client counts."""
    clients = ''.join(
        f'    CLIENT {{ Clients = {_networks(client)}; '
        f'Access_Type = {client.level.upper()}; Protocols = 4; }}\n'
        for client in export.clients
    )
    return f"""\
EXPORT {{
    Export_Id = {export.number};
    Path = "{safe_path(export.path)}";
    Pseudo = "{safe_path(pathlib.Path(export.pseudo))}";
    Filesystem_Id = 1.{export.number};
    Access_Type = None;
    FSAL {{ {export.fsal} }}
{clients}}}
"""


def _networks(client: Client) -> str:
    """Return the network of a client, all addresses as two halves.

    The server parses 0.0.0.0/0 as a path, and ::/0 matches no client.
    """
    network = ipaddress.ip_network(client.network)
    if network.prefixlen:
        return client.network
    return ', '.join(str(half) for half in network.subnets())


def bus_config(socket: pathlib.Path) -> str:
    """Return the configuration of the bus.

    Only its owner, which is root, and the user of this process can use it.
    """
    user = os.geteuid()
    others = f'\n    <allow user="{user}"/>' if user else ''
    return f"""\
<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>custom</type>
  <listen>unix:path={safe_path(socket)}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow send_destination="*"/>
    <allow receive_sender="*"/>
    <allow own="*"/>{others}
  </policy>
</busconfig>
"""  # noqa: E501 (the published identifier)


def is_listening(
    port: int, open_socket: Callable[[], socket.socket] = socket.socket
) -> bool:
    """Return whether clients can connect to a server.

    One that starts answers on its bus first, on a busy machine a second before.
    """
    try:
        with open_socket() as client:
            client.settimeout(_CONNECT_TIMEOUT)
            client.connect(('127.0.0.1', port))
    except OSError:
        return False
    return True


class Ganesha:
    """A running server; every change may be repeated.

    While it is being restarted, calls wait for it.
    """

    def __init__(self, socket: pathlib.Path, timeout: float | None = None):
        self._address = f'unix:path={socket}'
        self._timeout = silence.TIMEOUT if timeout is None else timeout
        self._lock = threading.Lock()
        self._connection: DBusConnection | None = None
        self._process = 0

    def apply(
        self,
        file: pathlib.Path,
        number: int,
        before_adding: Callable[[], None] = lambda: None,
        is_new: bool = False,
    ) -> None:
        """Export what a file says, whether it was exported or not.

        It takes one call less if `is_new` is right.
        """
        block = f'EXPORT(Export_Id={number})'
        methods = ['UpdateExport', 'AddExport']
        if is_new:
            methods.reverse()
        deadline = time.monotonic() + self._timeout
        while True:
            for method in methods:
                if method == 'AddExport':
                    before_adding()
                try:
                    self._call(method, 'ss', str(file), block)
                except _Refused as refusal:
                    error = refusal
                else:
                    return
            # Another process may be adding or removing it.
            if time.monotonic() > deadline or 'already' not in str(error):
                raise exception.ShareBackendException(
                    msg=f'the NFS server has refused {file.name}: {error}'
                ) from error
            time.sleep(_RETRY_INTERVAL)

    def remove(self, number: int) -> None:
        """End an export, also for open files; a missing one is success."""
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                self._call('RemoveExport', 'q', number)
            except _Refused as refusal:
                if number not in self.numbers():
                    return
                # A server that starts answers before it has its exports.
                if time.monotonic() > deadline:
                    raise exception.ShareBackendException(
                        msg=f'the NFS server keeps export {number}: {refusal}'
                    ) from refusal
            else:
                return
            time.sleep(_RETRY_INTERVAL)

    def numbers(self) -> set[int]:
        """Return the numbers of what is exported; waits for the server."""
        _, exports = self._call('ShowExports')
        return {export[0] for export in exports} - {0}

    def is_answering(self) -> bool:
        try:
            self._try_call('ShowExports', '', ())
        except (OSError, _Refused):
            return False
        return True

    def _call(self, method: str, signature: str = '', *body: object) -> Any:
        deadline = time.monotonic() + self._timeout
        while not silence.is_known(self):
            try:
                return self._try_call(method, signature, body)
            except OSError as error:  # it is being restarted
                if time.monotonic() > deadline:
                    silence.record(self)
                    raise exception.FileServerUnresponsive(server='NFS') from error
                time.sleep(_RETRY_INTERVAL)
        raise exception.FileServerUnresponsive(server='NFS')

    def _try_call(self, method: str, signature: str, body: Iterable[Any]) -> Any:
        sys.audit('manila_lite.nfs', method)
        message = new_method_call(_MANAGER, method, signature, tuple(body))
        with self._lock:
            try:
                reply = self._connected().send_and_get_reply(
                    message, timeout=_REPLY_TIMEOUT
                )
            except BaseException:
                # A late reply would be taken for that of another call.
                self._disconnect()
                raise
        if reply.header.message_type is MessageType.error:
            raise _error_of(reply)
        return reply.body

    def _connected(self) -> DBusConnection:
        if self._connection is None or self._process != os.getpid():
            self._connection = open_dbus_connection(self._address)
            self._process = os.getpid()
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None and self._process == os.getpid():
            with contextlib.suppress(OSError):
                self._connection.close()
        self._connection = None


def _error_of(reply: Message) -> Exception:
    name = reply.header.fields.get(HeaderFields.error_name, '')
    text = ' '.join(str(part) for part in reply.body or ())
    if name.startswith('org.freedesktop.DBus.Error.') and name.rpartition('.')[2] in (
        'ServiceUnknown',
        'NoReply',
        'NameHasNoOwner',
        'Disconnected',
    ):
        return ConnectionError(text)
    return _Refused(text)
