"""What `composition.py` measured: way, setting, what; a number for each seed."""

KEPT = """
previous-induction 0.01 Q 0.909 0.853 0.915 0.854 0.926
previous-induction 0.01 K 1.351 1.305 1.348 1.360 1.380
previous-induction 0.01 V 0.630 0.626 0.599 0.514 0.567
previous-second 0.01 Q 1.038 0.996 1.073 1.068 1.040
previous-second 0.01 K 1.064 1.011 1.126 1.140 1.143
previous-second 0.01 V 0.618 0.573 0.582 0.584 0.601
other-induction 0.01 Q 0.552 0.509 0.534 0.549 0.520
other-induction 0.01 K 0.935 0.899 0.946 0.901 0.885
other-induction 0.01 V 0.525 0.487 0.447 0.498 0.501
other-second 0.01 Q 0.584 0.488 0.535 0.460 0.516
other-second 0.01 K 1.103 1.099 1.125 1.102 1.077
other-second 0.01 V 0.818 0.736 0.777 0.751 0.818
loss 0.01 whole 0.151 0.166 0.148 0.148 0.155
loss 0.01 without,Q 0.555 0.586 0.530 0.582 0.553
loss 0.01 without,K 0.921 1.005 0.946 0.990 0.956
loss 0.01 without,V 0.164 0.183 0.158 0.158 0.167
"""
