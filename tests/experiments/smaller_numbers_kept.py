"""What `smaller_numbers.py` measured: way, setting, what; a number for each seed."""

KEPT = """
float32 32 loss 0.690 0.688 0.689 0.674 0.678
rows 8 added -0.000 0.000 0.000 0.000 0.000
rows 6 added 0.000 -0.000 0.000 0.000 0.000
rows 5 added 0.001 0.001 0.001 0.000 0.000
rows 4 added 0.002 0.002 0.003 0.009 0.001
rows 3 added 0.017 0.026 0.013 0.007 0.010
rows 2 added 0.323 0.352 0.666 0.539 0.453
groups_of_16 8 added -0.000 0.000 0.000 0.000 -0.000
groups_of_16 6 added 0.000 -0.000 0.000 0.000 0.000
groups_of_16 5 added 0.000 0.000 0.001 0.000 0.000
groups_of_16 4 added 0.002 0.005 0.001 0.008 0.001
groups_of_16 3 added 0.008 0.017 0.005 0.006 0.007
groups_of_16 2 added 0.181 0.129 0.369 0.156 0.221
cache 8 added 0.000 0.000 -0.000 -0.000 0.000
cache 4 added 0.007 0.006 0.006 0.004 0.004
cache 3 added 0.033 0.042 0.024 0.095 0.015
cache 2 added 0.514 0.669 0.360 0.867 0.631
"""
