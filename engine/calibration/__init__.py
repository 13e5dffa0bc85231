"""The few constants that are fitted to measurements, and what each was fitted on."""

from engine.calibration.constants import DEFAULT, Calibration, names

__all__ = ["DEFAULT", "Calibration", "names"]
