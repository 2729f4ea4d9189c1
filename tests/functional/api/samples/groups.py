"""The share groups and group types of the sample cloud."""

from tests.support.api_client import ApiClient
from tests.support.cloud import TYPE_ID, Cloud

GROUP_TYPE = 'group-default'
"""The default share group type, which is public."""


class SampleGroups:
    """Creates share groups and their types for requests."""

    cloud: Cloud
    admin: ApiClient
    member: ApiClient
    public_group_type: str
    minimal_type: str
    _types: int

    def group_type_body(self, public: bool = False) -> dict:
        """Return a body that creates the default type, or a private one."""
        self._types += 1
        return {
            'share_group_type': {
                'name': GROUP_TYPE if public else f'group-{self._types}',
                'is_public': public,
                'share_types': [self.minimal_type, TYPE_ID],
            }
        }

    def new_group_type(self, public: bool = False) -> str:
        return self.admin.request(
            'POST', '/share-group-types', self.group_type_body(public), expect=200
        ).json['share_group_type']['id']

    def group_body(self) -> dict:
        return {
            'share_group': {
                'name': 'album',
                'share_group_type_id': self.public_group_type,
                'share_types': [TYPE_ID],
            }
        }

    def new_group(self, api: ApiClient | None = None) -> str:
        """Create a share group that is available; return its id."""
        answer = (api or self.member).request(
            'POST', '/share-groups', self.group_body(), expect=202
        )
        self.cloud.settle()
        return answer.json['share_group']['id']

    def group_snapshot_body(self, group: str | None = None) -> dict:
        return {
            'share_group_snapshot': {
                'name': 'monday',
                'share_group_id': group or self.new_group(),
            }
        }

    def new_group_snapshot(self, api: ApiClient | None = None) -> str:
        """Take a snapshot of a group with a share; return its id."""
        group = self.new_group(api)
        (api or self.member).create(share_group_id=group, share_type=TYPE_ID)
        self.cloud.settle()
        answer = (api or self.member).request(
            'POST',
            '/share-group-snapshots',
            self.group_snapshot_body(group),
            expect=202,
        )
        self.cloud.settle()
        return answer.json['share_group_snapshot']['id']
