"""Calls of drivers in threads of their own."""

from oslo_context import context

from manila_lite.context import RequestContext, logged_as
from manila_lite.share.manager.driver_probe import DriverProbe


def test_what_a_driver_logs_has_the_request_id():
    def answer():
        return context.get_current().request_id

    probe = DriverProbe(timeout=10, limit=1)
    with logged_as(RequestContext(request_id='req-1')):
        assert probe.ask(answer).value == 'req-1'
