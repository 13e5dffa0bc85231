"""The benchmarks of ``make bench``, which print figures and ratios and assert nothing."""
