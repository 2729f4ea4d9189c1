"""The list of all contracts."""

from manila_lite.rpc import contracts
from manila_lite.rpc.contract import Contract


def _subclasses(base):
    for each in base.__subclasses__():
        yield each
        yield from _subclasses(each)


def test_every_contract_with_methods_is_listed():
    declared = {
        each
        for each in _subclasses(Contract)
        if each.__module__.startswith('manila_lite.') and each.methods
    }
    assert set(contracts.ALL) == declared


def test_work_of_every_topic_is_known_by_its_kind():
    assert {
        'backups.create_backup',
        'placement.create_share_instance',
        'provisioning.extend_share_instance',
    } <= contracts.WORK.keys()
    for kind, durable in contracts.WORK.items():
        assert durable.kind == kind
