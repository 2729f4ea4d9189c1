import pytest

from manila_lite.db.session import Database
from tests.functional.db import query_plans
from tests.support import databases


@pytest.fixture(scope='module', params=databases.KINDS)
def db(request, tmp_path_factory):
    """A database that all tests of a module share.

    `fill(session)` of the module inserts its rows, those of `TABLES`.
    """
    with databases.temporary_database(
        request.param, tmp_path_factory.mktemp('database')
    ) as url:
        databases.create_tables(url)
        db = Database(url)
        try:
            if hasattr(request.module, 'fill'):
                db.write(request.module.fill)
                db.write(query_plans.analyze, *request.module.TABLES)
            yield db
        finally:
            db.dispose()
