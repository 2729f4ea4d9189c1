from tests.support.databases import database_url
from tests.support.databases import kept_database

__all__ = ['database_url', 'kept_database']
