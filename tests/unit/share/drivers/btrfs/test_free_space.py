"""What clients of CIFS shares see of their size."""

import pytest

from manila_lite.share.drivers.btrfs.free_space import free_space


def test_path_in_no_share_is_an_error(tmp_path):
    """Such as that of a share whose pool is not mounted."""
    with pytest.raises(NotADirectoryError, match=str(tmp_path)):
        free_space(tmp_path)
