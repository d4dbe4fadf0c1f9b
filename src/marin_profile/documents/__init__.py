"""What views are made of: documents of sections, paragraphs, lists and tables, and their renderers.

A view builds a Document once; each renderer is one module. Nothing here knows what a profile is.
"""
