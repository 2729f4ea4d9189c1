"""Filters by the capabilities of a pool."""

from collections.abc import Callable, Mapping, Sequence
import functools
import operator

from manila_lite import exception
from manila_lite.host import Host
from manila_lite.scheduler import expressions
from manila_lite.scheduler.expressions import to_bool, to_number
from manila_lite.scheduler.filters import Filter, Reason
from manila_lite.scheduler.pools import Pool
from manila_lite.scheduler.request import PlacementRequest

Test = Callable[[object], bool]

# Extra specs without a scope that are for the API, not for the scheduler.
NOT_CAPABILITIES = frozenset({'availability_zones', 'default_qos_type'})
# Capabilities that have a default when a driver does not report them.
WHEN_ABSENT = {'thin_provisioning': False}

_NUMBERS: dict[str, Callable[[float, float], bool]] = {
    '=': operator.ge,  # published: "equal to or greater than"
    '==': operator.eq,
    '!=': operator.ne,
    '>=': operator.ge,
    '<=': operator.le,
}
_STRINGS: dict[str, Callable[[str, str], bool]] = {
    's==': operator.eq,
    's!=': operator.ne,
    's<': operator.lt,
    's<=': operator.le,
    's>': operator.gt,
    's>=': operator.ge,
    '<in>': operator.contains,
}


def mismatch_reason(pool: Pool, key: str, wanted: str) -> str | None:
    """Return why the pool does not match the extra spec; None if it does."""
    path = _path(key)
    if path is None:
        return None
    capability = _capability(pool, path)
    if capability is None:
        return f'it does not report {key}'
    if matches(capability, wanted):
        return None
    return Reason(
        f'{key} is {capability!r}, wanted {wanted!r}',
        f'{key} differs, wanted {wanted!r}',
    )


def matches(capability: object, wanted: str) -> bool:
    """Whether the capability, or any value of a list, matches.

    As published, upper and lower case are the same in texts.
    """
    test = _test(wanted)
    if isinstance(capability, (list, tuple)):
        return any(test(value) for value in capability)
    return test(capability)


@functools.lru_cache(maxsize=1024)
def _path(key: str) -> tuple[str, ...] | None:
    """Return the path of the capability; None if the spec has none."""
    scope, *rest = key.split(':')
    if scope == 'capabilities' and rest:
        return tuple(rest)
    return None if rest or key in NOT_CAPABILITIES else (key,)


def _capability(pool: Pool, path: tuple[str, ...]) -> object:
    first, *rest = path
    found = pool.capabilities.get(first, WHEN_ABSENT.get(first))
    for part in rest:
        if not isinstance(found, Mapping):
            return None
        found = found.get(part)
    return found


@functools.lru_cache(maxsize=1024)
def _test(wanted: str) -> Test:
    wanted = wanted.strip().casefold()
    sign, _, operand = wanted.partition(' ')
    operand = operand.strip()
    if sign in _NUMBERS:
        return _compare_numbers(_NUMBERS[sign], to_number(operand))
    if sign in _STRINGS:
        compare = _STRINGS[sign]
        return lambda value: bool(operand) and compare(str(value).casefold(), operand)
    if sign == '<is>':
        return _is(to_bool(operand))
    if sign == '<or>':
        values = filter(None, map(str.strip, wanted.split('<or>')))
        tests = [_equals(v) for v in values]
        return lambda value: any(test(value) for test in tests)
    return _equals(wanted)


def _compare_numbers(
    compare: Callable[[float, float], bool], operand: float | None
) -> Test:
    def test(value: object) -> bool:
        left = to_number(value)
        return left is not None and operand is not None and compare(left, operand)

    return test


def _is(operand: bool | None) -> Test:
    return lambda value: operand is not None and to_bool(value) is operand


def _equals(wanted: str) -> Test:
    as_truth, as_number = to_bool(wanted), to_number(wanted)

    def test(value: object) -> bool:
        if isinstance(value, bool):
            return value is as_truth
        if isinstance(value, (int, float)):
            return value == as_number
        # Strings are compared as strings: version '1.10' is not '1.1'.
        return str(value).casefold() == wanted

    return test


