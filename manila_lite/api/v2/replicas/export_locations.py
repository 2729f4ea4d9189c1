"""Export locations of replicas."""

from manila_lite.api import wsgi
from manila_lite.api.fields import Field, fields
from manila_lite.api.v2.replicas.replica_state_names import replica_state_field
from manila_lite.api.v2.shares import export_locations as views
from manila_lite.api.v2.targets import ShareReplicaTargetController
from manila_lite.db import rows
from manila_lite.db.queries.shares import export_locations

_OF_REPLICAS = (replica_state_field(), Field('availability_zone'))
SUMMARY = fields(*views.SUMMARY.rows, *_OF_REPLICAS)
DETAIL = fields(*views.DETAIL.rows, *_OF_REPLICAS)


class ShareReplicaExportLocationsController(ShareReplicaTargetController):
    """Export locations of replicas; admin-only ones for admins only."""

    @wsgi.method(
        'share_replica_export_location:index',
        target=True,
        answer={'export_locations': [SUMMARY]},
    )
    def index(self, req: wsgi.Request, replica: rows.ReplicaTarget) -> dict:
        return views.show_export_locations(req, self._listing(replica), SUMMARY)

    @wsgi.method(
        'share_replica_export_location:show',
        target=True,
        answer={'export_location': DETAIL},
    )
    def show(
        self, req: wsgi.Request, replica: rows.ReplicaTarget, export_location_id: str
    ) -> dict:
        found = self._listing(replica)
        return views.show_export_location(
            req, found, views.get_visible(req, found, export_location_id), DETAIL
        )

    def _listing(
        self, replica: rows.ReplicaTarget
    ) -> export_locations.ExportLocationListing:
        return self.services.db.read(export_locations.list_for_instance, replica.id)
