"""Place shares by replication type, and replicas by domain."""

from manila_lite.scheduler.filters import Filter
from manila_lite.scheduler.filters.extra_specs import mismatch_reason
from manila_lite.scheduler.pools import Pool
from manila_lite.scheduler.request import PlacementRequest


class ShareReplicationFilter(Filter):
    """Require the replication type in the extra spec, within a domain.

    A further replica goes to a pool of the same replication domain that
    has no replica of the share yet (share replication design).
    """

    detail = '014'

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
            return (
                f'its replication domain is {domain}, that of the '
                f'active replica {request.replication_domain}'
            )
        return None
