"""What `other_weights.py` measured: way, setting, what; a number for each seed."""

KEPT = """
search 0.3 right 1.000 1.000 1.000 1.000 1.000
search 0.3 probability 0.001 0.001 0.001 0.001 0.001
search 0.3 apart,1 0.890 0.882 0.885 0.889 0.884
search 0.3 favourite,1 0.995 0.993 0.987 0.999 0.991
search 0.3 apart,2 0.910 0.915 0.905 0.923 0.917
search 0.3 favourite,2 0.973 0.987 0.967 0.989 0.976
wish 0.3 right 0.960 1.000 1.000 1.000 1.000
trained 0.003 right 0.960 0.955 0.995 1.000 0.995
trained 0.003 apart,1 0.653 0.612 0.581 0.567 0.594
trained 0.003 apart,2 0.456 0.404 0.381 0.424 0.392
"""
