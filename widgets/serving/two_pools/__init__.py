"""What the figures ``prefill_decode`` and ``pool_ratio`` have in common."""
