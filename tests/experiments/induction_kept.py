"""What `induction.py` measured: way, setting, what; a number for each seed."""

KEPT = """
one_layer 0.003 loss 1.734 1.703 1.727 1.748 1.722
one_layer 0.01 loss 1.697 1.678 1.692 1.700 1.697
one_layer 0.03 loss 1.759 1.774 1.763 1.762 1.801
two_layers 0.01 loss 0.152 0.175 0.152 0.150 0.164
two_layers 0.01 before,head 2.000 2.000 2.000 2.000 2.000
two_layers 0.01 before,most 0.990 0.996 0.982 0.990 0.982
two_layers 0.01 before,least 0.070 0.020 0.023 0.073 0.031
two_layers 0.01 after,head 1.000 1.000 2.000 1.000 2.000
two_layers 0.01 after,most 0.999 0.999 0.993 0.987 0.987
two_layers 0.01 after,least 0.650 0.762 0.748 0.752 0.752
"""
