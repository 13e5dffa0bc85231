"""The static pictures of the lessons: each module has a ``draw(width, …) -> Picture``, and a fence `diagram`
names the module."""
