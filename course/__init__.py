"""The lessons as data: reading them, their fences, numbers and links, the build, the server, the book."""
