"""Compiled rules give the results of oslo.policy, and files are reloaded."""

import dataclasses
import itertools
import types

from oslo_config import cfg
from oslo_policy import policy
import pytest

from manila_lite import context, policies
from manila_lite.policies import compiled, enforcer
from tests.support import sampling
from tests.support.clock import ManualClock

RULES = [rule.name for rule in policies.list_rules()]
OWN, FOREIGN = 'a1', 'b2'


def make_conf(folder, text='', **options):
    """Return a configuration with its policy file, if any, in the folder."""
    conf = cfg.ConfigOpts()
    conf(['--config-dir', str(folder)], default_config_files=[])
    policy.Enforcer(conf)  # registers the options
    for name, value in options.items():
        conf.set_override(name, value, 'oslo_policy')
    if text:
        (folder / 'policy.yaml').write_text(text)
    return conf


def caller(*roles, project_id=OWN, user_id='u1', is_admin=False, **more):
    return context.RequestContext(
        user_id=user_id,
        project_id=project_id,
        roles=list(roles),
        is_admin=is_admin,
        **more,
    )


PERSONAS = {
    'admin': caller('admin', 'member', 'reader', is_admin=True),
    'admin by role alone': caller('admin'),
    'admin by flag alone': caller(is_admin=True),
    'member': caller('member', 'reader'),
    'reader': caller('reader'),
    'shouting reader': caller('READER'),
    'no roles': caller(),
    'service': caller('service', service_roles=['service']),
    'another user': caller('member', 'reader', user_id='u2'),
    'member elsewhere': caller('member', 'reader', project_id=FOREIGN),
    'no project': caller('reader', project_id=None),
    'system admin': caller('admin', project_id=None, system_scope='all'),
    'domain admin': caller('admin', project_id=None, domain_id='d1'),
}
TARGETS = {
    'own': {'project_id': OWN, 'user_id': 'u1', 'size': 1},
    'foreign': {'project_id': FOREIGN, 'user_id': 'u2', 'size': 1},
    'ownerless': {},
    'nobody': {'project_id': None, 'user_id': None},
}
OVERRIDES = """
"share:create": "@"
"share:get": "!"
"share:get_all": "not role:reader"
"share:update": "role:%(project_id)s or user_id:%(user_id)s"
"share:delete": "(role:member and not user_id:u2) or rule:not_there"
"share:extend": "role:member and role:reader and is_admin:False"
"share:shrink": "1:%(size)s"
"share:restore": "'a1':%(project_id)s or None:%(project_id)s"
"share:soft_delete": "project_id:a1"
"share:reset_status": "roles:service or service_roles:service"
"share:force_delete": "x-y:z"
"share:set_public_share": "'x-a1-y':x-%(project_id)s-y"
"message:get": "system:all"
"message:delete": "nonsense:%(project_id)s or roles:%(missing)s"
"message:get_all": [["role:reader", "project_id:%(project_id)s"], "role:x"]
"quota_set:show": "is_admin_project:True"
"our own": "rule:project-member"
"default": "role:member"
"""
OVERRIDDEN = sorted(set(RULES) | {'our own', 'unheard of'})


def oracle(conf):
    """Return oslo.policy itself, loaded with the same rules and files."""
    library = policy.Enforcer(conf)
    library.suppress_default_change_warnings = True
    library.register_defaults(policies.list_rules())
    return library


def assert_equal_answers(conf, names):
    library, ours = oracle(conf), enforcer.Enforcer(conf)
    cases = itertools.product(names, PERSONAS.items(), TARGETS.items())
    for name, (who, creds), (what, target) in sampling.sample(cases, 1200):
        expected = library.enforce(name, target, compiled.credentials(creds))
        assert ours.allows(name, target, creds) == bool(expected), (
            f'{name} asked by {who} for {what}'
        )


@sampling.enumeration
@pytest.mark.parametrize('new', [True, False])
def test_every_default_gives_the_result_of_oslo_policy(tmp_path, new):
    assert_equal_answers(
        make_conf(tmp_path, enforce_new_defaults=new), [*RULES, 'unheard of']
    )


@sampling.enumeration
@pytest.mark.parametrize('new', [True, False])
def test_every_override_gives_the_result_of_oslo_policy(tmp_path, new):
    conf = make_conf(tmp_path, OVERRIDES, enforce_new_defaults=new)
    assert_equal_answers(conf, OVERRIDDEN)


@sampling.enumeration
def test_unknown_rules_follow_the_configured_default_rule(tmp_path):
    conf = make_conf(tmp_path, policy_default_rule='message:get')
    assert_equal_answers(conf, [*RULES, 'unheard of'])


