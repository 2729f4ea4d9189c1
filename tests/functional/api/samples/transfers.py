"""The share transfers of the sample cloud."""

import typing

from tests.support.api_client import ApiClient

Transfer = dict[str, typing.Any]


class SampleTransfers:
    """Offers shares for requests."""

    admin: ApiClient
    member: ApiClient

    def idle_share(self) -> str: ...

    def transfer_body(self, share_id: str | None = None) -> dict:
        """Return a body that offers a share, by default one to change."""
        id = share_id or self.idle_share()
        return {'transfer': {'share_id': id, 'name': 'gift'}}

    def new_transfer(
        self, api: ApiClient | None = None, share_id: str | None = None
    ) -> Transfer:
        """Offer a share, by default one to change; return the transfer."""
        return (
            (api or self.member)
            .request(
                'POST', '/share-transfers', self.transfer_body(share_id), expect=202
            )
            .json['transfer']
        )
