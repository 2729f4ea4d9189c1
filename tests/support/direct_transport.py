"""Calls between services in one thread, without a broker."""

import json

from manila_lite import exception
from manila_lite.rpc import listening


class DirectTransport:
    """Answers calls at once, by the endpoint that serves them in this process.

    Arguments and results pass through JSON, as with a real transport.
    `before_call` may start the services that serve.
    """

    receiver = None  # hints wake the runners directly

    def __init__(self, before_call=lambda: None):
        self.refusals = listening.Refusals()
        self._before_call = before_call
        self._served = {}
        self._silent = {}

    def silence(self, server, wait):
        """Let calls to a server call `wait(timeout)` and get no answer."""
        self._silent[server] = wait

    def await_answer(self, server, timeout):
        if server in self._silent:
            self._silent[server](timeout)
            raise exception.ServiceUnavailable(f'{server} does not answer')

    def serve(self, topic, server, endpoints):
        self._served[topic, server] = list(endpoints)
        return _NullServer()

    def client(self, topic, server=None, *, namespace=None, version='1.0'):
        return _Client(self, topic, server, namespace)

    def endpoint(self, topic, server, namespace):
        self._before_call()
        for (served, name), endpoints in self._served.items():
            if served == topic and server in (None, name):
                for endpoint in endpoints:
                    contract = getattr(endpoint, 'contract', None)
                    if contract is not None and contract.name == namespace:
                        return endpoint
        raise LookupError(f'no endpoint for {namespace} on {topic} {server}')


class _Client:
    def __init__(self, transport, topic, server, namespace):
        self._target = topic, server, namespace
        self._transport = transport

    def call(self, ctx, method, args, timeout):
        self._transport.await_answer(self._target[1], timeout)
        endpoint = self._transport.endpoint(*self._target)
        answer = getattr(endpoint, method)(ctx, **json.loads(json.dumps(args)))
        return json.loads(json.dumps(answer))

    def cast(self, ctx, method, args):
        try:
            self._transport.endpoint(*self._target)
        except LookupError:
            return  # without a listener it is lost
        self.call(ctx, method, args, timeout=None)


class _NullServer:
    def start(self):
        """Do nothing: calls reach the endpoints directly."""

    def stop(self):
        """Do nothing, see `start`."""