def test_unknown_rules_are_refused_without_a_default_rule(tmp_path):
    conf = make_conf(tmp_path, policy_default_rule='not there')
    assert not enforcer.Enforcer(conf).allows(
        'unheard of', TARGETS['own'], PERSONAS['admin']
    )


@pytest.mark.parametrize(
    'rule, allowed, refused',
    [
        ('share:create', 'member', 'reader'),
        ('share:get', 'reader', 'member elsewhere'),
        ('share:force_delete', 'admin by role alone', 'member'),
        ('share:get_all', 'admin', 'no roles'),
    ],
)
def test_roles_decide(tmp_path, rule, allowed, refused):
    ours = enforcer.Enforcer(make_conf(tmp_path))
    assert ours.allows(rule, TARGETS['own'], PERSONAS[allowed])
    assert not ours.allows(rule, TARGETS['own'], PERSONAS[refused])


@pytest.mark.parametrize('new, allowed', [(True, False), (False, True)])
def test_deprecated_defaults_apply_unless_new_ones_are_enforced(tmp_path, new, allowed):
    ours = enforcer.Enforcer(make_conf(tmp_path, enforce_new_defaults=new))
    assert ours.allows('share:get', TARGETS['own'], PERSONAS['no roles']) is allowed


def test_credentials_are_the_policy_values_of_a_context(tmp_path):
    values = set(PERSONAS['admin'].to_policy_values()) | {'is_admin'}
    assert values == compiled.CREDENTIALS


Row = dataclasses.make_dataclass('Row', ['project_id', 'user_id'])


@pytest.mark.parametrize(
    'target',
    [
        Row(OWN, 'u1'),
        {'project_id': OWN},
        types.MappingProxyType({'project_id': OWN}),
        PERSONAS['member'],
    ],
    ids=['attributes', 'dict', 'mapping', 'context'],
)
def test_targets_have_attributes_or_keys(tmp_path, target):
    ours = enforcer.Enforcer(make_conf(tmp_path))
    assert ours.allows('share:update', target, PERSONAS['member'])
    assert not ours.allows('share:update', target, PERSONAS['member elsewhere'])


def test_a_context_uses_the_enforcer(tmp_path):
    ours = enforcer.Enforcer(make_conf(tmp_path))
    assert caller('reader', enforcer=ours).can('share:get')
    assert not caller('reader', enforcer=ours).can('share:update')


@pytest.mark.parametrize(
    'who, admin',
    [
        ('admin by role alone', True),
        ('admin by flag alone', False),
        ('member', False),
        ('system admin', False),
    ],
)
def test_the_rule_decides_who_is_admin(tmp_path, who, admin):
    ours = enforcer.Enforcer(make_conf(tmp_path))
    assert ours.is_admin(PERSONAS[who]) is admin


def test_admin_rule_may_be_overridden(tmp_path):
    ours = enforcer.Enforcer(make_conf(tmp_path, '"context_is_admin": "role:service"'))
    assert ours.is_admin(PERSONAS['service'])
    assert not ours.is_admin(PERSONAS['admin'])
    assert ours.allows('share:force_delete', {}, PERSONAS['service'])


@pytest.mark.parametrize(
    'text',
    [
        '"share:get": "rule:share:get or role:reader"',
        '{"share:get": "rule:a", "a": "not rule:b", "b": "rule:a"}',
        '{"share:get": "rule:gone", "default": "rule:gone"}',
        '"share:get": "role:%(project_id)"',
        '"share:get": "user_id:100%"',
        '"share:get": "1x:1x"',
        '"share:get": "x-%(project_id)s:x-a1"',
        '"share:get": "user_id.x:u"',
        '"share:get": "role:reader or"',
    ],
)
def test_invalid_rules_deny(tmp_path, text):
    ours = enforcer.Enforcer(make_conf(tmp_path, text))
    assert not ours.allows('share:get', TARGETS['own'], PERSONAS['reader'])
    assert ours.allows('message:get', TARGETS['own'], PERSONAS['reader'])


class OnTuesdays(policy.Check):
    """A check that another package might register."""

    asked = []

    def __call__(self, target, creds, enforcer, current_rule=None):
        self.asked.append((target, creds['user_id'], current_rule))
        return target['project_id'] == self.match % target


@pytest.fixture
def _own_check(monkeypatch):
    monkeypatch.setitem(policy._checks.registered_checks, 'tuesday', OnTuesdays)
    monkeypatch.setattr(OnTuesdays, 'asked', [])


@pytest.mark.usefixtures('_own_check')
def test_unknown_checks_are_evaluated_by_oslo_policy(tmp_path):
    ours = enforcer.Enforcer(
        make_conf(tmp_path, '"share:get": "role:reader and tuesday:a1"')
    )
    assert ours.allows('share:get', Row(OWN, 'u1'), PERSONAS['reader'])
    assert OnTuesdays.asked == [
        ({'project_id': OWN, 'user_id': 'u1'}, 'u1', 'share:get')
    ]
    assert not ours.allows('share:get', Row(FOREIGN, 'u1'), PERSONAS['reader'])
    assert not ours.allows('share:get', Row(OWN, 'u1'), PERSONAS['no roles'])
    assert ours.allows('share:get_all', Row(OWN, 'u1'), PERSONAS['reader'])


