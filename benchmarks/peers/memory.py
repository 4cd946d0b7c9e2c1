"""How much memory one call needs, read from the kernel: standard library only, so that any interpreter can use it."""

import ctypes
from collections.abc import Callable
from pathlib import Path

STATUS = Path("/proc/self/status")
CLEAR_REFS = Path("/proc/self/clear_refs")


def peak_extra_bytes(call: Callable[[], object]) -> int | None:
    """Run ``call`` once; the highest resident memory it reached, above the level just before it.

    The kernel keeps the high-water mark of resident memory (VmHWM); writing 5 to clear_refs lowers it to the present
    level. It needs no sampling thread, counts what libraries allocate outside Python, and is good to some dozens of
    pages. Run ``call`` once beforehand, so that what it loads for ever is not counted. None where the system has no
    such files (anything but Linux, or a container that forbids the reset).
    """
    # Freed small blocks stay with the process, and a call that fits into them would seem to need nothing at all.
    give_back = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it, others may not
    if give_back is not None:
        give_back(0)
    try:
        CLEAR_REFS.write_text("5")
        before = _high_water()
    except OSError:
        call()
        return None
    call()
    return _high_water() - before


def _high_water() -> int:
    """VmHWM in bytes; the kernel gives it in kB of 1024."""
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024
