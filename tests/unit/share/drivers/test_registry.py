import logging

import pytest

from manila_lite import exception
from manila_lite.share.drivers import registry
from manila_lite.share.drivers.btrfs.driver import BtrfsDriver
from manila_lite.share.drivers.dummy.driver import DummyDriver
from manila_lite.share.drivers.local.driver import LocalDriver
from tests.support import entry_points


@pytest.mark.parametrize(
    'name, driver_class',
    [
        ('btrfs', BtrfsDriver),
        ('dummy', DummyDriver),
        ('local', LocalDriver),
        ('manila_lite.share.drivers.local.driver.LocalDriver', LocalDriver),
    ],
)
def test_driver_is_found_by_name_or_path(name, driver_class):
    assert registry.load(name) is driver_class


def test_dummy_driver_of_manila_is_replaced_with_a_warning(caplog):
    caplog.set_level(logging.WARNING)
    name = 'manila.tests.share.drivers.dummy.DummyDriver'
    assert registry.load(name) is DummyDriver
    assert name in caplog.text


def test_drivers_of_installed_packages_are_found(tmp_path, monkeypatch):
    (tmp_path / 'elsewhere_driver.py').write_text(
        'from manila_lite.share.drivers.local.driver import LocalDriver\n'
        'class ElsewhereDriver(LocalDriver):\n    pass\n'
    )
    entry_points.install(
        monkeypatch,
        tmp_path,
        """\
        [manila_lite.share.drivers]
        elsewhere = elsewhere_driver:ElsewhereDriver
        """,
    )
    assert issubclass(registry.load('elsewhere'), LocalDriver)


@pytest.mark.parametrize(
    'name, said',
    [
        ('dumy', 'dummy, local'),
        ('', 'dummy, local'),
        ('no.such.module.Driver', "No module named 'no'"),
        ('manila_lite.share.drivers.local.driver.NoDriver', 'NoDriver'),
        ('manila_lite.share.drivers.local.driver.GIB', 'not a ShareDriver'),
        ('pathlib.Path', 'not a ShareDriver'),
        (
            'manila_lite.share.drivers.base.ShareDriver',
            'lacks create_share, delete_share',
        ),
    ],
)
def test_invalid_driver_is_refused_with_a_reason(name, said):
    with pytest.raises(exception.BadConfiguration) as refused:
        registry.load(name)
    assert f'"{name}"' in str(refused.value)
    assert said in str(refused.value)
