"""The page at /ui, for administrators and, with fewer rows, for users.

Its requests go through the same authentication and policies as those of the
API: it reads and acts through the application of the API, in this process.
"""

PREFIX = '/ui'
