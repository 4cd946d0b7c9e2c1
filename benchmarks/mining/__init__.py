"""Mining: time and memory of search, mining and jobs."""
