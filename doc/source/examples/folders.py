"""A driver whose shares are directories below one root.

A file beside the data of each share holds its size. The file is written
last and removed first: a share exists if its file exists.
"""

import contextlib
import os
import pathlib
import shutil
import tempfile

from oslo_config import cfg

from manila_lite import exception
from manila_lite.share.drivers import base

GIB = 1024**3
OPTS = [cfg.StrOpt('folders_root', help='Directory that holds the shares.')]


class FolderDriver(base.ShareDriver):
    def __init__(self, *args, **kwargs):
        super().__init__(False, *args, config_opts=[OPTS], **kwargs)
        self._root = pathlib.Path(self.configuration.folders_root)

    def check_for_setup_error(self):
        self._root.mkdir(parents=True, exist_ok=True)

    def create_share(self, context, share, share_server=None):
        (self._place(share) / 'data').mkdir(parents=True, exist_ok=True)
        if not self._size_file(share).exists():
            self._write_size(share, share['size'])
        return [str(self._place(share) / 'data')]

    def delete_share(self, context, share, share_server=None):
        is_there = self._size_file(share).exists()
        self._size_file(share).unlink(missing_ok=True)
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self._place(share))
        if not is_there:
            raise exception.ShareResourceNotFound(share_id=share['id'])

    def extend_share(self, share, new_size, share_server=None):
        if self._size(share) < new_size:
            self._write_size(share, new_size)

    def shrink_share(self, share, new_size, share_server=None):
        if self._size(share) <= new_size:
            return
        files = (self._place(share) / 'data').rglob('*')
        if sum(file.lstat().st_size for file in files) > new_size * GIB:
            raise exception.ShareShrinkingPossibleDataLoss(share_id=share['id'])
        self._write_size(share, new_size)

    def get_share_status(self, share, share_server=None):
        return {'status': 'available', 'size': self._size(share)}

    def _update_share_stats(self, data=None):
        disk = shutil.disk_usage(self._root)
        super()._update_share_stats(
            {
                'storage_protocol': 'NFS',
                'total_capacity_gb': disk.total / GIB,
                'free_capacity_gb': disk.free / GIB,
            }
        )

    def _place(self, share):
        return self._root / share['name']

    def _size_file(self, share):
        return self._place(share) / 'size'

    def _size(self, share):
        try:
            return int(self._size_file(share).read_text())
        except FileNotFoundError:
            raise exception.ShareResourceNotFound(share_id=share['id']) from None

    def _write_size(self, share, size):
        with tempfile.NamedTemporaryFile(
            'w', dir=self._place(share), delete=False
        ) as file:
            file.write(str(size))
        os.replace(file.name, self._size_file(share))
