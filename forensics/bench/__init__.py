"""Accuracy over cases whose truth is known: runs every case under a neutral name and scores the answers."""
