"""Modules of make_corpus.py, from words to conversations."""
