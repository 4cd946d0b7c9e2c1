"""Files: lines, tables and vectors read a block at a time, and files that appear whole or not at all."""
