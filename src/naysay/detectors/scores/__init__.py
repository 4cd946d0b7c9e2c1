"""Scores in, from arrays, files and streams: read, counted, ordered and sketched in bounded memory."""
