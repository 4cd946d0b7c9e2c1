"""The compiled loops: serial, without the GIL, over a range of rows, and split over our own threads.

A loop is a function `loop(start, stop, ...)` that fills rows start to stop of its output. `threads.in_rows`
runs it. Randomness inside is a hash of (key, row, counter), so that a row's draw depends on nothing else.
"""
