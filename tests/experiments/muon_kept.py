"""What `muon.py` measured: way, setting, what; a number for each seed."""

KEPT = """
adamw 0.005 loss 1.965 1.959 1.978 1.952 1.942
adamw 0.01 loss 1.980 1.868 1.867 1.868 1.885
adamw 0.02 loss 2.390 2.306 1.972 2.085 1.934
adamw 0.04 loss 2.786 2.683 2.496 2.451 2.717
muon 0.01 loss 1.801 1.807 1.809 1.780 1.782
muon 0.02 loss 1.660 1.649 1.661 1.625 1.646
muon 0.04 loss 1.548 1.597 1.564 1.510 1.565
muon 0.08 loss 1.604 1.591 1.557 1.533 1.552
every_matrix 0.01 loss 2.106 2.129 2.123 2.098 2.106
every_matrix 0.02 loss 1.621 1.661 1.626 1.609 1.613
every_matrix 0.04 loss 1.515 1.555 1.498 1.522 1.509
every_matrix 0.08 loss 1.543 1.557 1.552 1.550 1.560
"""
