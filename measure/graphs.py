"""The CPU time of a launch and of a replayed graph, and the gap between two kernels in each."""

from __future__ import annotations

import time

import torch

from measure._gpu import wait


def measure(device: str, quick: bool) -> dict:
    """Seconds of a row of small kernels, launched one by one and as a graph."""
    kernels, repeats = (20, 3) if quick else (200, 50)
    row = torch.zeros(256, device=device)

    def step():
        for _ in range(kernels):
            row.add_(1.0)

    found = {
        "kernels": kernels,
        "eager_cpu_s_per_kernel": cpu_s(step, device, repeats) / kernels,
        "eager_s_per_kernel": whole_s(step, device, repeats) / kernels,
    }
    if device == "cuda":
        replay = captured(step).replay
        found |= {
            "graph_launch_cpu_s": cpu_s(replay, device, repeats),
            "graph_s_per_kernel": whole_s(replay, device, repeats) / kernels,
        }
        found |= memory_of_a_graph(step)
    return found


def cpu_s(work, device, repeats) -> float:
    """Seconds until the call returns; the minimum of several, since other programs can only add time."""
    times = []
    for _ in range(repeats):
        wait(device)
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)


def whole_s(work, device, repeats) -> float:
    """Seconds per call until the GPU is finished, over consecutive calls."""
    work()
    wait(device)
    began = time.perf_counter()
    for _ in range(repeats):
        work()
    wait(device)
    return (time.perf_counter() - began) / repeats


def captured(step):
    """The step as a graph, warmed up on a side stream as PyTorch requires."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph


def memory_of_a_graph(step) -> dict:
    """The GPU memory of a graph and the duration of its capture."""
    wait("cuda")
    free_bytes, began = torch.cuda.mem_get_info()[0], time.perf_counter()
    graph = captured(step)
    graph.replay()
    wait("cuda")
    return {
        "graph_bytes": max(0, free_bytes - torch.cuda.mem_get_info()[0]),
        "capture_s": time.perf_counter() - began,
    }