class CapabilitiesFilter(Filter):
    """Require a matching capability for every extra spec.

    Extra specs of other scopes are ignored. `share_backend_name` and
    `replication_type` are included; their own filters are for filter
    lists without this one.
    """

    detail = '008'
    repeatable = True

    def rejection_reason(self, pool: Pool, request: PlacementRequest) -> str | None:
        return pool.capabilities.cached(request.demand, _mismatch, pool, request)

    def rejection_reasons(
        self, pools: Sequence[Pool], request: PlacementRequest
    ) -> list[str | None]:
        key = request.demand
        return [
            pool.capabilities.cached(key, _mismatch, pool, request) for pool in pools
        ]


def _mismatch(pool: Pool, request: PlacementRequest) -> str | None:
    """Return the first extra spec that the pool does not match."""
    # A share group has no protocol of its own.
    if request.share_proto and request.spec('storage_protocol') is None:
        wanted = f'<in> {request.share_proto}'
        reason = mismatch_reason(pool, 'storage_protocol', wanted)
        if reason is not None:
            return reason
    for key, wanted in request.extra_specs.items():
        reason = mismatch_reason(pool, key, wanted)
        if reason is not None:
            return reason
    return None


class ShareBackendNameFilter(Filter):
    """Require the back end name in the extra spec `share_backend_name`."""

    detail = '008'
    repeatable = True

    def applies(self, request: PlacementRequest) -> bool:
        return request.spec('share_backend_name') is not None

    def rejection_reason(self, pool: Pool, request: PlacementRequest) -> str | None:
        wanted = request.spec('share_backend_name')
        if wanted is None:
            return None
        return mismatch_reason(pool, 'share_backend_name', wanted)


class ShareReplicationFilter(Filter):
    """Require the replication type in the extra spec, within a domain.

    A further replica goes to a pool of the same replication domain that
    has no replica of the share yet (share replication design).
    """

    detail = '014'
    repeatable = True

    def applies(self, request: PlacementRequest) -> bool:
        return request.spec('replication_type') is not None

    def rejection_reason(self, pool: Pool, request: PlacementRequest) -> str | None:
        wanted = request.spec('replication_type')
        if wanted is None:
            return None
        unmet = mismatch_reason(pool, 'replication_type', wanted)
        if unmet is not None:
            return unmet
        domain = pool.capabilities.get('replication_domain')
        if not domain:
            return 'it reports no replication_domain'
        if pool.host in request.replica_hosts:
            return 'it already has a replica of the share'
        if request.replica_hosts and domain != request.replication_domain:
            return _other_domain(domain, 'active replica', request)
        return None


class CreateFromSnapshotFilter(Filter):
    """Require a pool that can create a share from the source snapshot.

    Back ends of one replication domain can copy from each other.
    """

    detail = '016'
    repeatable = True

    def applies(self, request: PlacementRequest) -> bool:
        return request.from_snapshot

    def rejection_reason(self, pool: Pool, request: PlacementRequest) -> str | None:
        if not request.from_snapshot:
            return None
        return mismatch_reason(
            pool, 'create_share_from_snapshot_support', '<is> True'
        ) or _out_of_reach(pool, request)


def _out_of_reach(pool: Pool, request: PlacementRequest) -> str | None:
    """Return why the pool cannot reach the snapshot; None if it can."""
    if (
        request.host is None
        or pool.service_host == Host.parse(request.host).service_host
    ):
        return None
    domain = pool.capabilities.get('replication_domain')
    if domain and domain == request.replication_domain:
        return None
    return _other_domain(domain, 'snapshot', request)


def _other_domain(domain: object, subject: str, request: PlacementRequest) -> Reason:
    wanted = f'that of the {subject} {request.replication_domain}'
    return Reason(
        f'its replication domain is {domain}, {wanted}',
        f'its replication domain differs, {wanted}',
    )


class DriverFilter(Filter):
    """Require the pool's `filter_function`, if reported, to be true."""

    detail = '010'
    circumstantial = True
    repeatable = True

    def rejection_reason(self, pool: Pool, request: PlacementRequest) -> str | None:
        function = pool.capabilities.get('filter_function')
        if function is None:
            return None
        try:
            value = expressions.evaluate(
                str(function), expressions.names_for(pool, request)
            )
        except exception.InvalidExpression as error:
            return error.msg
        if expressions.to_bool(value):
            return None
        return f'its filter function {function!r} returns {value!r}'

    def rejection_reasons(
        self, pools: Sequence[Pool], request: PlacementRequest
    ) -> list[str | None]:
        return [
            None
            if pool.capabilities.get('filter_function') is None
            else self.rejection_reason(pool, request)
            for pool in pools
        ]
