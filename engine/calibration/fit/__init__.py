"""From tables of measured operations to the constants of ``engine.calibration``: ``python -m
engine.calibration.fit FOLDER``."""
