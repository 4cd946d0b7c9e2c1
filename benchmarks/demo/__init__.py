"""Demo: what `naysay demo` prints, and how its settings were chosen."""
