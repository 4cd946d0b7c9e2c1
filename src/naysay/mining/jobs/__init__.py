"""Jobs on disk: a folder that is resumed, inputs, parts, and the training file at the end."""
