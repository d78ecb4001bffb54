"""What `induction.py` measured: way, setting, what; a number for each seed."""

KEPT = """
one_layer 0.003 loss 1.731 1.701 1.727 1.748 1.723
one_layer 0.01 loss 1.694 1.678 1.688 1.701 1.697
one_layer 0.03 loss 1.759 1.781 1.763 1.771 1.796
two_layers 0.01 loss 0.153 0.174 0.156 0.148 0.167
two_layers 0.01 before,head 2.000 2.000 2.000 2.000 2.000
two_layers 0.01 before,most 0.990 0.996 0.982 0.990 0.982
two_layers 0.01 before,least 0.072 0.019 0.024 0.073 0.030
two_layers 0.01 after,head 1.000 1.000 2.000 1.000 2.000
two_layers 0.01 after,most 0.998 0.999 0.988 0.991 0.989
two_layers 0.01 after,least 0.650 0.779 0.743 0.752 0.750
"""
