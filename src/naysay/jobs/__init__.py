"""JOBS: mining on disk. A job is a folder; it can be killed and resumed, and gives the same bytes."""
