import pytest

from tests.functional.quota import quota_rows


@pytest.fixture
def types(db):
    db.write(quota_rows.add_types)
