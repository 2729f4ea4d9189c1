import ast
import dataclasses
import inspect
import textwrap
import typing

import pytest

from manila_lite import exception
from manila_lite.share.drivers import registry
from manila_lite.share.drivers.contract.interfaces import Arguments
from manila_lite.share.drivers.delegation import Delegation
from tests.drivers.driver_harness import CTX
from tests.drivers.plain_driver import PlainDriver, configuration


class Shares:
    """A part that counts its calls."""

    def __init__(self):
        self.calls = []

    def extend_share(self, new_size):
        """Extend it, says the part."""
        self.calls.append(new_size)
        if new_size < 0:
            raise exception.ShareBackendException(msg='too small')
        return len(self.calls)

    def ensure_share(self, context, share, share_server=None):
        raise AssertionError('the driver has its own')

    def provisioned_sizes(self):
        return []


def _refuse(driver):
    if driver.refuses:
        raise exception.StorageUnavailable(reason='not now')


@Delegation(_refuse, mended=lambda driver, error: len(driver.shares.calls) == 1)(
    'shares'
)
class Driver(PlainDriver):
    shares: Shares

    def __init__(self):
        super().__init__(configuration=configuration())
        self.shares = Shares()
        self.refuses = False

    def ensure_share(self, context, share, share_server=None):
        return ['own']


def test_declared_method_of_a_part_is_one_of_the_driver():
    assert Driver().extend_share(None, 2) == 1
    assert Driver.extend_share.__doc__ == 'Extend it, says the part.'


def test_method_is_called_as_its_interface_declares():
    driver = Driver()
    assert inspect.signature(Driver.extend_share) == inspect.signature(
        PlainDriver.extend_share
    )
    assert driver.extend_share(share=None, new_size=2, share_server={}) == 1
    with pytest.raises(TypeError, match='new_size'):
        driver.extend_share(None)


def test_part_uses_no_parameter_that_its_interface_does_not_declare():
    class Part:
        def extend_share(self, share, size): ...

    class Undeclared(PlainDriver):
        part: Part

    with pytest.raises(TypeError, match='does not declare: size'):
        Delegation()('part')(Undeclared)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Resizing(Arguments):
    share: object
    new_size: int
    unheard_of: str = 'default'


def test_arguments_of_a_call_are_one_value_for_a_part():
    class Part:
        def extend_share(self, resizing: Resizing):
            return resizing

    class Valued(PlainDriver):
        part: Part

        def __init__(self):
            super().__init__(configuration=configuration())
            self.part = Part()

    found = Delegation()('part')(Valued)().extend_share('share', new_size=3)
    assert found == Resizing(share='share', new_size=3, unheard_of='default')


def test_value_needs_no_argument_that_is_not_declared():
    class Part:
        def get_share_status(self, resizing: Resizing): ...

    class Undeclared(PlainDriver):
        part: Part

    with pytest.raises(TypeError, match='does not declare: new_size'):
        Delegation()('part')(Undeclared)


def test_named_method_has_to_be_declared():
    class Named(PlainDriver):
        shares: Shares

    with pytest.raises(AttributeError, match='provisioned_sizes'):
        Delegation()('shares.provisioned_sizes')(Named)


def test_driver_keeps_what_it_defines_itself():
    assert Driver().ensure_share(CTX, None) == ['own']


def test_method_that_no_interface_declares_stays_in_the_part():
    assert not hasattr(Driver, 'provisioned_sizes')


def test_refused_call_does_not_reach_the_part():
    driver = Driver()
    driver.refuses = True
    with pytest.raises(exception.StorageUnavailable):
        driver.extend_share(None, 2)
    assert driver.shares.calls == []


def test_call_is_repeated_once_after_its_error_was_mended():
    driver = Driver()
    with pytest.raises(exception.ShareBackendException):
        driver.extend_share(None, -1)
    assert driver.shares.calls == [-1, -1]


@pytest.mark.parametrize('name', ['btrfs', 'cephfs', 'dummy', 'local'])
def test_parts_of_a_driver_take_what_its_interfaces_declare(name):
    """mypy does not see that the driver calls them."""
    driver = registry.load(name)
    delegated = list(_delegated(driver))
    assert delegated
    wrong = [
        (method.__qualname__, parameter)
        for declared, method in delegated
        for parameter, type in _types(method)
        if typing.get_type_hints(declared).get(parameter, type) != type
    ]
    assert wrong == []


@pytest.mark.parametrize('name', ['btrfs', 'cephfs', 'dummy', 'local'])
def test_parts_of_a_driver_use_the_parameters_that_they_name(name):
    unused = [
        (method.__qualname__, parameter)
        for _, method in _delegated(registry.load(name))
        for parameter in inspect.signature(method).parameters
        if parameter not in {'self', *_names_in(method)}
    ]
    assert unused == []


def _names_in(method):
    """Return the names that the body of a method reads."""
    (function,) = ast.parse(textwrap.dedent(inspect.getsource(method))).body
    return {
        node.id
        for statement in function.body
        for node in ast.walk(statement)
        if isinstance(node, ast.Name)
    }


def _delegated(driver):
    """Yield what an interface declares, and the method of a part for it."""
    for part in inspect.get_annotations(driver).values():
        for name, method in inspect.getmembers(part, inspect.isfunction):
            found = getattr(driver, name, None)
            if hasattr(found, '__wrapped__'):
                yield inspect.unwrap(found), method


def _types(method):
    """Yield the parameters of a method and their types, one by one."""
    for parameter, type in typing.get_type_hints(method).items():
        if inspect.isclass(type) and issubclass(type, Arguments):
            yield from typing.get_type_hints(type).items()
        elif parameter != 'return':
            yield parameter, type
