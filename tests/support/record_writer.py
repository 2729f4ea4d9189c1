"""An NFS client that writes while its share migrates."""

import threading

from tests.support.nfs_client import NfsError
from tests.support.processes import wait_until

RECORD = 8


class Writer:
    """It writes numbered records until it is refused.

    Each is on disk when it is acknowledged.
    """

    def __init__(self, client, path):
        self.acknowledged = 0
        self.error = None
        self._client = client
        self._file = client.open(path, 'records', create=True)
        self._thread = threading.Thread(target=self._write)
        self._thread.start()

    def _write(self):
        try:
            while True:
                data = b'%0*d' % (RECORD, self.acknowledged)
                self._client.write_at(self._file, self.acknowledged * RECORD, data)
                self.acknowledged += 1
        except (NfsError, OSError) as error:
            self.error = error

    def wait_for_more(self):
        before = self.acknowledged
        wait_until(
            lambda: self.error or self.acknowledged > before + 100,
            'more records are acknowledged',
        )
        assert self.error is None

    def join(self):
        """Wait until it has lost the share."""
        self._thread.join(60)
        assert not self._thread.is_alive()

    def read_back(self, data):
        """Return the numbers of as many records as were acknowledged."""
        return [
            int(data[start : start + RECORD]) for start in range(0, len(data), RECORD)
        ][: self.acknowledged]
