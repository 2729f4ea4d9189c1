"""Crashes at every point in the life of a replica.

As in `test_crashes`: creating a replica with rules and snapshots, promoting
and deleting it, and failures of these. In the end one replica is active, or
more if the type is writable; all have the same rules and all snapshots;
quota, pools and back ends equal a recount.
"""

import functools

import pytest

from tests.simulation import crash_images
from tests.simulation import crashing
from tests.simulation import pausing
from tests.support import sampling
from tests.support.replicated import ReplicatedCloud


class CrashableReplicatedCloud(crash_images.CrashableCloud, ReplicatedCloud):
    """A replicated cloud with crash points."""


def create(cloud, found):
    cloud.request_replica(found['share'], 'gamma')
    cloud.settle()


def fail_to_place(cloud, found):
    cloud.request_replica(found['share'], 'beta')
    cloud.settle()


def fail_to_create(cloud, found):
    cloud.driver('gamma').half_fail_next('create_replica')
    cloud.request_replica(found['share'], 'gamma')
    cloud.settle()


def delete(cloud, found):
    cloud.ask('delete', found['beta'])
    cloud.settle()


def fail_to_delete(cloud, found):
    cloud.driver('beta').half_fail_next('delete_replica')
    cloud.ask('delete', found['beta'])
    cloud.settle()


def force_delete(cloud, found):
    cloud.ask('force_delete', found['beta'])
    cloud.settle()


def promote(cloud, found):
    cloud.ask('promote', found['beta'])
    cloud.settle()


def fail_to_promote(cloud, found):
    cloud.driver('beta').half_fail_next('promote_replica')
    cloud.ask('promote', found['beta'])
    cloud.settle()


def delete_active(cloud, found):
    """Delete an active writable replica while another one stays."""
    cloud.ask('delete', found['alpha'])
    cloud.settle()


VERBS = {
    verb.__name__: verb
    for verb in (
        create,
        fail_to_place,
        fail_to_create,
        delete,
        fail_to_delete,
        force_delete,
        promote,
        fail_to_promote,
    )
}
CASES = [
    *(('readable', verb) for verb in VERBS.values()),
    ('dr', promote),
    ('writable', create),
    ('writable', delete_active),
]


@pytest.fixture(scope='module')
def prepare(tmp_path_factory):
    """`prepare(style)` creates two replicas, with a rule and a snapshot."""
    made = {}

    def begin(style):
        if style not in made:
            cloud = CrashableReplicatedCloud(
                tmp_path_factory.mktemp(style), seed=10_000, style=style
            )
            share_id = cloud.create_share_on('alpha', size=2)
            cloud.allow(share_id)
            cloud.snapshot(share_id)
            cloud.replicate(share_id, 'beta')
            cloud.update()
            cloud.check_invariants()
            assert {row.replica_state for row in cloud.replicas(share_id)} <= {
                'active',
                'in_sync',
            }
            found = {'share': share_id} | {
                name: next(
                    row.id
                    for row in cloud.replicas(share_id)
                    if row.host.endswith(f'@{name}#pool')
                )
                for name in ('alpha', 'beta')
            }
            cloud.db.dispose()
            made[style] = cloud.folder, crash_images.capture(cloud), found
        return made[style]

    return begin


def begin(prepared, style, seed, image=None, **kwargs):
    folder, initial, _ = prepared
    return crash_images.start_on(
        image or initial,
        folder,
        seed,
        CrashableReplicatedCloud,
        style=style,
        **kwargs,
    )


def check(cloud):
    try:
        cloud.settle()
        cloud.update()
        cloud.check_invariants()
    finally:
        cloud.db.dispose()


@sampling.enumeration
@pytest.mark.parametrize(
    'style, verb', CASES, ids=lambda value: getattr(value, '__name__', value)
)
def test_a_crash_anywhere_breaks_no_invariant(prepare, style, verb):
    prepared = prepare(style)
    cloud = begin(prepared, style, 1)
    points = crash_images.images_at_crash_points(
        cloud, lambda: verb(cloud, prepared[2])
    )
    check(cloud)
    crashing.recover_from_each(
        points,
        lambda number, image: check(
            begin(prepared, style, 100 + number, image)
        ),
        f'{style} {verb.__name__}',
        least=4,
    )


@sampling.enumeration
@pytest.mark.parametrize(
    'verb', [promote, fail_to_promote], ids=lambda verb: verb.__name__
)
def test_two_crashes_of_a_promotion_break_no_invariant(prepare, verb):
    prepared = prepare('readable')
    cloud = begin(prepared, 'readable', 2)
    points = crash_images.images_at_crash_points(
        cloud, lambda: verb(cloud, prepared[2])
    )
    cloud.db.dispose()

    def crash_again(number, image):
        cloud = begin(prepared, 'readable', 1000 + number, image)
        second = crash_images.images_at_crash_points(cloud, cloud.settle)
        cloud.db.dispose()
        if second:
            *_, image = cloud.rng.choice(crash_images.distinct_images(second))
            check(begin(prepared, 'readable', 2000 + number, image))

    crashing.recover_from_each(points, crash_again, verb.__name__, most=4)


@sampling.enumeration
@pytest.mark.parametrize('seed', sampling.seeds(40, 3))
def test_two_crashes_and_bad_messages_break_no_invariant(prepare, seed):
    prepared = prepare('readable')
    start = functools.partial(begin, prepared, 'readable')
    verbs = {
        name: functools.partial(verb, found=prepared[2])
        for name, verb in VERBS.items()
    }
    image = crashing.image_of_two_crashes(start, verbs, seed)
    check(start(2000 + seed, image))


@sampling.combinations('fencing', 'style', 'verb')
@pausing.FENCING
@pytest.mark.parametrize(
    'style, verb',
    [
        (style, verb)
        for style, verb in CASES
        if verb is not fail_to_place  # calls no driver
    ],
    ids=lambda value: getattr(value, '__name__', value),
)
def test_a_pause_in_any_driver_call_breaks_no_invariant(
    prepare, style, verb, fencing, shared_database
):
    prepared = prepare(style)

    def start():
        cloud = begin(prepared, style, 1, backend_conf=fencing)
        return (cloud, lambda: verb(cloud, prepared[2]), lambda: check(cloud))

    pausing.pause_everywhere(
        start, f'{style} {verb.__name__}', shared_database
    )
