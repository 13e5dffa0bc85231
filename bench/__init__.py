"""What ``make bench`` runs: it prints figures and ratios and asserts nothing."""
