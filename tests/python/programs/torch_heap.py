"""A training of six steps that prints what the agent asks of the allocator."""

import msdbg_agent
import torch

heap = msdbg_agent._agents["torch"].training._heap
print("heap", "is the agent's" if heap._library else "is left alone")


class Library:
    def mallopt(self, which, value):
        print("heap", "mallopt", which, value)

    def malloc_trim(self, rest):
        print("heap", "malloc_trim", rest)


if heap._library:
    heap._library = Library()
net = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(6):
    optimizer.zero_grad()
    net(torch.ones(3, 4)).sum().backward()
    optimizer.step()
    print("heap", "step", step)
