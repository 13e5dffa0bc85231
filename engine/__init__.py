"""The numbers behind System ML: pure functions over floats or numpy arrays, SI units inside.

Knows no lesson, widget or colour. Import the mechanism you need: ``from engine import memory``.
"""
