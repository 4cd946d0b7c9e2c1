"""What `Twins` compares: folded texts, their hashes, and tables of them."""
