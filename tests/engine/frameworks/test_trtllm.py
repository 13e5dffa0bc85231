"""TensorRT-LLM's file beside its command."""

import engine

FILE = "cuda_graph_config:\n  padding_enabled: true\n  max_batch_size: 128\n"
LINE = (
    "trtllm-serve serve meta-llama/Llama-3.1-70B-Instruct --backend pytorch --tp_size 8 --max_seq_len 32768"
)


def checked(file):
    return engine.check_launch({"serve.sh": LINE + " --config extra.yml", "extra.yml": file}, "h100-sxm", 8)


def test_the_file_belongs_to_it():
    """As in NVIDIA/TensorRT-LLM issue 5950; what a share in it is of is what the weights leave."""
    plain = checked(FILE)
    assert plain.verdict == "fits" and not plain.faults and plain.launch is not None
    half = checked(FILE + "kv_cache_config:\n  free_gpu_memory_fraction: 0.45\n  dtype: fp8\n")
    assert plain.parts is not None and half.parts is not None and half.launch is not None
    assert half.parts["cache"] * 2 == plain.parts["cache"]
    assert half.launch.server is not None and half.launch.server.kv_precision == "fp8"


def test_what_it_says_of_wrong_and_unmodelled_keys():
    near = checked(FILE + "kv_cache_config:\n  free_gpu_memory_fractoin: 0.5\n").ignored
    assert "did you mean kv_cache_config.free_gpu_memory_fraction?" in near[0].why
    for more in ("enable_attention_dp: true\n", "speculative_config:\n  decoding_type: MTP\n"):
        assert checked(FILE + more).verdict == "not modelled"
    assert checked(FILE + "enable_attention_dp: false\n").verdict == "fits"
    wrong = checked("kv_cache_config:\n  free_gpu_memory_fraction: x\n").faults
    assert "must be a number of at least 0, got 'x'" in str(wrong[0])
