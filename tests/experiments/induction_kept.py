"""What `induction.py` measured: way, setting, what; a number for each seed."""

KEPT = """
one_layer 0.003 loss 1.731 1.701 1.727 1.748 1.723
one_layer 0.01 loss 1.694 1.678 1.688 1.701 1.697
one_layer 0.03 loss 1.759 1.781 1.763 1.771 1.794
two_layers 0.01 loss 0.151 0.166 0.148 0.148 0.155
two_layers 0.01 before,head 2.000 2.000 2.000 2.000 2.000
two_layers 0.01 before,most 0.989 0.986 0.985 0.992 0.990
two_layers 0.01 before,least 0.078 0.051 0.063 0.089 0.033
two_layers 0.01 after,head 1.000 1.000 2.000 1.000 2.000
two_layers 0.01 after,most 0.999 0.998 0.994 0.970 0.997
two_layers 0.01 after,least 0.625 0.752 0.750 0.752 0.690
"""
