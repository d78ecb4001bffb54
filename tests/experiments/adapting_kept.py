"""What `adapting.py` measured: way, setting, what; a number for each seed."""

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
all_weights 0.00025 Croatian 0.550 0.555 0.560 0.550 0.540
all_weights 0.00025 24_locales 0.980 0.980 0.980 0.980 0.985
all_weights 0.0005 Croatian 0.900 0.925 0.865 0.950 0.875
all_weights 0.0005 24_locales 0.965 0.960 0.960 0.960 0.950
all_weights 0.001 Croatian 0.980 0.975 0.970 0.975 0.965
all_weights 0.001 24_locales 0.855 0.840 0.900 0.855 0.895
all_weights 0.002 Croatian 0.980 0.975 0.975 1.000 0.985
all_weights 0.002 24_locales 0.545 0.655 0.635 0.665 0.625
rank_1 0.005 Croatian 0.735 0.675 0.695 0.695 0.675
rank_1 0.005 24_locales 0.915 0.915 0.865 0.860 0.875
rank_1 0.01 Croatian 0.960 0.950 0.970 0.955 0.970
rank_1 0.01 24_locales 0.765 0.830 0.690 0.720 0.705
rank_1 0.02 Croatian 0.975 0.975 0.985 0.985 0.985
rank_1 0.02 24_locales 0.630 0.630 0.540 0.520 0.575
rank_8 0.001 Croatian 0.590 0.545 0.570 0.525 0.550
rank_8 0.001 24_locales 0.950 0.975 0.950 0.990 0.955
rank_8 0.002 Croatian 0.955 0.955 0.945 0.960 0.950
rank_8 0.002 24_locales 0.925 0.935 0.910 0.945 0.940
rank_8 0.004 Croatian 0.980 0.975 0.975 0.980 0.985
rank_8 0.004 24_locales 0.695 0.730 0.720 0.700 0.630
"""
