#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A step of PyTorch on the CPU under torch.profiler.  Usage: torch_ops.py TRACE

Writes the trace; the last line is JSON by torch's own key_averages and flop_counter: {"ops": {NAME: [COUNT, SELF_US]},
"shapes": [[NAME, SHAPES, COUNT, SELF_US, TOTAL_US]], "flops": {NAME: N}}."""
import json
import sys

import torch
from torch import nn
from torch.nn import functional
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.up, self.out = nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.ConvTranspose2d(8, 4, 2, stride=2), nn.Linear(32, 16)

    def forward(self, x):
        return self.out(self.up(self.down(x)))


def step(net, x, y):
    attention = functional.scaled_dot_product_attention(y, y, y)
    products = torch.bmm(y[0], y[1].transpose(1, 2)).sum() + torch.baddbmm(y[0], torch.ones(4, 16, 16), y[1]).sum()
    (net(x).sum() + attention.sum() + products).backward()


def main():
    torch.manual_seed(0)
    net, x, y = Net(), torch.randn(2, 3, 32, 32, requires_grad=True), torch.randn(2, 4, 16, 8, requires_grad=True)
    step(net, x, y)
    counter = FlopCounterMode(display=False)
    with counter:
        step(net, x, y)
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as prof:
        step(net, x, y)
    prof.export_chrome_trace(sys.argv[1])
    ops = {e.key: [e.count, e.self_cpu_time_total] for e in prof.key_averages() if e.key.startswith("aten::")}
    shapes = [[e.key, e.input_shapes, e.count, e.self_cpu_time_total, e.cpu_time_total]
              for e in prof.key_averages(group_by_input_shape=True) if e.key.startswith("aten::")]
    flops = {str(op).replace("aten.", "aten::"): n for op, n in counter.get_flop_counts()["Global"].items()}
    print(json.dumps({"ops": ops, "shapes": shapes, "flops": flops}))


if __name__ == "__main__":
    main()
