"""What `adapting.py` measured: way, setting, what; a number for each seed."""

KEPT = """
all_weights 0.00025 Croatian 0.550 0.555 0.560 0.550 0.540
all_weights 0.00025 24_locales 0.980 0.980 0.980 0.980 0.985
all_weights 0.00035 Croatian 0.715 0.760 0.720 0.710 0.745
all_weights 0.00035 24_locales 0.960 0.960 0.960 0.970 0.965
all_weights 0.0005 Croatian 0.900 0.925 0.865 0.950 0.875
all_weights 0.0005 24_locales 0.965 0.960 0.960 0.960 0.950
all_weights 0.0007 Croatian 0.970 0.970 0.970 0.970 0.970
all_weights 0.0007 24_locales 0.920 0.925 0.945 0.940 0.930
all_weights 0.001 Croatian 0.980 0.975 0.970 0.975 0.965
all_weights 0.001 24_locales 0.855 0.835 0.900 0.855 0.895
all_weights 0.0014 Croatian 0.975 0.975 0.975 0.980 0.985
all_weights 0.0014 24_locales 0.745 0.755 0.800 0.790 0.730
all_weights 0.002 Croatian 0.980 0.975 0.975 1.000 0.985
all_weights 0.002 24_locales 0.545 0.655 0.640 0.665 0.625
rank_1 0.005 Croatian 0.735 0.675 0.695 0.695 0.675
rank_1 0.005 24_locales 0.915 0.915 0.865 0.860 0.875
rank_1 0.007 Croatian 0.910 0.815 0.825 0.830 0.860
rank_1 0.007 24_locales 0.890 0.890 0.835 0.755 0.865
rank_1 0.01 Croatian 0.960 0.950 0.970 0.960 0.970
rank_1 0.01 24_locales 0.765 0.830 0.690 0.720 0.710
rank_1 0.014 Croatian 0.975 0.980 0.975 0.990 0.980
rank_1 0.014 24_locales 0.640 0.665 0.645 0.660 0.720
rank_1 0.02 Croatian 0.975 0.970 0.990 0.985 0.985
rank_1 0.02 24_locales 0.640 0.620 0.540 0.520 0.575
rank_8 0.001 Croatian 0.590 0.545 0.570 0.525 0.550
rank_8 0.001 24_locales 0.950 0.975 0.950 0.990 0.955
rank_8 0.0014 Croatian 0.800 0.825 0.840 0.770 0.815
rank_8 0.0014 24_locales 0.935 0.950 0.935 0.975 0.945
rank_8 0.002 Croatian 0.955 0.955 0.945 0.960 0.950
rank_8 0.002 24_locales 0.925 0.935 0.910 0.945 0.940
rank_8 0.0028 Croatian 0.980 0.965 0.980 0.970 0.980
rank_8 0.0028 24_locales 0.800 0.815 0.855 0.855 0.785
rank_8 0.004 Croatian 0.980 0.975 0.975 0.980 0.985
rank_8 0.004 24_locales 0.695 0.730 0.720 0.700 0.630
"""
