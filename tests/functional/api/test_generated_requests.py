"""Generated requests to all operations of the API description.

Schemathesis makes valid and invalid ones from the description of a version.
The service never fails, and every answer is as described, which the sample
cloud checks. Most requests name resources that exist.
"""

import random
import re

import hypothesis
from hypothesis import strategies as st
import pytest
import requests
import schemathesis

from manila_lite.api import versions
from tests.functional.api import published_api
from tests.functional.api.described import description
from tests.functional.api.examples.registry import example
from tests.functional.api.samples.requests import request_args
from tests.functional.api.test_published_surface import SERVED
from tests.support import sampling

MODES = tuple(schemathesis.GenerationMode)
# Every run has one version besides the latest; others differ from them little.
OLDER = random.Random(sampling.seed()).randrange(versions.MIN, versions.MAX)
_VARIABLE = re.compile(r'\{\w+\}')
_ROOT = 'http://localhost'

hypothesis.settings.register_profile(
    'generated',
    max_examples=sampling.examples(30, 5),
    deadline=None,
    database=None,
    suppress_health_check=list(hypothesis.HealthCheck),
)


def cases(minor, most):
    """Return the operations to try, as parameters."""
    found = [
        pytest.param(
            minor, operation, id=f'2.{minor} {operation.method} {operation.path}'
        )
        for operation in description(minor).operations
    ]
    return sampling.sample(found, most)


@sampling.enumeration
@pytest.mark.parametrize('minor, operation', cases(versions.MAX, 20) + cases(OLDER, 3))
@hypothesis.settings(hypothesis.settings.get_profile('generated'))
@hypothesis.given(data=st.data())
def test_answer_to_generated_request_is_as_described(sample, minor, operation, data):
    args = existing(sample, operation)
    generated = schemathesis.openapi.from_dict(description(minor).content)
    case = data.draw(
        st.sampled_from(MODES).flatmap(
            lambda mode: generated[operation.path][operation.method].as_strategy(
                generation_mode=mode,
                headers={versions.HEADER: published_api.version_text(minor)},
            )
        )
    )
    if data.draw(st.integers(0, 3)):
        case.path_parameters = {**(case.path_parameters or {}), **args.variables}
        case.body = naming_existing(case.body, args.body)
    request = requests.Request(**case.as_transport_kwargs(base_url=_ROOT)).prepare()
    answer = sample.send(
        operation.method,
        request.url.removeprefix(_ROOT),
        raw=_bytes(request.body),
        minor=minor,
        persona=data.draw(st.sampled_from(['admin', 'member'])),
        headers={versions.EXPERIMENTAL_HEADER: 'true'},
    )
    if answer.status_int >= 500:
        assert answer.status_int == 503, answer.text
        assert answer.headers['Retry-After']


def existing(sample, operation):
    """Return the variables and the body of a request that is accepted."""
    for published in SERVED:
        if published.method == operation.method and _shape(published.path) == _shape(
            operation.path
        ):
            args = example(published)(sample)
            values = [
                args.variables[name[1:-1]] for name in _VARIABLE.findall(published.path)
            ]
            names = _VARIABLE.findall(operation.path)
            variables = {
                name[1:-1]: value for name, value in zip(names, values, strict=True)
            }
            body = args.body
            if published.action:
                body = {published.action: body}
            return args._replace(variables=variables, body=body)
    return request_args()


def _shape(path):
    return _VARIABLE.sub('{}', path)


def naming_existing(body, valid):
    """Return the body with the names of the valid one."""
    if not (isinstance(body, dict) and isinstance(valid, dict)):
        return body
    return {
        key: naming_existing(value, valid.get(key))
        if isinstance(value, dict)
        else valid[key]
        if key in valid and isinstance(value, str)
        else value
        for key, value in body.items()
    }


def _bytes(body):
    return body.encode() if isinstance(body, str) else body
