"""Availability zones, which are created with their first service."""

from manila_lite.api import wsgi
from manila_lite.api.fields import Field, fields
from manila_lite.db.queries.services import services

ITEM = fields(Field('id'), Field('name'), Field('created_at'), Field('updated_at'))


class AvailabilityZonesController(wsgi.Controller):
    @wsgi.method('availability_zone:index', answer={'availability_zones': [ITEM]})
    def index(self, req: wsgi.Request) -> dict:
        """List all zones by name."""
        rows = self.services.db.read(services.list_zones)
        return {'availability_zones': ITEM.many(req.minor)(rows)}
