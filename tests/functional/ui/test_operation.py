"""The pages of operators: recovery, capacity, quotas, services."""

import pytest
import sqlalchemy as sa

from manila_lite import release
from manila_lite.db.models import quotas, services, shares
from tests.support.cloud_images import prepared

INSTANCE = shares.ShareInstance.__table__
USAGE = quotas.QuotaUsage.__table__
SERVICE = services.Service.__table__
INCARNATION = services.ServiceIncarnation.__table__
FOR_ADMINISTRATORS = (
    '/ui/in-flight',
    '/ui/recovery',
    '/ui/servers',
    '/ui/migrations',
    '/ui/capacity',
    '/ui/charts',
    '/ui/services',
)


@pytest.fixture
@prepared
def stuck(cloud, api):
    """The id of an instance that extends, for which there is no work."""
    share = api.create(name='data')
    cloud.settle()

    def stop(session):
        session.run(
            sa.update(INSTANCE)
            .where(INSTANCE.c.share_id == share['id'])
            .values(status='extending')
        )
        return session.value(
            sa.select(INSTANCE.c.id).where(INSTANCE.c.share_id == share['id'])
        )

    return cloud.db.write(stop)


@pytest.mark.parametrize('path', FOR_ADMINISTRATORS)
def test_pages_of_administrators_are_refused_to_others(alice, root, path):
    assert path in root.open('/ui/').links
    assert path not in alice.open('/ui/').links
    root.open(path)
    alice.open(path, expect=403)


def test_row_in_flight_is_shown_with_its_next_step_and_rescued(cloud, stuck, root):
    page = root.open('/ui/in-flight')
    assert stuck in page.text
    assert 'nobody' in page.text
    assert 'created' in page.text  # the last event
    assert 'get_share_status' in page.text or 'ends in' in page.text
    forms = [form for form in page.forms if 'resource_id' in form.fields]
    assert [form.fields['resource_id'] for form in forms] == [stuck]
    page = root.submit(forms[0])
    assert 'The rescue is requested.' in page.text
    cloud.run_pending()
    assert 'Nothing is in flight.' in root.open('/ui/in-flight').text
    log = root.open(f'/ui/recovery?resource_id={stuck}')
    assert 'asked by id-root' in log.text
    assert 'extending' in log.text


def test_pass_of_recovery_is_requested(cloud, stuck, root):
    form = root.open('/ui/in-flight').form('/ui/recovery/run')
    assert 'A pass of recovery is requested.' in root.submit(form).text
    cloud.run_pending()
    assert 'Nothing is in flight.' in root.open('/ui/in-flight').text


def test_work_with_a_holder_is_left_alone(cloud, api, root):
    api.create()
    page = root.open('/ui/in-flight')
    assert 'waiting' in page.text
    assert [f for f in page.forms if 'resource_id' in f.fields] == []


def test_recovery_is_not_run_by_others(stuck, alice):
    token = alice.open('/ui/').form('/ui/sign-out').fields['form_token']
    response = alice.send(
        'POST', '/ui/recovery/run', f'form_token={token}', Origin=alice.host
    )
    assert response.status_int == 403


@pytest.mark.parametrize(
    'path',
    [
        '/ui/recovery?offset=x',
        '/ui/capacity?first=-1',
        '/ui/quotas?project=..%2F..%2Fservices',
    ],
)
def test_malformed_queries_do_no_harm(root, path):
    assert root.send('GET', path).status_int in (200, 400, 404)


def test_unknown_kind_is_refused(root):
    root.open('/ui/in-flight?kind=x', expect=400)


def test_pools_have_bars(cloud, root):
    cloud.db.write(
        lambda session: session.run(
            sa.update(services.Pool.__table__).values(allocated_gb=500)
        )
    )
    page = root.open('/ui/capacity')
    assert 'node@alpha#pool' in page.text
    assert '500 of 1,000 GiB (50 %)' in page.text
    assert [tag for tag, _ in page.tags if tag == 'svg']


def test_pools_are_shown_together_and_the_fullest_first(cloud, root):
    pool = services.Pool.__table__

    def fill(session):
        session.run(sa.update(pool).values(total_gb=1000, free_gb=900))
        fuller = pool.c.host.like('node@beta%')
        session.run(sa.update(pool).where(fuller).values(free_gb=100))

    cloud.db.write(fill)
    text = root.open('/ui/capacity').text
    assert '1,000 of 2,000 GiB (50 %)' in text
    assert text.index('node@beta#') < text.index('node@alpha#')
    assert 'max_over_subscription_ratio' in text


def test_quota_is_shown_with_its_use(cloud, api, alice):
    api.create(size=7)
    page = alice.open('/ui/quotas')
    text = page.text
    assert 'Quotas of red' in text
    assert '7 of 1,000 GiB' in text
    limited = api.get('/quota-sets/red/detail')['quota_set'].values()
    limits = [one['limit'] for one in limited if isinstance(one, dict)]
    assert page.html.count('<svg class="bar"') == sum(one > 0 for one in limits)
    assert 'Compare with a recount' not in text


def test_quota_of_another_project_is_for_administrators(alice, root):
    assert 'Quotas of blue' in root.open('/ui/quotas?project=blue').text
    alice.open('/ui/quotas?project=blue', expect=403)


def test_recount_finds_a_wrong_use(cloud, api, root):
    api.create(size=7)
    cloud.settle()
    where = '/ui/quotas?project=red&recount=1'
    assert 'A recount gives the recorded use.' in root.open(where).text
    cloud.db.write(
        lambda session: session.run(
            sa.update(USAGE).where(USAGE.c.resource == 'gigabytes').values(in_use=9)
        )
    )
    assert 'gigabytes: 9 in use and 0 reserved are recorded, 7' in (
        root.open(where).text
    )


def test_service_that_is_not_ready_has_a_reason(cloud, root):
    cloud.db.write(
        lambda session: session.run(
            sa.update(SERVICE)
            .where(SERVICE.c.host == 'node@alpha')
            .values(health='the <b>pool</b> is not mounted')
        )
    )
    page = root.open('/ui/services')
    assert 'node@alpha is not ready: the <b>pool</b> is' in page.text
    assert '<b>' not in page.html


def test_services_are_shown_with_the_releases_of_their_processes(cloud, root):
    cloud.db.write(
        lambda session: session.run(
            sa.insert(INCARNATION).values(
                service_id=sa.select(SERVICE.c.id)
                .where(SERVICE.c.host == 'node@alpha')
                .scalar_subquery(),
                incarnation='another',
                started_at=0.0,
                heartbeat_at=0.0,
            )
        )
    )
    text = ' '.join(root.open('/ui/services').text.split())
    assert 'Last heartbeat Release' in text
    assert f' {release.FIRST}, {release.NUMBER} ' in text
