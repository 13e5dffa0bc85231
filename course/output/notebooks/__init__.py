"""Each lesson as a Jupyter notebook, made from its built page: ``write.py`` makes the files, and
``reader.py`` is what their cells import."""
