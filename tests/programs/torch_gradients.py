"""Records ``per_example_NAME``: ``python torch_gradients.py NAME OUT``."""

import sys

import torch
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.profiler import ProfilerActivity, profile, schedule

torch.manual_seed(0)
net = nn.Linear(300, 20)
weights = list(net.parameters())
named = dict(net.named_parameters())


def loss_of(x, y):
    return nn.functional.cross_entropy(net(x), y)


def collect(x, y):
    rows = [torch.autograd.grad(loss_of(x[i : i + 1], y[i : i + 1]), weights) for i in range(8)]
    return [torch.stack(one).mean(0) for one in zip(*rows, strict=True)]


def one_loss(params, x, y):
    return nn.functional.cross_entropy(functional_call(net, params, (x[None],)), y[None])


def all_at_once(x, y):
    values = {name: one.detach() for name, one in named.items()}
    each = vmap(grad(one_loss), (None, 0, 0))(values, x, y)
    return [one.mean(0) for one in each.values()]


def of_the_mean(x, y):
    return torch.autograd.grad(loss_of(x, y), weights)


def train(gradients):
    x, y = torch.randn(8, 300), torch.randint(0, 20, (8,))
    for weight, gradient in zip(weights, gradients(x, y), strict=True):
        weight.data.sub_(gradient, alpha=0.1)
        weight.grad = None


def ensemble(x, y):
    for model in models:
        nn.functional.cross_entropy(model(x), y).backward()
    return [parameter.grad for model in models for parameter in model.parameters()]


models = [nn.Linear(300, 20) for _ in range(8)] if sys.argv[1] == "ensemble" else []
weights = [one for model in models for one in model.parameters()] or weights
which = {"loop": collect, "vmap": all_at_once, "healthy": of_the_mean, "ensemble": ensemble}
which = which[sys.argv[1]]
train(which)
with profile(
    activities=[ProfilerActivity.CPU],
    schedule=schedule(wait=0, warmup=1, active=3, repeat=1),
    on_trace_ready=lambda p: p.export_chrome_trace(sys.argv[2]),
    profile_memory=True,
    record_shapes=True,
    with_stack=True,
) as profiler:
    for _ in range(4):
        train(which)
        profiler.step()
