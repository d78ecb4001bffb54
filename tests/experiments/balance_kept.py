"""What `balance.py` measured: way, setting, what; a number for each seed."""

KEPT = """
no_balance 0.01 unused 4.000 4.000 4.000 2.000 4.000
no_balance 0.01 least 0.000 0.000 0.000 0.000 0.000
no_balance 0.01 most 0.459 0.461 0.406 0.324 0.417
no_balance 0.01 known 0.110 0.112 0.108 0.151 0.119
loss 0.01 unused 0.000 0.000 0.000 0.000 0.000
loss 0.01 least 0.014 0.067 0.047 0.051 0.064
loss 0.01 most 0.184 0.190 0.182 0.242 0.208
loss 0.01 known 0.140 0.152 0.158 0.148 0.153
bias 0.01 unused 0.000 0.000 0.000 0.000 0.000
bias 0.01 least 0.114 0.101 0.092 0.108 0.073
bias 0.01 most 0.140 0.149 0.161 0.149 0.165
bias 0.01 known 0.160 0.157 0.154 0.155 0.142
no_common_part 0.01 unused 0.000 0.000 0.000 0.000 0.000
no_common_part 0.01 least 0.107 0.082 0.100 0.109 0.104
no_common_part 0.01 most 0.140 0.202 0.150 0.150 0.143
no_common_part 0.01 known 0.478 0.465 0.486 0.466 0.466
"""
