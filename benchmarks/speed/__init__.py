"""Speed: draws, losses, the start of a process, and how they grow."""
