import pytest


@pytest.fixture
def share_id(cloud, share_id):
    """A share active on alpha, with a replica on beta."""
    cloud.replicate(share_id, 'beta')
    return share_id
