"""The numbers of the page What should serve it?."""

from engine.validation import accuracy, points

# -- what single sentences say -------------------------------------------------------------------------------
# the least share of the measured output that we say, gpt-oss-120b
least_of_output = min(points.shares("deployments"))
most_of_output = max(points.shares("deployments"))  # the largest share of it
least_nvidia = min(accuracy.shares("h100-sxm", "h200"))  # the least mean share on H100s and H200s
most_nvidia = max(accuracy.shares("h100-sxm", "h200"))  # the largest mean share on H100s and H200s
least_amd = min(accuracy.shares("mi300x"))  # the least mean share on MI300X
most_amd = max(accuracy.shares("mi300x"))  # the largest mean share on MI300X
# our share of SGLang's decoding of DeepSeek-V3 on 72 H100s
spread_h100 = min(points.shares("spread_experts", "h100-sxm"))
spread_h800 = max(points.shares("spread_experts", "h800"))  # our share of a day of DeepSeek's own service
