"""Tests with limits of their device memory, for PyTorch: run by test_pytest_torch_peers.py."""

import asyncio
import os

import anyio
import anyio.lowlevel
import pytest
import torch


@pytest.mark.limit_growth_per_step("100KB")
@pytest.mark.parametrize("leaks", [True, False], ids=["leaks", "healthy"])
def test_list(peakline_profile, leaks):
    held = []
    for _ in peakline_profile.steps(12):
        if not leaks:
            held.clear()
        held.append(torch.ones(192, 1024) * 2)


@pytest.mark.limit_device_memory("16MB")
@pytest.mark.parametrize("count", [256, 16])
def test_temporary(count):
    rows = torch.ones(count, 128)
    assert float((rows[:, None, :] - rows[None, :, :]).sum()) == 0


@pytest.fixture
def weights():
    return torch.ones(1024, 1024, 5)


@pytest.mark.limit_device_memory("16MB")
def test_fixture(weights):
    assert weights.shape[0] == 1024


@pytest.mark.asyncio
@pytest.mark.limit_device_memory("16MB")
@pytest.mark.parametrize("count", [256, 16])
async def test_async(count):
    await asyncio.sleep(0)
    rows = torch.ones(count, 128)
    await asyncio.sleep(0)
    assert float((rows[:, None, :] - rows[None, :, :]).sum()) == 0


@pytest.mark.anyio
@pytest.mark.limit_growth_per_step("100KB")
@pytest.mark.parametrize("leaks", [True, False], ids=["leaks", "healthy"])
async def test_anyio(peakline_profile, leaks):
    held = []
    for _ in peakline_profile.steps(12):
        await anyio.lowlevel.checkpoint()
        if not leaks:
            held.clear()
        held.append(torch.ones(192, 1024) * 2)


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.mark.peakline(baseline=True)
def test_base():
    rows = int(os.environ.get("ROWS", "1000"))
    assert torch.ones(rows, 1000).sum() > 0


@pytest.mark.limit_device_memory("16MB")
def test_profiles_itself():
    with torch.profiler.profile(profile_memory=True):
        torch.ones(3)


@pytest.mark.limit_program_memory("16MB")
def test_no_program():
    torch.ones(3)


def test_reads(peakline_profile):
    with peakline_profile.step():
        torch.ones(1024, 1024)
    (peak,) = peakline_profile.memory().allocators
    assert peak.peak_bytes >= 4 << 20
    assert peakline_profile.path.name.endswith(".pt.trace.json")
