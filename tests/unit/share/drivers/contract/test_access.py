import pytest

from manila_lite import exception
from manila_lite.share.drivers import base
from manila_lite.share.drivers.contract.configuration import Configuration
from tests.drivers.driver_harness import CTX, DriverHarness

make = DriverHarness('none', configure=lambda: None)
SHARE = make.share()
ONE, TWO, THREE = (make.rule(SHARE, f'10.0.0.{i}') for i in range(3))


class SilentDriver(base.ShareDriver):
    """A driver without access rules."""

    def create_share(self, context, share, share_server=None):
        return 'path'

    def delete_share(self, context, share, share_server=None):
        return None


class OlderDriver(SilentDriver):
    """A driver with allow_access and deny_access that can fail."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.heard = []
        self.errors = {}

    def allow_access(self, context, share, access, share_server=None):
        self._hear('allow', access)

    def deny_access(self, context, share, access, share_server=None):
        self._hear('deny', access)

    def _hear(self, verb, rule):
        self.heard.append((verb, rule))
        if (verb, rule) in self.errors:
            raise self.errors[verb, rule]


class NewerDriver(SilentDriver):
    reply = None

    def update_access(
        self,
        context,
        share,
        access_rules,
        add_rules,
        delete_rules,
        update_rules,
        share_server=None,
    ):
        self.lists = [access_rules, add_rules, delete_rules, update_rules]
        return self.reply


def start(driver_class):
    return driver_class(
        False,
        configuration=Configuration.from_values(
            {'driver_handles_share_servers': False}
        ),
    )


def test_rule_has_its_id_by_both_names():
    assert ONE['id'] == ONE['access_id'] == ONE.access_id
    assert dict(ONE)['access_level'] == 'rw'


@pytest.mark.parametrize(
    'reply, expected',
    [
        (None, {}),
        ({}, {}),
        ({ONE.id: None}, {ONE.id: {}}),
        ({ONE.id: {'access_key': 'k'}}, {ONE.id: {'access_key': 'k'}}),
    ],
)
def test_replies_are_normalised(reply, expected):
    driver = start(NewerDriver)
    driver.reply = reply
    assert driver.apply_access(CTX, SHARE, (ONE,), add_rules=(ONE,)) == expected
    assert driver.lists == [[ONE], [ONE], [], []]


def test_older_driver_denies_before_it_allows():
    driver = start(OlderDriver)
    assert driver.apply_access(CTX, SHARE, [ONE, THREE], [ONE], [TWO], [THREE]) == {}
    assert driver.heard == [
        ('deny', TWO),
        ('deny', THREE),
        ('allow', THREE),
        ('allow', ONE),
    ]


def test_older_driver_gets_all_rules_if_nothing_changed():
    driver = start(OlderDriver)
    driver.errors['allow', ONE] = exception.ShareAccessExists(
        access_type='ip', access='10.0.0.0'
    )
    assert driver.apply_access(CTX, SHARE, [ONE, TWO]) == {}
    assert driver.heard == [('allow', ONE), ('allow', TWO)]


@pytest.mark.parametrize(
    'error',
    [
        exception.ShareBackendException(msg='no'),
        exception.InvalidShareAccess(reason='no'),
        exception.InvalidShareAccessLevel(level='no'),
    ],
)
def test_failed_rule_is_reported_and_does_not_affect_others(error):
    driver = start(OlderDriver)
    driver.errors['allow', ONE] = error
    assert driver.apply_access(CTX, SHARE, [ONE, TWO], [ONE, TWO]) == {
        ONE.id: {'state': 'error'}
    }
    assert driver.heard[-1] == ('allow', TWO)


def test_level_is_unchanged_if_denying_it_failed():
    driver = start(OlderDriver)
    driver.errors['deny', ONE] = exception.ShareBackendException(msg='no')
    assert driver.apply_access(CTX, SHARE, [ONE], (), (), [ONE]) == {
        ONE.id: {'state': 'error'}
    }
    assert driver.heard == [('deny', ONE)]


def test_driver_without_access_rules_fails_if_there_is_a_rule():
    driver = start(SilentDriver)
    assert driver.apply_access(CTX, SHARE, []) == {}
    with pytest.raises(NotImplementedError):
        driver.apply_access(CTX, SHARE, [ONE])
