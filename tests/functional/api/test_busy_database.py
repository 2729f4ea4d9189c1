"""A request that keeps losing against others is refused for now."""

import pytest

from manila_lite.db import engines
from tests.support import conflicts, sampling

pytestmark = sampling.dialects


@pytest.fixture
def cloud(build_cloud, database_url, monkeypatch):
    monkeypatch.setattr(engines, 'LOCK_TIMEOUT', 0.01)
    return build_cloud(url=database_url)


def test_create_answers_503_with_retry_after(cloud):
    with conflicts.lost_inserts(cloud.url, 'shares'):
        began = cloud.clock()
        response = cloud.api.request(
            'POST', '/shares', {'share': {'size': 1, 'share_proto': 'NFS'}}, expect=503
        )
        waited = cloud.clock() - began
    assert 'busy' in response.json['serviceUnavailable']['message']
    assert int(response.headers['Retry-After']) > 0
    assert 20 <= waited < 21
    assert cloud.api.get('/shares')['shares'] == []
