"""What `Incremental` and `SoftClusters` are made of: k-means, confidence, and which labels are believed."""
