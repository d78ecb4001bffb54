"""The book's parts, one concept each: what a chapter teaches.

Nothing here trains, reads a file, or knows a whole model; what is fast and not obvious
lives in `tformer.fast`.
"""
