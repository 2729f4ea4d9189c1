"""Share groups and their snapshots, as clients see them."""

import pytest

from tests.functional.api import differences


@differences.proves('links of share groups')
@pytest.mark.parametrize(
    'path, key',
    [
        ('/share-groups', 'share_groups'),
        ('/share-group-snapshots', 'share_group_snapshots'),
    ],
)
def test_links_lead_to_what_is_listed(sample, path, key):
    first = sample.member.get(path)[key][0]
    link, _ = first['links']
    _, _, target = link['href'].partition('/v2')
    shown = sample.member.get(target)
    assert shown[key.removesuffix('s')]['id'] == first['id']
