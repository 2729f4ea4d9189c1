"""All filters but capacity: which pools pass, and why others do not."""

import pytest

from manila_lite.scheduler.filters.capabilities import (
    CapabilitiesFilter,
    CreateFromSnapshotFilter,
    DriverFilter,
    ShareBackendNameFilter,
    ShareReplicationFilter,
)
from manila_lite.scheduler.filters.places import (
    AffinityFilter,
    AntiAffinityFilter,
    AvailabilityZoneFilter,
    IgnoreAttemptedHostsFilter,
    OnlyHostFilter,
    RetryFilter,
    ServiceUp,
)
from tests.unit.scheduler.builders import pool, request

HERE, BACKEND = 'alpha@gold#one', 'alpha@gold'
ELSEWHERE = 'alpha@gold#two'


def specs(**values):
    return {'extra_specs': values}


def caps(**values):
    return {'capabilities': values}


# fmt: off
CASES = [
    # filter, values of the pool, values of the request, reason
    (ServiceUp, {}, {}, None),
    (ServiceUp, {'service_up': False}, {}, 'its service is down'),
    (ServiceUp, {'service_up': False, 'service_heartbeat_at': 1.8e9}, {},
     'its service is down since 2027-01-15 08:00 UTC'),
    (ServiceUp, {'service_up': False, 'service_health': 'No disk.'}, {},
     'its back end is down: No disk'),
    (ServiceUp, {'service_enabled': False}, {}, 'its service is disabled'),

    (AvailabilityZoneFilter, {}, {}, None),
    (AvailabilityZoneFilter, {'zone': None}, {}, None),
    (AvailabilityZoneFilter, {}, {'availability_zones': ('a', 'nova')}, None),
    (AvailabilityZoneFilter, {}, {'availability_zones': ('a', 'b')},
     'it is in zone nova, wanted a or b'),
    (AvailabilityZoneFilter, {'zone': None}, {'availability_zones': ('a',)},
     'it is in zone None, wanted a'),
    (AvailabilityZoneFilter, {}, {'subnets': {None: 1}}, None),
    (AvailabilityZoneFilter, {}, {'subnets': {'nova': 1, None: 2}}, None),
    (AvailabilityZoneFilter, {}, {'subnets': {'moon': 1}},
     'the share network has no subnet for zone nova'),
    (AvailabilityZoneFilter, {}, {'subnets': {}},
     'the share network has no subnet for zone nova'),
    (AvailabilityZoneFilter, {}, {'subnets': {'nova': 2, None: 1}},
     'the share network has 2 subnets for zone nova, and it does not report '
     'share_server_multiple_subnet_support'),
    (AvailabilityZoneFilter,
     caps(share_server_multiple_subnet_support=True),
     {'subnets': {None: 3}}, None),

    (OnlyHostFilter, {}, {}, None),
    (OnlyHostFilter, {}, {'only_host': HERE}, None),
    (OnlyHostFilter, {}, {'only_host': BACKEND}, None),
    (OnlyHostFilter, {}, {'only_host': ELSEWHERE},
     f'only_host is {ELSEWHERE}'),
    (OnlyHostFilter, {}, {'only_host': 'alpha'},
     'only_host is alpha'),

    (AffinityFilter, {}, {}, None),
    (AffinityFilter, {}, {'same_host': frozenset({HERE, ELSEWHERE})}, None),
    (AffinityFilter, {}, {'same_host': frozenset({ELSEWHERE})},
     'it holds none of the shares in same_host'),
    (AntiAffinityFilter, {}, {}, None),
    (AntiAffinityFilter, {}, {'different_host': frozenset({ELSEWHERE})},
     None),
    (AntiAffinityFilter, {}, {'different_host': frozenset({HERE})},
     'it holds a share in different_host'),

    (RetryFilter, {}, {'attempted': frozenset({ELSEWHERE})}, None),
    (RetryFilter, {}, {'attempted': frozenset({HERE})},
     'it was tried before'),
    (IgnoreAttemptedHostsFilter, {}, {}, None),
    (IgnoreAttemptedHostsFilter, {}, {'attempted': frozenset({HERE})},
     'it was tried before'),

    (CapabilitiesFilter, {}, {}, None),
    (CapabilitiesFilter, {}, {'share_proto': 'CIFS'}, None),
    (CapabilitiesFilter, {}, {'share_proto': 'GLUSTERFS'},
     "storage_protocol is 'NFS_CIFS', wanted '<in> GLUSTERFS'"),
    (CapabilitiesFilter, caps(storage_protocol=None), {},
     'it does not report storage_protocol'),
    (CapabilitiesFilter, caps(storage_protocol=['CIFS', 'NFS']), {}, None),
    # an extra spec replaces the protocol of the share
    (CapabilitiesFilter, caps(storage_protocol='both'),
     specs(storage_protocol='both'), None),
    (CapabilitiesFilter, {},
     specs(driver_handles_share_servers='False', snapshot_support='<is> True',
           availability_zones='east', share_backend_name='gold'), None),
    (CapabilitiesFilter, {}, specs(driver_handles_share_servers='True'),
     "driver_handles_share_servers is False, wanted 'True'"),
    (CapabilitiesFilter, {}, specs(share_backend_name='silver'),
     "share_backend_name is 'gold', wanted 'silver'"),
    (CapabilitiesFilter, {}, specs(replication_type='dr'),
     'it does not report replication_type'),
    (CapabilitiesFilter, caps(ipv4_support=True, ipv6_support=False),
     specs(ipv4_support='<is> True'), None),
    (CapabilitiesFilter, caps(ipv4_support=True, ipv6_support=False),
     specs(ipv6_support='<is> True'),
     "ipv6_support is False, wanted '<is> True'"),

    (ShareBackendNameFilter, {}, specs(tier='ssd'), None),
    (ShareBackendNameFilter, {}, specs(share_backend_name='gold'), None),
    (ShareBackendNameFilter, {},
     specs(share_backend_name='<or> gold <or> silver'), None),
    (ShareBackendNameFilter, {}, specs(share_backend_name='<in> old'), None),
    (ShareBackendNameFilter, {}, specs(share_backend_name='<in> tin'),
     "share_backend_name is 'gold', wanted '<in> tin'"),
    (ShareBackendNameFilter, {}, specs(share_backend_name='silver'),
     "share_backend_name is 'gold', wanted 'silver'"),

    (ShareReplicationFilter, {}, {}, None),
    (ShareReplicationFilter,
     caps(replication_type='dr', replication_domain='west'),
     specs(replication_type='dr'), None),
    (ShareReplicationFilter, caps(replication_type='dr'),
     specs(replication_type='dr'), 'it reports no replication_domain'),
    (ShareReplicationFilter,
     caps(replication_type='dr', replication_domain='west'),
     specs(replication_type='dr')
     | {'replica_hosts': {'there'}, 'replication_domain': 'west'}, None),
    (ShareReplicationFilter,
     caps(replication_type='dr', replication_domain='west'),
     specs(replication_type='dr')
     | {'replica_hosts': {'there'}, 'replication_domain': 'east'},
     'its replication domain is west, that of the active replica east'),
    (ShareReplicationFilter,
     caps(replication_type='dr', replication_domain='west'),
     specs(replication_type='dr')
     | {'replica_hosts': {HERE}, 'replication_domain': 'west'},
     'it already has a replica of the share'),
    (ShareReplicationFilter, caps(replication_type='dr'),
     specs(replication_type='readable'),
     "replication_type is 'dr', wanted 'readable'"),
    (ShareReplicationFilter, {}, specs(replication_type='dr'),
     'it does not report replication_type'),

    (CreateFromSnapshotFilter, {}, {}, None),
    (CreateFromSnapshotFilter, {}, {'from_snapshot': True},
     'it does not report create_share_from_snapshot_support'),
    (CreateFromSnapshotFilter, caps(create_share_from_snapshot_support=True),
     {'from_snapshot': True}, None),
    (CreateFromSnapshotFilter,
     caps(create_share_from_snapshot_support=False), {'from_snapshot': True},
     "create_share_from_snapshot_support is False, wanted '<is> True'"),

    (DriverFilter, {}, {}, None),
    (DriverFilter, caps(filter_function='share.size < 5'), {'size': 4}, None),
    (DriverFilter, caps(filter_function='share.size < 5'), {'size': 5},
     "its filter function 'share.size < 5' returns False"),
    (DriverFilter, caps(filter_function="share.owner == 'me'"),
     {'share': {'owner': 'me'}}, None),
    (DriverFilter, caps(filter_function='extra.least <= share.size'),
     {'size': 5, 'extra_specs': {'least': '5'}}, None),
    (DriverFilter, caps(filter_function='1'), {}, None),
    (DriverFilter, caps(filter_function="'maybe'"), {},
     'its filter function "\'maybe\'" returns \'maybe\''),
    (DriverFilter, caps(filter_function='stats.speed > 1'), {},
     "Expression 'stats.speed > 1' cannot be evaluated: "
     'there is no stats.speed'),
    (DriverFilter, caps(filter_function='1 +'), {},
     "Expression '1 +' cannot be evaluated: "
     "a value is missing before 'the end'"),
    (DriverFilter, caps(filter_function=''), {},
     "Expression '' cannot be evaluated: "
     "a value is missing before 'the end'"),
]
# fmt: on


@pytest.mark.facts('LP1783736', 'LP1815700', 'support-ipv6.1')
@pytest.mark.parametrize('rule, candidate, placement, reason', CASES)
def test_rejection_reason(rule, candidate, placement, reason):
    assert (
        rule().rejection_reason(pool(host=HERE, **candidate), request(**placement))
        == reason
    )


@pytest.mark.parametrize(
    'key', ['share_backend_name', 'capabilities:share_backend_name']
)
def test_back_end_name_may_carry_the_scope(key):
    placement = request(extra_specs={key: 'silver'})
    assert ShareBackendNameFilter().rejection_reason(pool(), placement)