@pytest.mark.usefixtures('_own_check')
def test_unknown_checks_get_rows_as_dicts(tmp_path):
    row = types.SimpleNamespace(_asdict=lambda: {'project_id': OWN, 'n': 1})
    ours = enforcer.Enforcer(make_conf(tmp_path, '"a": "tuesday:a1"'))
    assert ours.allows('a', row, PERSONAS['reader'])
    assert OnTuesdays.asked == [({'project_id': OWN, 'n': 1}, 'u1', 'a')]


@pytest.mark.parametrize('scheme', ['http', 'https'])
def test_remote_checks_stay_registered(tmp_path, scheme):
    rule = policy.RuleDefault('a', f'{scheme}://authority/%(project_id)s')
    assert rule.check.kind == scheme
    assert 'oslo_policy._external' in type(rule.check).__module__


class ReloadingEnforcer:
    """An enforcer with its policy file and its clock."""

    def __init__(self, folder, text='', **options):
        self.file = folder / 'policy.yaml'
        self.clock = ManualClock()
        conf = make_conf(folder, text, **options)
        self.enforcer = enforcer.Enforcer(conf, clock=self.clock)

    def wait(self, seconds=1.0):
        self.clock.now += seconds

    def readers_may_delete(self):
        return self.enforcer.allows('share:delete', TARGETS['own'], PERSONAS['reader'])


LOOSE, TIGHT = '"share:delete": "@"', '"share:delete": "!  "'


def test_new_file_is_read_within_a_second(tmp_path):
    reloading = ReloadingEnforcer(tmp_path)
    assert not reloading.readers_may_delete()
    reloading.file.write_text(LOOSE)
    reloading.wait(0.9)
    assert not reloading.readers_may_delete()
    reloading.wait(0.1)
    assert reloading.readers_may_delete()


@pytest.mark.facts('new-secure-rbac')
def test_changed_file_is_read_again(tmp_path):
    reloading = ReloadingEnforcer(tmp_path, LOOSE)
    assert reloading.readers_may_delete()
    reloading.file.write_text(TIGHT)
    reloading.wait()
    assert not reloading.readers_may_delete()


@pytest.mark.facts('add-policy-in-code')
def test_a_rule_removed_from_the_file_has_its_default_again(tmp_path):
    reloading = ReloadingEnforcer(tmp_path, LOOSE)
    reloading.file.write_text('{}')
    reloading.wait()
    assert not reloading.readers_may_delete()


@pytest.mark.facts('add-policy-in-code')
def test_removed_file_leaves_the_defaults(tmp_path):
    reloading = ReloadingEnforcer(tmp_path, LOOSE)
    reloading.file.unlink()
    reloading.wait()
    assert not reloading.readers_may_delete()


def test_files_in_policy_dirs_override_the_policy_file(tmp_path):
    folder = tmp_path / 'policy.d'
    folder.mkdir()
    reloading = ReloadingEnforcer(tmp_path, LOOSE, policy_dirs=[str(folder)])
    assert reloading.readers_may_delete()
    (folder / 'tight.yaml').write_text(TIGHT)
    reloading.wait()
    assert not reloading.readers_may_delete()


BROKEN = ['"share:delete": "@', '- share:delete', '"share:delete": 5', '\x00']


@pytest.mark.parametrize('text', BROKEN)
def test_an_invalid_file_keeps_the_old_rules_and_is_logged_once(tmp_path, caplog, text):
    reloading = ReloadingEnforcer(tmp_path, LOOSE)
    reloading.file.write_text(text)
    for _ in range(3):
        reloading.wait()
        assert reloading.readers_may_delete()
    assert caplog.text.count('Keeping the current policy rules') == 1
    reloading.file.write_text(TIGHT)
    reloading.wait()
    assert not reloading.readers_may_delete()


@pytest.mark.parametrize('text', BROKEN)
def test_an_invalid_file_at_the_start_is_an_error(tmp_path, text):
    with pytest.raises(cfg.ConfigFileParseError, match='policy.yaml'):
        enforcer.Enforcer(make_conf(tmp_path, text))


def test_policy_file_may_be_given(tmp_path):
    other = tmp_path / 'other.yaml'
    other.write_text(LOOSE)
    ours = enforcer.Enforcer(make_conf(tmp_path, TIGHT), str(other))
    assert ours.allows('share:delete', TARGETS['own'], PERSONAS['reader'])
