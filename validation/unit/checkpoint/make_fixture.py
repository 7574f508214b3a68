#!/usr/bin/env python3
"""Writes python.safetensors by the format's own library: every type that our reader takes, no dimensions, no elements, metadata.

    pip install torch safetensors; python3 validation/unit/checkpoint/make_fixture.py
"""

from pathlib import Path

import torch
from safetensors.torch import save_file

save_file(
    {
        "doubles": torch.tensor([0.1, -2.0, 1e300], dtype=torch.float64),
        "matrix": torch.arange(6, dtype=torch.float32).reshape(2, 3) / 2,
        "scalar": torch.tensor(-7.5, dtype=torch.float32),
        "nothing": torch.empty((0, 4), dtype=torch.float32),
        "halves": torch.tensor([[1.0, -2.0], [0.5, 3.0]], dtype=torch.bfloat16),
        "large": torch.tensor([2**40 + 1, -1], dtype=torch.int64),
        "small": torch.tensor([3, -4, 5], dtype=torch.int32),
        "bytes": torch.tensor([0, 255, 7], dtype=torch.uint8),
    },
    Path(__file__).parent / "python.safetensors",
    metadata={"made by": "safetensors' Python library", "é": "\u20ac"},
)
