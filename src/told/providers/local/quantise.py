"""Make an ONNX network four times smaller: `python -P quantise.py from.onnx to.onnx`.

A program of its own because it needs the `onnx` package, which told installs for this one step and throws away. Run it
with -P: beside it lies a module of ours that is also called `onnx`.
"""

import os
import sys
from importlib import import_module


def quantise(source: str, target: str) -> None:
    """Write the network with int8 weights, a scale for each channel: one for each tensor loses E5 far too much."""
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    quantization = import_module("onnxruntime.quantization")
    quantization.quantize_dynamic(
        source, target, weight_type=quantization.QuantType.QInt8, per_channel=True
    )


if __name__ == "__main__":
    quantise(*sys.argv[1:])
