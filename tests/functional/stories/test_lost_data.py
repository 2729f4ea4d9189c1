"""The directories of a back end are lost while the service is stopped."""

import pathlib
import shutil

from tests.functional.stories import suites
from tests.functional.stories.conftest import local_installation
from tests.support.processes import wait_until

pytestmark = suites.failures


def test_share_without_data_is_not_available_after_a_restart(tmp_path):
    with local_installation(tmp_path) as (installation, _, _):
        user = installation.rest('admin')
        kept, lost = (user.create_available()['id'] for _ in range(2))
        installation.stop()
        installation.start()  # nothing about the back end has changed since
        (location,) = user.get(f'/shares/{lost}/export_locations')['export_locations']
        installation.stop()
        shutil.rmtree(pathlib.Path(location['path']).parent)
        installation.start()
        wait_until(lambda: user.show(lost)['status'] == 'error', 'the loss is shown')
        assert user.show(kept)['status'] == 'available'
        told = user.get('/messages')['messages']
        assert [row['resource_id'] for row in told] == [lost]
        user.delete(lost)
        assert user.wait_at_rest(lost)['status'] == 'error_deleting'
        user.act(lost, 'force_delete')
        user.wait_gone(lost)
