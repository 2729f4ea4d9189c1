"""A cloud that can be rewound to one moment, any number of times.

A new cloud has to load its policies and compile all statements, which takes
ten times as long as the test of one crash. Here only the stored state, the
database and the back ends, is restored, and a process starts on it.
"""

from collections.abc import Callable, Iterator
import contextlib
import pathlib
import shutil
import typing

from tests.support.cloud import Cloud

PREPARATION_SEED = 1 << 40
"""A seed that no simulation uses, so that no id is generated twice."""

Begin = Callable[..., tuple[Cloud, typing.Any]]


@contextlib.contextmanager
def rewindable(
    folder: pathlib.Path,
    prepare: Callable[[Cloud], typing.Any],
    kind: type[Cloud] = Cloud,
    **kwargs: typing.Any,
) -> Iterator[Begin]:
    """Yield `begin(seed=0, backend_conf='', extra_conf='', image=None)`.

    It returns the cloud and the result of `prepare(cloud)`. The cloud is in
    the state after that call, or in that of a disk image, which must have
    been captured with another seed. It is always the same object, and its
    previous state is lost.
    """
    now, then = folder / 'now', folder / 'then'
    now.mkdir()
    cloud = kind(now, seed=PREPARATION_SEED, **kwargs)
    prepared = prepare(cloud)
    cloud.settle()
    cloud.db.dispose()
    shutil.copytree(now, then)
    moment = cloud.clock.now

    def begin(
        seed: int = 0,
        backend_conf: str = '',
        extra_conf: str = '',
        image: typing.Any = None,
    ) -> tuple[Cloud, typing.Any]:
        cloud.db.dispose()
        shutil.rmtree(now)
        if image is None:
            shutil.copytree(then, now)
        else:
            image.restore(now)
        cloud.rng.seed(seed)
        cloud.clock.now = moment if image is None else image.now
        cloud.loss_rate = cloud.duplicate_rate = 0.0
        cloud.clear_pauses()
        cloud.configure(backend_conf=backend_conf, extra_conf=extra_conf)
        cloud.restart()
        cloud.settle()  # the back ends may have been reconfigured
        return cloud, prepared

    try:
        yield begin
    finally:
        cloud.db.dispose()
