"""What `recall.py` measured: way, setting, what; a number for each seed."""

KEPT = """
softmax 0.01 once 1.000 1.000 1.000 1.000 1.000
rotary 0.01 once 1.000 1.000 1.000 1.000 1.000
linear 0.01 once 1.000 1.000 1.000 1.000 1.000
linear 0.03 once 1.000 1.000 1.000 1.000 1.000
linear 0.1 once 1.000 1.000 1.000 1.000 0.998
linear 0.3 once 1.000 1.000 1.000 1.000 1.000
delta 0.01 once 0.781 0.931 1.000 0.998 0.999
delta 0.03 once 0.998 1.000 1.000 0.999 1.000
delta 0.1 once 1.000 0.979 0.657 0.981 1.000
delta 0.3 once 0.158 0.070 0.064 0.066 0.283
softmax 0.01 twice 0.528 0.521 0.523 0.528 0.543
rotary 0.01 twice 0.996 0.995 0.995 0.993 0.995
linear 0.01 twice 0.538 0.516 0.516 0.517 0.522
linear 0.03 twice 0.550 0.530 0.532 0.524 0.531
linear 0.1 twice 0.542 0.513 0.511 0.503 0.547
linear 0.3 twice 0.481 0.482 0.478 0.555 0.480
delta 0.01 twice 0.859 0.771 0.554 0.927 0.993
delta 0.03 twice 1.000 1.000 0.811 0.991 1.000
delta 0.1 twice 1.000 0.999 1.000 0.994 1.000
delta 0.3 twice 0.063 0.985 0.062 0.160 0.717
"""
