"""How early one machine can be done with jobs that come at different times and are followed by different
waits: a bound for the stages of a pipeline, each of which is such a machine."""

from __future__ import annotations

NOTHING = -1


def least_end_s(ready_s: list[float], lasts_s: list[float], after_s: list[float]) -> float:
    """The earliest end of all jobs, with what follows each of them.

    Job i can run from ``ready_s[i]``, takes ``lasts_s[i]`` of the machine and then ``after_s[i]`` elsewhere.
    Jobs may be interrupted here, so no order without interruptions ends earlier: whichever job has the most
    after it runs first (Jackson's preemptive schedule; Carlier 1982). 0 without jobs.
    """
    left_s = [lasts_s[i] for i in range(len(lasts_s))]
    now_s, least_s, busy = 0.0, 0.0, len(lasts_s)
    while busy > 0:
        first, comes_s = NOTHING, -1.0
        for i in range(len(left_s)):
            if left_s[i] > 0 and ready_s[i] <= now_s:
                if first < 0 or after_s[i] > after_s[first]:
                    first = i
            elif left_s[i] > 0 and (comes_s < 0 or ready_s[i] < comes_s):
                comes_s = ready_s[i]
        if first < 0:
            now_s = comes_s
        elif comes_s >= 0 and comes_s < now_s + left_s[first]:
            left_s[first] -= comes_s - now_s
            now_s = comes_s
        else:
            now_s += left_s[first]
            left_s[first] = 0.0
            busy -= 1
            least_s = max(least_s, now_s + after_s[first])
    return least_s
