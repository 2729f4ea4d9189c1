from tests.support.databases import database_url
from tests.support.databases import shared_database

__all__ = ['database_url', 'shared_database']
