"""Call librados in a process of its own, which can be killed.

A call of librados blocks in C for as long as a monitor or manager does not
answer, cannot be cancelled, and may be sent after its caller has given up.
All of that ends with this process. The interpreter that has the module
`rados` runs it, so it uses nothing else but the standard library.

It reads a request per line from its standard input, in JSON, and writes a
reply for each, in any order. It ends when its input does.
"""

from collections.abc import Iterable
import concurrent.futures
import errno
import json
import os
import sys
import threading
from typing import Any

Request = dict[str, Any]
Reply = dict[str, Any]

THREADS = 16
PAGE = 5000
NO_MODULE = 'no module'

_writing = threading.Lock()


def main() -> None:
    settings = json.loads(sys.stdin.buffer.readline())
    workers: list[Worker] = []
    # Before it connects: that may take as long as the limit.
    threading.Thread(target=_serve, args=(workers,), daemon=True).start()
    try:
        import rados
    except ImportError as error:
        _write({'number': 0, 'code': NO_MODULE, 'status': str(error)})
        os._exit(0)
    try:
        workers.append(Worker(rados, settings))
    except rados.Error as error:
        _write({'number': 0, **_failure(error)})
        os._exit(0)
    _write({'number': 0, 'code': 0})
    threading.Event().wait()


def _serve(workers: 'list[Worker]') -> None:
    """Answer requests until the process that makes them ends.

    They come after the reply that says that there is a worker.
    """
    pool = concurrent.futures.ThreadPoolExecutor(THREADS)
    try:
        for line in sys.stdin.buffer:
            request = json.loads(line)
            pool.submit(workers[0].reply_to, request)
    finally:
        os._exit(0)


def _write(reply: Reply) -> None:
    line = (json.dumps(reply) + '\n').encode()
    with _writing:
        while line:
            line = line[os.write(1, line) :]


def _failure(error: Any) -> Reply:
    return {'code': -abs(getattr(error, 'errno', None) or 22), 'status': str(error)}


class Worker:
    """A connection to a cluster."""

    def __init__(self, rados: Any, settings: dict[str, Any]):
        self._rados = rados
        limit = str(settings['limit'])
        options = {
            'client_mount_timeout': limit,
            'rados_mon_op_timeout': limit,
            'rados_osd_op_timeout': limit,
            # Errors are in the replies; a socket would be left behind.
            'log_to_stderr': 'false',
            'err_to_stderr': 'false',
            'log_file': '',
            'admin_socket': '',
        }
        if settings['keyring']:
            options['keyring'] = settings['keyring']
        self._cluster = rados.Rados(
            conffile=settings['conffile'], rados_id=settings['id'], conf=options
        )
        self._cluster.connect()
        self._ioctxs: dict[tuple[str, str], Any] = {}
        self._cephfs: Any = None
        self._lock = threading.Lock()

    def reply_to(self, request: Request) -> None:
        try:
            reply = getattr(self, f'_{request["kind"]}')(request)
        except ImportError as error:
            reply = {'code': -errno.ENOPKG, 'status': str(error)}
        except self._rados.Error as error:
            reply = _failure(error)
        _write({'number': request['number'], **reply})

    def _mon(self, request: Request) -> Reply:
        return _said(*self._cluster.mon_command(json.dumps(request['command']), b''))

    def _mgr(self, request: Request) -> Reply:
        """Send a command, unless a later call has come or the records are others.

        Compared here, not by the caller: that may be paused before it is sent.
        """
        if (fence := request.get('fence')) and self._is_fenced(fence):
            return {'code': 0, 'fenced': True}
        return _said(*self._cluster.mgr_command(json.dumps(request['command']), b''))

    def _is_fenced(self, fence: Request) -> bool:
        wanted = fence['compare']
        found = self._read(fence | {'keys': [fence['key'], *wanted]})['values']
        token = found.pop(fence['key'], None)
        seen = json.loads(token)[0] if token else 0
        return seen > fence['value'] or found != wanted

    def _mds(self, request: Request) -> Reply:
        import cephfs  # only back ends with NFS gateways need the module

        with self._lock:
            if self._cephfs is None:
                client = cephfs.LibCephFS(rados_inst=self._cluster)
                try:
                    client.init()
                except cephfs.Error as error:
                    return _failure(error)
                self._cephfs = client
        code, output, status = self._cephfs.mds_command(
            request['target'], json.dumps(request['command']), ''
        )
        return _said(code, output, status)

    def _read(self, request: Request) -> Reply:
        """Read keys of an object's omap, or all that begin with a prefix."""
        ioctx, values = self._ioctx(request), {}
        try:
            if 'keys' in request:
                values = self._keys(ioctx, request['object'], request['keys'])
            else:
                while found := self._page(ioctx, request, max(values, default='')):
                    values.update(found)
        except self._rados.ObjectNotFound:
            pass  # nothing was written yet
        return {'code': 0, 'values': values}

    def _keys(self, ioctx: Any, name: str, keys: Iterable[str]) -> dict[str, str]:
        with self._rados.ReadOpCtx() as operation:
            found, _ = ioctx.get_omap_vals_by_keys(operation, tuple(keys))
            ioctx.operate_read_op(operation, name)
            return {key: value.decode() for key, value in found}

    def _page(self, ioctx: Any, request: Request, after: str) -> dict[str, str]:
        with self._rados.ReadOpCtx() as operation:
            found, _ = ioctx.get_omap_vals(operation, after, request['prefix'], PAGE)
            ioctx.operate_read_op(operation, request['object'])
            return {key: value.decode() for key, value in found}

    def _write(self, request: Request) -> Reply:
        """Change keys if all have the given values; else change none."""
        ioctx = self._ioctx(request)
        with self._rados.WriteOpCtx() as operation:
            operation.new(self._rados.LIBRADOS_CREATE_IDEMPOTENT)
            for key, value in request['compare'].items():
                operation.omap_cmp(key, value, self._rados.LIBRADOS_CMPXATTR_OP_EQ)
            if values := request['set']:
                ioctx.set_omap(
                    operation,
                    tuple(values),
                    tuple(value.encode() for value in values.values()),
                )
            if request['remove']:
                ioctx.remove_omap_keys(operation, tuple(request['remove']))
            ioctx.operate_write_op(operation, request['object'])
        return {'code': 0}

    def _ioctx(self, request: Request) -> Any:
        place = request['pool'], request['namespace']
        with self._lock:
            if place not in self._ioctxs:
                ioctx = self._cluster.open_ioctx(request['pool'])
                ioctx.set_namespace(request['namespace'])
                # A full pool refuses changes instead of keeping them waiting.
                ioctx.set_osdmap_full_try()
                self._ioctxs[place] = ioctx
            return self._ioctxs[place]


def _said(code: int, output: bytes, status: str) -> Reply:
    return {'code': code, 'output': output.decode(), 'status': status}


if __name__ == '__main__':
    main()
