from oslo_config import cfg
import pytest

import manila_lite.conf
from manila_lite.share.drivers.contract.configuration import Configuration


@pytest.fixture
def from_file(tmp_path):
    file = tmp_path / 'service.conf'
    file.write_text('[fast]\nshare_backend_name = named\ncolour = red\n')
    return Configuration(manila_lite.conf.new(files=[str(file)]), 'fast')


def test_values_of_the_section_are_read(from_file):
    assert from_file.config_group == 'fast'
    assert from_file.share_backend_name == 'named'
    assert from_file.safe_get('share_backend_name') == 'named'


def test_unset_options_have_their_defaults(from_file):
    assert from_file.max_over_subscription_ratio == 20.0
    assert from_file.safe_get('driver_handles_share_servers') is None


def test_unknown_option_is_an_error_or_none(from_file):
    assert from_file.safe_get('colour') is None
    with pytest.raises(cfg.NoSuchOptError):
        _ = from_file.colour


def test_driver_makes_its_own_options_known(from_file):
    from_file.append_config_values(
        [cfg.StrOpt('colour'), cfg.IntOpt('weight', default=7)]
    )
    assert from_file.colour == 'red'
    assert from_file.safe_get('weight') == 7


def test_plain_values_override_defaults():
    configuration = Configuration.from_values(
        {'share_backend_name': 'named', 'colour': 'blue'}, group='fast'
    )
    assert configuration.config_group == 'fast'
    assert configuration.share_backend_name == 'named'
    assert configuration.safe_get('colour') == 'blue'
    assert configuration.max_over_subscription_ratio == 20.0


def test_configurations_do_not_share_plain_values():
    Configuration.from_values({'share_backend_name': 'named'})
    assert Configuration.from_values({}).share_backend_name is None


def test_overridden_options_leave_the_others_unchanged(from_file):
    from_file.override({'share_backend_name': 'first'})
    from_file.override({'driver_handles_share_servers': True})
    assert from_file.share_backend_name == 'first'
    assert from_file.driver_handles_share_servers is True


def test_other_back_ends_are_found_without_a_file():
    conf = manila_lite.conf.new()
    conf.set_override('enabled_share_backends', ['fast', 'large'])
    for name in ('fast', 'large'):
        manila_lite.conf.register_backend(conf, name)
        conf.set_override('share_driver', f'driver-of-{name}', name)
    fast = Configuration(conf, 'fast')
    assert fast.for_backend('large').share_driver == 'driver-of-large'
    assert fast.for_backend('slow') is None
