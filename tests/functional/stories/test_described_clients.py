"""Programs that know nothing but the description of the API use it."""

import json
import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

from manila_lite.api import versions
from tests.functional.stories import suites
from tests.functional.stories.conftest import new_installation
from tests.support.sampling import seed

VERSION = versions.text(versions.MAX)
BIN = pathlib.Path(sys.executable).parent

pytestmark = suites.described_clients

LIFE_OF_A_SHARE = """\
    import time

    from generated import Client
    from generated.api.shares import shares_create, shares_delete, shares_show
    from generated.models import (
        SharesCreateBody,
        SharesCreateBodyShare,
        SharesCreateXOpenStackManilaAPIVersion,
        SharesDeleteXOpenStackManilaAPIVersion,
        SharesShowXOpenStackManilaAPIVersion,
    )

    def show():
        return shares_show.sync_detailed(
            created.share.id,
            client=client,
            x_open_stack_manila_api_version=(
                SharesShowXOpenStackManilaAPIVersion.VALUE_0
            ),
        )

    def wait_until(is_true):
        end = time.monotonic() + 60
        while not is_true(show()):
            assert time.monotonic() < end, show()
            time.sleep(0.05)

    client = Client(base_url=URL)
    share = SharesCreateBodyShare(
        share_proto='NFS', size=1, name='generated', is_public=False
    )
    created = shares_create.sync(
        client=client,
        body=SharesCreateBody(share=share),
        x_open_stack_manila_api_version=(
            SharesCreateXOpenStackManilaAPIVersion.VALUE_0
        ),
    )
    wait_until(lambda answer: answer.parsed.share.status == 'available')
    assert show().parsed.share.name == 'generated'
    deleted = shares_delete.sync_detailed(
        created.share.id,
        client=client,
        x_open_stack_manila_api_version=(
            SharesDeleteXOpenStackManilaAPIVersion.VALUE_0
        ),
    )
    assert deleted.status_code == 202
    wait_until(lambda answer: answer.status_code == 404)
"""


@pytest.fixture(scope='module')
def installation(tmp_path_factory):
    with new_installation(
        tmp_path_factory.mktemp('described') / 'installation',
        options='default_share_type = default',
    ) as installation:
        installation.start()
        installation.rest().make_default_type()
        yield installation


def run(*command, cwd):
    ended = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=os.environ | {'PATH': f'{BIN}{os.pathsep}{os.environ["PATH"]}'},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert ended.returncode == 0, ended.stdout[-5000:]
    return ended.stdout


def test_generated_client_creates_shows_and_deletes_a_share(installation, tmp_path):
    description = installation.rest().get('/openapi.json')
    (tmp_path / 'description.json').write_text(json.dumps(description))
    printed = run(
        *(BIN / 'openapi-python-client', 'generate'),
        *('--path', 'description.json', '--output-path', 'generated'),
        *('--meta', 'none'),
        cwd=tmp_path,
    )
    # It warns of each operation, or part of one, that it leaves out.
    assert 'WARNING' not in printed, printed
    program = tmp_path / 'program.py'
    program.write_text(
        f'URL = {installation.root!r}\n{textwrap.dedent(LIFE_OF_A_SHARE)}'
    )
    run(sys.executable, '-W', 'ignore', program, cwd=tmp_path)


def test_no_described_request_is_answered_by_a_server_error(installation, tmp_path):
    """Values at the limits of each key, and sequences of operations."""
    run(
        *(BIN / 'schemathesis', 'run', f'{installation.url}/openapi.json'),
        *('--header', f'{versions.HEADER}: {VERSION}'),
        *('--header', f'{versions.EXPERIMENTAL_HEADER}: true'),
        *('--phases', 'coverage,stateful', '--max-examples', '10'),
        *('--checks', 'not_a_server_error', '--seed', f'{seed()}'),
        cwd=tmp_path,
    )
