"""Access rules of a share instance in the form given to its driver."""

from collections.abc import Callable, Iterable
import ipaddress
import typing

from manila_lite.db.rows import AccessRuleRow, InstanceRow
from manila_lite.share.drivers.base import AccessRuleForDriver, ShareDriver

READ_ONLY = 'ro'


class RuleView(typing.NamedTuple):
    """A rule on an instance, and its form for the driver.

    A `hidden` rule is not given to the driver, which could not handle it.
    """

    id: str
    mapping_id: str
    state: str
    hidden: bool
    for_driver: AccessRuleForDriver


def rule_views(
    instance: InstanceRow,
    rows: Iterable[AccessRuleRow],
    driver: ShareDriver,
    *,
    state_of: Callable[[AccessRuleRow], str] = lambda row: row.state,
    read_only: bool | None = None,
) -> list[RuleView]:
    """Return the rules of an instance.

    `rows` come from `share_rules.list_for_instance`. This is the only
    place that applies the cast to read-only; `read_only` overrides the
    flag of the instance.
    """
    if read_only is None:
        read_only = instance.cast_rules_to_readonly
    hides_ipv6 = instance.share_proto.upper() == 'NFS' and not driver.ipv6_implemented
    return [
        RuleView(
            row.id,
            row.mapping_id,
            state_of(row),
            hides_ipv6 and _is_ipv6(row),
            AccessRuleForDriver(
                id=row.id,
                share_id=row.share_id,
                access_type=row.access_type,
                access_to=row.access_to,
                access_level=READ_ONLY if read_only else row.access_level,
                access_key=row.access_key,
                state=state_of(row),
            ),
        )
        for row in rows
    ]


def _is_ipv6(row: AccessRuleRow) -> bool:
    return (
        row.access_type == 'ip'
        and ipaddress.ip_network(row.access_to, strict=False).version == 6
    )
