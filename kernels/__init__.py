"""The Triton kernels of lesson 17, which shows these files as they are.

`TRITON_INTERPRET=1 python -m kernels` runs them on the CPU against numpy; record/triton_tiles.py compiles one of them
for GPUs that need not be there; measure/tile_sweep.py times it on one that is. Triton decides when it is imported
whether it interprets, so each of these runs in a process of its own.
"""
