"""What `experts.py` measured: way, setting, what; a number for each seed."""

KEPT = """
dense,_equal_compute 0.03 facts 0.362 0.346 0.369 0.385 0.363
dense,_equal_compute 0.1 facts 0.408 0.400 0.391 0.396 0.381
dense,_equal_compute 0.3 facts 0.259 0.251 0.276 0.232 0.242
dense,_equal_compute 0.1 rule 0.897 0.871 0.898 0.885 0.896
dense,_equal_compute 0.3 rule 0.907 0.895 0.895 0.894 0.904
dense,_equal_compute 1.0 rule 0.863 0.853 0.854 0.867 0.853
dense,_equal_compute 0.03 facts_2000 1.000 1.000 1.000 1.000 1.000
dense,_equal_compute 0.03 rule_2000 0.887 0.887 0.871 0.872 0.864
2_of_8_experts 0.01 facts 0.474 0.462 0.485 0.466 0.470
2_of_8_experts 0.03 facts 0.724 0.699 0.743 0.708 0.685
2_of_8_experts 0.1 facts 0.646 0.653 0.704 0.660 0.681
2_of_8_experts 0.1 rule 0.898 0.905 0.886 0.893 0.887
2_of_8_experts 0.3 rule 0.909 0.918 0.893 0.890 0.907
2_of_8_experts 1.0 rule 0.701 0.859 0.782 0.799 0.830
2_of_8_experts 0.03 facts_2000 1.000 1.000 1.000 1.000 1.000
2_of_8_experts 0.03 rule_2000 0.856 0.883 0.863 0.882 0.855
dense,_equal_parameters 0.01 facts 0.570 0.560 0.591 0.560 0.571
dense,_equal_parameters 0.03 facts 0.804 0.816 0.809 0.804 0.807
dense,_equal_parameters 0.1 facts 0.787 0.794 0.801 0.798 0.790
dense,_equal_parameters 0.1 rule 0.868 0.872 0.880 0.889 0.870
dense,_equal_parameters 0.3 rule 0.884 0.867 0.891 0.878 0.893
dense,_equal_parameters 1.0 rule 0.864 0.869 0.870 0.885 0.879
dense,_equal_parameters 0.03 facts_2000 1.000 1.000 1.000 1.000 1.000
dense,_equal_parameters 0.03 rule_2000 0.877 0.881 0.882 0.882 0.873
"""
