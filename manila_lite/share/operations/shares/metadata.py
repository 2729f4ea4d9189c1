"""Accept metadata of shares, some of which drivers apply."""

from collections.abc import Collection, Mapping
import dataclasses
from typing import Annotated

from manila_lite.conf import Option
from manila_lite.context import RequestContext
from manila_lite.db.queries.replicas import replicas
from manila_lite.db.queries.shares import shares
from manila_lite.db.rows import ShareTarget
from manila_lite.db.session import Database, Session, transaction
from manila_lite.rpc.contract import Client
from manila_lite.rpc.share import ShareMetadataRpc
from manila_lite.states.share_replica import PASSIVE
from manila_lite.work.admission import AdmissionControl


@dataclasses.dataclass(eq=False)
class ShareMetadata:
    """Sets metadata; changes of `driver_keys` are passed to the driver."""

    db: Database
    updates: Client[ShareMetadataRpc]
    admission: AdmissionControl
    driver_keys: Annotated[
        frozenset[str], Option('driver_updatable_metadata', frozenset)
    ]

    def set_values(
        self,
        ctx: RequestContext,
        share: ShareTarget,
        values: Mapping[str, str],
        *,
        replace: bool = False,
        keep: Collection[str] = (),
    ) -> dict[str, str]:
        """Set metadata keys of a share; return all its metadata.

        With `replace` delete all other keys except those of `keep`.
        """
        if not self.driver_keys.isdisjoint(values):
            self.admission.check_backend(share.host)
        return self._set_values(ctx, share.id, values, replace, keep)

    @transaction
    def _set_values(
        self,
        session: Session,
        ctx: RequestContext,
        share_id: str,
        values: Mapping[str, str],
        replace: bool,
        keep: Collection[str],
    ) -> dict[str, str]:
        if not self.driver_keys.isdisjoint(values):
            self._submit(session, ctx, share_id)
        if replace:
            return shares.METADATA.replace(session, share_id, values, keep)
        return shares.METADATA.merge(session, share_id, values)

    def _submit(self, session: Session, ctx: RequestContext, share_id: str) -> None:
        """Submit the update of each instance that users write to.

        An instance without a host is given one later, because of the lock,
        and is then created with the new metadata.
        """
        for instance in replicas.lock_instances(session, share_id):
            if instance.host and instance.replica_state not in PASSIVE:
                self.updates.on(instance.host).update_share_from_metadata(
                    session,
                    ctx,
                    share_instance_id=instance.id,
                    keys=sorted(self.driver_keys),
                )
