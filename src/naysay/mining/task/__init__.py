"""What `mine` and a job on disk share: a task that was checked, its line, and the stages for some of its anchors."""
