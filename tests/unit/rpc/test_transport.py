"""Rabbit is set up safely, and nothing is loaded before it is used."""

import subprocess
import sys

import oslo_messaging
from oslo_service import backend

from manila_lite import conf as options
from manila_lite.rpc import transport

RABBIT = 'oslo_messaging_rabbit'


def rabbit(**settings):
    conf = options.new()
    from oslo_messaging import opts

    oslo_messaging.TransportURL(conf)
    conf.register_opts(dict(opts.list_opts())[RABBIT], RABBIT)
    conf.set_override('transport_url', 'rabbit://nobody:x@127.0.0.1:1//')
    for name, value in settings.items():
        conf.set_override(name, value, RABBIT)
    transport.Transport(conf)
    return conf[RABBIT]


def test_rabbit_queues_are_replicated_unless_configured():
    found = rabbit()
    assert found.rabbit_quorum_queue
    assert found.rabbit_transient_quorum_queue
    assert not found.use_queue_manager
    assert not rabbit(rabbit_quorum_queue=False).rabbit_quorum_queue
    assert not rabbit(rabbit_ha_queues=True).rabbit_quorum_queue


def test_executor_is_small_unless_configured(rpc_transport):
    conf = rpc_transport._conf
    rpc_transport.serve('topic', 'one', [])
    assert conf.executor_thread_pool_size == transport.POOL_SIZE
    conf.set_override('executor_thread_pool_size', 9)
    rpc_transport.serve('topic', 'two', [])
    assert conf.executor_thread_pool_size == 9


def test_the_published_exchange_is_used(rpc_transport):
    assert rpc_transport._conf.control_exchange == 'openstack'


def test_init_backend_chooses_threads_and_may_be_repeated():
    transport.init_backend(threading=True)
    assert backend.get_backend_type() is backend.BackendType.THREADING


def test_nothing_heavy_is_imported_before_it_is_used():
    script = (
        'import sys; from manila_lite import coordination; '
        'from manila_lite.rpc import contract, transport; '
        'print([name for name in ("oslo_messaging", "oslo_service", '
        '"tooz", "kombu", "eventlet") if name in sys.modules])'
    )
    done = subprocess.run(
        [sys.executable, '-c', script],
        text=True,
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.strip() == '[]'
