"""Runs a function in some processes that load its module once."""

import multiprocessing
import sys


def run_forked(work, count, folder, seconds):
    """In a process of its own, without threads: fork `count` that call `work(rank, folder)`, and end as they do."""
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=work, args=(rank, folder)) for rank in range(count)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(seconds)
        if process.is_alive():
            process.kill()
            process.join()
    sys.exit(any(process.exitcode != 0 for process in processes))
