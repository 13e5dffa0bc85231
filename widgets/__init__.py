"""One module per widget, named by its slug; each draws and describes what the engine computes."""

from engine.base import extras

extras.need("widgets")
