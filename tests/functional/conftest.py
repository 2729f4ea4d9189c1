"""The fixture that builds simulated clouds."""

from collections.abc import Callable, Iterator
import contextlib
import typing

import pytest

from tests.support.cloud import Cloud


@pytest.fixture
def build_cloud(tmp_path) -> Iterator[Callable[..., typing.Any]]:
    """`build_cloud(extra_conf, kind=Cloud, **options)` builds a cloud.

    All clouds of one test share a folder.
    """
    with contextlib.ExitStack() as stack:

        def build(extra_conf='', *, kind=Cloud, **options):
            cloud = kind(tmp_path, extra_conf=extra_conf, **options)
            stack.callback(cloud.db.dispose)
            return cloud

        yield build
