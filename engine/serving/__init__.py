"""Serving: prefill, decode, caches, and a server under traffic."""
