"""Run functions in several threads that switch as often as Python can."""

import sys
import threading


def in_threads(*works):
    """Run each function in its own thread, all at the same time; raise the first error of any."""
    failures, start, before = [], threading.Barrier(len(works)), sys.getswitchinterval()

    def run(work):
        start.wait(60)
        try:
            work()
        except BaseException as error:  # raised below: an exception of a thread is lost otherwise
            failures.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    if failures:
        raise failures[0]
