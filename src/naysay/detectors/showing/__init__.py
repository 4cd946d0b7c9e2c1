"""What `naysay thresholds` prints, draws and writes."""
