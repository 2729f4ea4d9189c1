"""The route table: every operation of the API, one row per window."""

from manila_lite.api.router import Route

# fmt: off
ROUTES = [
    Route('GET', '/', 'versions', 'index', kind='root'),
    Route('GET', '/extensions', 'extensions', 'index'),
    Route('GET', '/extensions/{alias}', 'extensions', 'show'),
]
# fmt: on
