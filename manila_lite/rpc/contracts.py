"""All contracts of this release."""

from collections.abc import Mapping

from manila_lite.rpc import data, scheduler, share
from manila_lite.rpc.contract import Contract, Durable, work_kinds

ALL: tuple[type[Contract], ...] = tuple(
    found
    for module in (data, scheduler, share)
    for found in vars(module).values()
    if isinstance(found, type)
    and issubclass(found, Contract)
    and found not in (Contract, share.ShareServiceContract)
)

WORK: Mapping[str, Durable] = {
    kind: durable for contract in ALL for kind, durable in work_kinds(contract).items()
}
"""The durable methods of all contracts by kind of work."""
