"""What `sinks.py` measured: way, setting, what; a number for each seed."""

KEPT = """
layer 1 share 0.001 0.001 0.001 0.001 0.001
layer 2 share 0.001 0.001 0.002 0.001 0.002
layer 3 share 0.000 0.000 0.000 0.000 0.000
layer 4 share 0.001 0.001 0.001 0.002 0.001
even 0 share 0.011 0.011 0.011 0.011 0.011
all 128 loss 2.826 2.783 2.819 2.840 2.799
newest 4 loss 4.177 4.135 4.180 4.246 4.097
first_kept 4 loss 4.361 4.291 4.321 4.426 4.291
newest 8 loss 3.687 3.637 3.616 3.669 3.684
first_kept 8 loss 3.788 3.766 3.690 3.758 3.770
newest 16 loss 3.119 3.058 3.092 3.120 3.178
first_kept 16 loss 3.177 3.123 3.145 3.167 3.250
newest 32 loss 2.872 2.821 2.849 2.877 2.841
first_kept 32 loss 2.877 2.822 2.853 2.876 2.839
newest 64 loss 2.835 2.790 2.820 2.838 2.807
first_kept 64 loss 2.835 2.789 2.821 2.838 2.806
"""
