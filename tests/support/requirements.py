"""What tests need of the machine, and what happens without it."""

import os
import typing

import pytest


def missing(reason: str, *, allow_module_level: bool = False) -> typing.NoReturn:
    """Skip the test; fail it instead if CI is set.

    A module that calls this while it is imported says so.
    """
    if os.environ.get('CI'):
        pytest.fail(f'with CI set this is required: {reason}')
    pytest.skip(reason, allow_module_level=allow_module_level)
