"""Quantise an ONNX model to int8: `python -P quantise.py from.onnx to.onnx`.

This runs as its own program because it needs the `onnx` package, which is installed for this step
only. Run it with -P: a sibling module is called `onnx` too.
"""

import os
import sys
from importlib import import_module


def quantise(source: str, target: str) -> None:
    """Write the model with int8 weights per channel; per-tensor scales degrade E5 too much."""
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    quantization = import_module("onnxruntime.quantization")
    quantization.quantize_dynamic(
        source, target, weight_type=quantization.QuantType.QInt8, per_channel=True
    )


if __name__ == "__main__":
    quantise(*sys.argv[1:])
