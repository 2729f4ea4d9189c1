"""Admission control: the API returns 503 while too much work waits."""

import pytest


@pytest.fixture
def cloud(build_cloud):
    return build_cloud('[work]\nmax_queue = 2', backends=['alpha'])


@pytest.fixture
def next_second(cloud, monkeypatch):
    """`next_second()` lets admission control read the queue again."""
    admission = cloud.services.shares.admission
    now = [0.0]
    monkeypatch.setattr(admission, '_clock', lambda: now[0])

    def later():
        now[0] += 1.0

    return later


def test_new_work_is_refused_while_the_queue_is_full(cloud, next_second):
    share = cloud.create_share(size=2)
    next_second()
    for _ in range(2):
        cloud.api.create()
    next_second()
    body = {'share': {'share_proto': 'NFS', 'size': 1}}
    answers = [
        cloud.api.request('POST', '/shares', body, expect=503),
        cloud.api.act(share, 'extend', {'new_size': 3}, expect=503),
        cloud.api.act(share, 'shrink', {'new_size': 1}, expect=503),
    ]
    assert {int(answer.headers['Retry-After']) > 0 for answer in answers} == {
        True
    }
    assert cloud.api.show(share)['status'] == 'available'
    cloud.settle()
    next_second()
    cloud.api.act(share, 'extend', {'new_size': 3})
    cloud.settle()
    cloud.check_invariants()


def test_requests_that_end_work_are_never_refused(cloud, next_second):
    share = cloud.create_share(size=2)
    next_second()
    for _ in range(2):
        cloud.api.create()
    next_second()
    cloud.api.create(expect=503)
    cloud.api.delete(share)
    cloud.settle()
    assert len(cloud.api.get('/shares')['shares']) == 2
