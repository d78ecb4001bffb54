"""What `calibrated.py` measured: way, setting, what; a number for each seed."""

KEPT = """
nearest 4/row added 26.251 27.538 28.734 24.120 25.682
GPTQ 4/row added 11.214 14.868 11.131 9.271 15.080
GPTQ_act_order 4/row added 10.084 10.419 11.341 13.745 17.069
AWQ 4/row added 29.504 36.343 28.419 24.743 32.556
AWQ 4/row alpha 0.146 0.150 0.104 0.158 0.204
AWQ 4/row layers_outside_0_to_1 2.000 1.000 3.000 1.000 0.000
AWQ 4/row layers_at_an_end 0.000 0.000 1.000 0.000 0.000
nearest 4/32 added 21.411 22.960 22.378 24.383 19.690
GPTQ 4/32 added 10.322 9.715 6.290 8.920 5.527
GPTQ_act_order 4/32 added 9.680 6.325 7.107 11.052 9.065
AWQ 4/32 added 21.279 22.976 18.754 22.250 20.846
AWQ 4/32 alpha 0.217 0.188 0.208 0.213 0.233
AWQ 4/32 layers_outside_0_to_1 1.000 2.000 2.000 2.000 2.000
AWQ 4/32 layers_at_an_end 0.000 0.000 0.000 0.000 0.000
nearest 3/32 added 128.233 128.564 126.412 137.645 124.702
GPTQ 3/32 added 49.437 42.658 43.830 47.808 48.066
GPTQ_act_order 3/32 added 53.746 43.080 50.487 41.695 46.999
AWQ 3/32 added 125.993 121.993 130.043 138.309 117.834
AWQ 3/32 alpha 0.171 0.192 0.196 0.200 0.238
AWQ 3/32 layers_outside_0_to_1 3.000 3.000 3.000 4.000 2.000
AWQ 3/32 layers_at_an_end 0.000 0.000 0.000 0.000 0.000
"""
