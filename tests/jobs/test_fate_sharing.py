"""Processes that end with the one that started them, however that ends. They would sleep for ever otherwise."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from naysay.jobs._fate_sharing import end_guarded, guarded

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere Ray does it")
SLEEP = [sys.executable, "-c", "import time; time.sleep(3600)"]
# A process that starts another in a session of its own, as Ray does, and prints the ids of both.
FAMILY = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"], start_new_session=True)
print(os.getpid(), child.pid, flush=True)
time.sleep(3600)
"""
DRIVER = f"""
import os, subprocess, sys, time
from naysay.jobs._fate_sharing import guarded
before = subprocess.Popen({SLEEP!r})
with guarded():
    child = subprocess.Popen([sys.executable, "-c", {FAMILY!r}], stdout=subprocess.PIPE, text=True)
    inside = child.stdout.readline().split()
after = subprocess.Popen({SLEEP!r})
forked = os.fork()  # holds the same files open
if forked:
    print(before.pid, after.pid, forked, *inside, flush=True)
time.sleep(3600)
"""


def alive(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def all_end(processes):
    """Whether they end; the limit is only there for a test that fails."""
    end = time.monotonic() + 300
    while any(map(alive, processes)) and time.monotonic() < end:
        time.sleep(0.02)
    return not any(map(alive, processes))


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM])
def test_the_driver_is_killed(sent):
    with subprocess.Popen([sys.executable, "-c", DRIVER], stdout=subprocess.PIPE, text=True) as driver:
        before, after, forked, *inside = map(int, driver.stdout.readline().split())
        try:
            assert all(map(alive, (before, after, forked, *inside)))
            driver.send_signal(sent)
            assert all_end(inside)
            assert all(map(alive, (before, after, forked)))  # others do not belong to it
        finally:
            for process in (before, after, forked):
                os.kill(process, signal.SIGKILL)


def test_the_end_of_a_job():
    with guarded() as guard:
        child = subprocess.Popen(SLEEP)
    other = subprocess.Popen(SLEEP)
    end_guarded(guard)
    assert child.wait(300) == -signal.SIGKILL
    assert guard.poll() == 0
    assert other.poll() is None
    other.kill()
    other.wait()
    assert not any("NAYSAY_STARTED_BY" in name for name in os.environ)


def test_an_error_at_the_start():
    def fails():
        with guarded():
            started.append(subprocess.Popen(SLEEP))
            raise RuntimeError("no Ray")

    started = []
    with pytest.raises(RuntimeError, match="no Ray"):
        fails()
    assert started[0].wait(300) == -signal.SIGKILL
    assert "NAYSAY_STARTED_BY" not in os.environ
