"""Everything that turns the lessons into the course: reading them, their fences, numbers and links, the
build, the server, the book."""

import engine  # noqa: F401  which says it in a line where Python is too old
