"""The share backups of the sample cloud."""

from tests.support import share_backups
from tests.support.api_client import ApiClient
from tests.support.cloud import Cloud


class SampleBackups:
    """Creates share backups for requests."""

    cloud: Cloud
    member: ApiClient

    def backup_body(self, share: str | None = None) -> dict:
        if share is None:
            share = self.member.create()['id']
            self.cloud.settle()
        return {'share_backup': {'name': 'monday', 'share_id': share}}

    def new_backup(self, api: ApiClient | None = None) -> str:
        """Create a share backup that is available; return its id."""
        body = self.backup_body()['share_backup']
        answer = share_backups.request(api or self.member, **body)
        self.cloud.settle()
        return answer.json['share_backup']['id']
