"""Closed forms for memory, arithmetic, communication, schedules, cost and failures: one function per
quantity."""
