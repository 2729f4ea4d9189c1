"""Sizes of what is managed, by what it holds and by what is requested."""

import pytest

from manila_lite.share.drivers.space import GIB, managed_size


@pytest.mark.parametrize(
    'size, used, requested, managed',
    [
        (3, 0, None, 3),
        (0, 0, None, 1),
        (1, GIB, None, 1),
        (1, GIB + 1, None, 2),
        (1, 0, '4', 4),
        (3, 0, '1', 1),
        (1, 2 * GIB, '2', 2),
    ],
)
def test_managed_size_holds_the_content(size, used, requested, managed):
    assert managed_size(size, used, requested) == managed


@pytest.mark.parametrize('requested', ['1', '0', '-2', '2.0', 'all', ''])
def test_requested_size_that_does_not_hold_the_content_is_refused(requested):
    with pytest.raises(ValueError, match='GiB'):
        managed_size(1, GIB + 1, requested)
