"""What makes the parts fast: nothing here is needed to understand them.

Each function equals a formula of `tformer.nn` or of torch, is tested against it, and is
never less exact than torch's own kernel. What has no such equal may not be here.
"""
