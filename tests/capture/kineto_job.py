# SPDX-License-Identifier: Apache-2.0
"""One rank of a PyTorch program on the CPU: kineto_job.py RANK RANKS FILE.  Ends with its standard input.

The ranks meet by FILE (gloo), and train a small model until then; Kineto's thread waits for work meanwhile."""
import sys
import threading
import time

import torch
import torch.distributed as dist

time.sleep(1)
print("imported", flush=True)
rank, ranks, file = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=ranks)
model = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
ended = torch.zeros(1)


def wait_for_end():
    sys.stdin.read()
    ended[0] = 1


threading.Thread(target=wait_for_end, daemon=True).start()
print("ready", flush=True)
while True:
    loss = model(torch.ones(16, 32)).sum()
    loss.backward()
    for p in model.parameters():
        dist.all_reduce(p.grad)
    optimizer.step()
    optimizer.zero_grad()
    time.sleep(0.01)
    over = ended.clone()
    dist.all_reduce(over)  # all of them end, or none
    if over.item():
        break
dist.destroy_process_group()
