"""Which roles the policies mention."""

import pytest

from manila_lite import conf as options
from manila_lite.policies import enforcer


@pytest.fixture
def unknown(tmp_path):
    """`unknown(text, *roles)`: those that rules with this text leave out."""

    def unknown(text, *names):
        policy = tmp_path / 'policy.yaml'
        policy.write_text(text)
        file = tmp_path / 'manila.conf'
        file.write_text(f'[oslo_policy]\npolicy_file = {policy}\n')
        return enforcer.find_unknown(options.new(files=[str(file)]), names)

    return unknown


def test_roles_of_the_defaults_are_known(unknown):
    found = unknown('', 'Admin', 'member', 'reader', 'service', 'Auditor')
    assert found == ['auditor']


@pytest.mark.parametrize(
    'rule', ['role:auditor', 'not role:auditor', 'role:a or (!  or role:AUDITOR)']
)
def test_roles_of_the_operator_are_known(unknown, rule):
    assert unknown(f'"share:get": "{rule}"\n', 'auditor') == []


def test_another_service_may_know_any_role(unknown):
    assert unknown('"share:get": "http://here/%(id)s"\n', 'auditor') == []
