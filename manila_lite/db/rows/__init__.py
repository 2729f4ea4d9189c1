"""The rows that queries return to other layers, by noun.

Each class names the columns that its readers may rely on; a row of the
database has them all, and so does the small object of a test. Rows are
read, never written to. `host` is host@backend#pool; it is null until the
instance is placed, but typed as set where readers only act on placed ones.
"""

from manila_lite.db.rows.access import *
from manila_lite.db.rows.figures import *
from manila_lite.db.rows.pages import *
from manila_lite.db.rows.servers import *
from manila_lite.db.rows.services import *
from manila_lite.db.rows.shares import *
from manila_lite.db.rows.snapshots import *
