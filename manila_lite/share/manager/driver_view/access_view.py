"""Access rules of a share instance as its driver is shown them."""

from collections.abc import Callable, Iterable
import ipaddress
import typing

from manila_lite.share.drivers.base import AccessRuleForDriver
from manila_lite.share.drivers.base import ShareDriver

READ_ONLY = 'ro'


class RuleView(typing.NamedTuple):
    """A rule on an instance, and what a driver is shown of it.

    One that is `hidden` is kept from the driver, who could not make
    anything of it.
    """

    id: str
    mapping_id: str
    state: str
    hidden: bool
    shown: AccessRuleForDriver


def rule_views(
    instance: typing.Any,
    rows: Iterable[typing.Any],
    driver: ShareDriver,
    *,
    state_of: Callable[[typing.Any], str] = lambda row: row.state,
    read_only: bool | None = None,
) -> list[RuleView]:
    """The rules of an instance: `rows` as `access.of_instance` reads them.

    The one place where the cast to read-only is honoured; `read_only` is
    what it is to be in place of what it is.
    """
    if read_only is None:
        read_only = instance.cast_rules_to_readonly
    hides_ipv6 = (
        instance.share_proto.upper() == 'NFS' and not driver.ipv6_implemented
    )
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


def _is_ipv6(row: typing.Any) -> bool:
    return (
        row.access_type == 'ip'
        and ipaddress.ip_network(row.access_to, strict=False).version == 6
    )
