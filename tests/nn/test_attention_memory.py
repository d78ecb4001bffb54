"""Attention without weights never holds T × S numbers."""

import json
import sys

import pytest

# Each case runs in a process of its own, which a fork makes cheap.
MEASURE = """
import json, os, sys, torch
from tformer import attention_weights, scaled_dot_product_attention as attend

def resident(field):
    with open("/proc/self/status") as status:
        return next(int(x.split()[1]) for x in status if x.startswith(field)) / 1e3

def measure(
    T, G=2, S=None, Dv=16, padding=False, bias=False, half=False, weights=False, **more
):
    S = S or T
    dtype = torch.bfloat16 if half else torch.float32
    q = torch.randn(1, 2, T, 16, dtype=dtype)
    k = torch.randn(1, G, S, 16, dtype=dtype)
    v = torch.randn(1, G, S, Dv, dtype=dtype)
    if padding:
        more["attn_mask"] = (torch.arange(S) < S - 99).expand(1, 1, 1, S)
    if bias:
        more["bias"] = torch.randn(1, 2, 1, S)
    attend(q[:, :, :5], k[:, :, :5], v[:, :, :5])
    before = resident("VmRSS")
    open("/proc/self/clear_refs", "w").write("5")
    output = attention_weights(q, k) if weights else attend(q, k, v, **more)
    peak = resident("VmHWM")
    return peak - before

torch.set_num_threads(1)
torch.set_grad_enabled(False)
results = []
for case in json.loads(sys.argv[1]):
    end, start = os.pipe()
    if os.fork() == 0:
        os.write(start, str(measure(**case)).encode())
        os._exit(0)
    os.close(start)
    with os.fdopen(end) as answer:
        results.append(float(answer.read()))
print(json.dumps(results))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_grows_with_the_length_only(fresh):
    """Within 100 MB above the inputs at T = 8,192, and a half of it at 4,096.

    One matrix T × S of floats, for one of the two heads, would be 67 MB at 4,096.
    """
    cases = [
        {"T": 8192, "is_causal": True},
        {"T": 4096},
        {"T": 4096, "G": 1},
        {"T": 4096, "Dv": 8},
        {"T": 4096, "Dv": 24, "is_causal": True},
        {"T": 4096, "half": True},
        {"T": 4096, "padding": True},
        {"T": 4096, "bias": True},
        {"T": 4096, "is_causal": True, "window": 300},
        {"T": 4096, "G": 1, "padding": True, "is_causal": True},
        {"T": 4096, "S": 4099, "is_causal": True},
        {"T": 4099, "S": 4096, "is_causal": True},
        {"T": 4096, "weights": True},
    ]
    *measured, matrix = json.loads(fresh(MEASURE, json.dumps(cases)))
    for case, megabytes in zip(cases, measured, strict=False):
        assert 0 < megabytes < 200 * case["T"] / 16384 + 1, (case, megabytes)
    assert matrix > 2 * 4096 * 4096 * 4 / 1e6  # the measurement sees it
