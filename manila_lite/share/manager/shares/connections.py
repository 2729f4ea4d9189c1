"""Say how the data service reaches the shares of a back end."""

import dataclasses
import typing
from typing import Annotated

from manila_lite import exception
from manila_lite.conf import Option
from manila_lite.context import RequestContext
from manila_lite.db.session import Database
from manila_lite.rpc.contract import implements
from manila_lite.rpc.share import ConnectionsRpc
from manila_lite.share.drivers.base import ShareDriver
from manila_lite.share.manager.driver_view import share_view
from manila_lite.share.manager.guarded_driver import driver_context


@implements(ConnectionsRpc)
@dataclasses.dataclass(eq=False)
class ConnectionsEndpoint:
    """Asks the driver of a back end."""

    db: Database
    driver: ShareDriver
    name_template: Annotated[str, Option('share_name_template')]

    def get_connection(
        self, ctx: RequestContext, instance_id: str
    ) -> dict[str, typing.Any]:
        instance = self.db.read(share_view.load_instance, instance_id)
        try:
            found = self.driver.connection_get_info(
                driver_context(),
                share_view.share_for_driver(instance, self.name_template),
                instance.share_server,
            )
        except NotImplementedError as error:
            raise exception.ContentUnreachable(
                instance_id=instance_id, reason='its driver does not offer it'
            ) from error
        except OSError as error:
            raise exception.ContentUnreachable(
                instance_id=instance_id, reason=str(error)
            ) from error
        return dict(found)
