"""What the parameters of constructors are given, by their annotations."""

import dataclasses
from typing import Annotated

import pytest

from manila_lite import conf as options
from manila_lite.cmd.build.process import Process
from manila_lite.cmd.build.registry import Registry
from manila_lite.conf import Option, seconds
from manila_lite.coordination import Coordinator, NullCoordinator
from manila_lite.db.session import Database
from manila_lite.quota.limits import DefaultLimits
from manila_lite.rpc.contract import Client
from manila_lite.rpc.share import AccessRpc


@dataclasses.dataclass
class Inner:
    db: Database


@dataclasses.dataclass
class Outer:
    inner: Inner
    limits: DefaultLimits
    locks: Coordinator | NullCoordinator
    access: Client[AccessRpc]
    down_time: Annotated[float, Option('service_down_time')]
    grace: Annotated[object, Option('recovery.question_timeout', seconds)]
    batch: int = 7


@pytest.fixture
def process():
    return Process(options.new([]), Database('sqlite://'))


@pytest.fixture
def registry(process):
    return Registry(process)


def test_parameters_get_what_their_annotations_name(process, registry):
    built = registry.get(Outer)
    assert built.inner.db is process.db
    assert built.limits is process.limits()
    assert built.locks is process.locks
    assert built.access.contract is AccessRpc
    assert built.down_time == process.conf.service_down_time
    assert built.grace == seconds(process.conf.recovery.question_timeout)
    assert built.batch == 7


def test_every_class_is_built_once(registry):
    assert registry.get(Outer).inner is registry.get(Inner)


def test_what_is_given_by_name_comes_first(registry):
    assert registry.get(Outer, down_time=1.5, batch=9).down_time == 1.5
    assert registry.get(Outer).batch == 9


def test_objects_of_a_back_end_are_found_by_their_class(process):
    inner = Inner(process.db)
    assert Registry(process, {Inner: inner}).get(Outer).inner is inner


def test_an_unshared_class_is_built_for_each_parameter(process):
    registry = Registry(process, unshared=[Inner])
    assert registry.get(Outer).inner is not registry.get(Inner)


def test_a_name_that_the_constructor_does_not_take_is_refused(registry):
    with pytest.raises(TypeError, match="Inner takes no \\['database'\\]"):
        registry.get(Inner, database=None)


def test_a_parameter_for_which_there_is_nothing_is_refused(registry):
    @dataclasses.dataclass
    class Unknown:
        size: int

    with pytest.raises(TypeError, match='nothing is given as size of Unknown'):
        registry.get(Unknown)
