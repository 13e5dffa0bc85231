"""What a framework is: one module each, behind the ``Framework`` of ``framework``.

A module of this room that gives a ``FRAMEWORK`` is one: ``registry`` finds it, and nothing else lists it. It
says with which keys its files set what the engine knows (``fields``, for reading and for writing), which of
its keys change memory or time in a way that the engine does not model (``unmodelled``), what it can run
(``can``), and how a launch of it is read, edited and written.

``settings`` takes the entries of a file by such a table and keeps where each value came from; ``described``
is what they come to, in the engine's terms; ``known_models`` finds the model that is meant; ``writing`` and
``servers`` have what several frameworks share. What is done with a launch is ``engine.launch``'s.
"""

from engine.frameworks.registry import able, run_by_some

__all__ = ["able", "run_by_some"]
