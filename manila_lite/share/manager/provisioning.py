"""Carries out creation, resizing and deletion of share instances.

Each method holds the happy way only: the runner has claimed the work
before, and owns what happens when a driver fails. `prepare_` methods read
inside the claiming transaction and raise when the work is out of date.
"""

from manila_lite import exception
from manila_lite.context import RequestContext
from manila_lite.db.queries import pools
from manila_lite.db.queries import share_instances as instances
from manila_lite.db.queries import shares
from manila_lite.db.session import Session
from manila_lite.db.transitions import fire
from manila_lite.quota import charges
from manila_lite.quota.shares import discard
from manila_lite.quota.shares import discard_uncounted
from manila_lite.quota.shares import owner_of
from manila_lite.quota.shares import size_deltas
from manila_lite.rpc.contract import implements
from manila_lite.rpc.share import ProvisioningRpc
from manila_lite.share.drivers.base import ShareDriver
from manila_lite.share.drivers.base import export_locations
from manila_lite.share.manager import driver_view
from manila_lite.share.manager.driver_view import Found
from manila_lite.states.share_instance import MACHINE as SHARE_INSTANCE
from manila_lite.states.share_instance import S

PROGRESS_DONE = '100%'


@implements(ProvisioningRpc)
class Provisioning:
    """The share instances of one back end."""

    def __init__(self, driver: ShareDriver, name_template: str):
        self.driver = driver
        self.name_template = name_template

    # Create

    def prepare_create_share_instance(self, session: Session, job):
        return self._expect(session, job, S.CREATING,
                            driver_view.find_new)

    def create_share_instance(self, job, instance_id):
        share = self._view(job.found)
        locations = self.driver.create_share(RequestContext(), share)
        try:
            job.finish(self._created, instance_id,
                       export_locations(locations))
        except (exception.WorkLost, exception.ResourceNotFound):
            if job.read(instances.find, instance_id) is None:
                # Given up and deleted meanwhile: nobody would know it.
                self.driver.delete_share(RequestContext(), share)
            raise

    def _created(self, session, instance_id, locations):
        fire(session, SHARE_INSTANCE, instance_id, 'created',
             progress=PROGRESS_DONE, updated_at=session.now)
        instances.insert_export_locations(session, instance_id, locations)

    def failed_create_share_instance(self, session, job, error):
        """A driver may tell which exports exist in spite of the error."""
        told = getattr(error, 'detail_data', None)
        locations = isinstance(told, dict) and told.get('export_locations')
        if locations:
            instances.insert_export_locations(
                session, job.resource_id, export_locations(locations))
        return False

    # Resize

    def prepare_extend_share_instance(self, session, job):
        return self._expect(session, job, S.EXTENDING)

    def extend_share_instance(self, job, instance_id, new_size, growth,
                              host):
        self.driver.extend_share(self._view(job.found), new_size)
        job.finish(self.extended, job.found.row, new_size, growth)

    def extended(self, session, instance, new_size, growth):
        """The instance has grown, and so has what its project uses."""
        fire(session, SHARE_INSTANCE, instance.id, 'extended',
             updated_at=session.now)
        shares.resize(session, instance.share_id, new_size)
        charges.settle(session, owner_of(instance),
                       size_deltas(instance, growth))

    def dropped_extend_share_instance(self, session, job):
        pools.change_allocated(session, job.args['host'],
                               -job.args['growth'])

    def prepare_shrink_share_instance(self, session, job):
        return self._expect(session, job, S.SHRINKING)

    def shrink_share_instance(self, job, instance_id, new_size):
        self.driver.shrink_share(self._view(job.found), new_size)
        job.finish(self.shrunk, job.found.row, new_size)

    def shrunk(self, session, instance, new_size):
        """The instance is smaller, and its project uses less."""
        fire(session, SHARE_INSTANCE, instance.id, 'shrunk',
             updated_at=session.now)
        less = instance.size - new_size
        shares.resize(session, instance.share_id, new_size)
        charges.credit(session, owner_of(instance),
                       size_deltas(instance, less))
        pools.change_allocated(session, instance.host, -less)

    # Delete

    def prepare_delete_share_instance(self, session, job):
        return self._expect(session, job, S.DELETING)

    def delete_share_instance(self, job, instance_id, force=False):
        self._delete(job.found)
        job.finish(discard, job.found.row)

    def failed_delete_share_instance(self, session, job, error):
        """A forced deletion bears with the back end: the rows go."""
        if not job.args['force']:
            return False
        discard(session, self._expect(session, job, S.DELETING).row)
        return True

    def prepare_delete_share_instance_deferred(self, session, job):
        return self._expect(session, job, S.DEFERRED_DELETING)

    def delete_share_instance_deferred(self, job, instance_id):
        self._delete(job.found)
        job.finish(discard_uncounted, job.found.row)

    def _delete(self, found):
        try:
            self.driver.delete_share(RequestContext(), self._view(found))
        except exception.ShareResourceNotFound:
            return  # what was asked for is the case

    # All

    def _expect(self, session: Session, job, status: str,
                find=driver_view.find) -> Found:
        """The instance, if it still waits for this work.

        It is kept: who moves it on, and submits other work, has to see
        that this work is running.
        """
        found = find(session, job.resource_id, keep=True)
        if found.row.status != status:
            raise exception.InvalidStatus(
                resource='share instance', id=found.row.id,
                status=found.row.status, event=job.kind, allowed=status)
        return found

    def _view(self, found: Found):
        return driver_view.for_driver(found, self.name_template)
