"""What `composition.py` measured: way, setting, what; a number for each seed."""

KEPT = """
previous-induction 0.01 Q 0.904 0.873 0.933 0.847 0.923
previous-induction 0.01 K 1.345 1.327 1.364 1.366 1.405
previous-induction 0.01 V 0.605 0.629 0.591 0.513 0.566
previous-second 0.01 Q 1.083 0.996 1.096 1.048 1.036
previous-second 0.01 K 1.148 1.053 1.125 1.131 1.110
previous-second 0.01 V 0.605 0.567 0.576 0.583 0.616
other-induction 0.01 Q 0.521 0.539 0.523 0.555 0.537
other-induction 0.01 K 0.949 0.923 0.967 0.898 0.893
other-induction 0.01 V 0.560 0.478 0.444 0.508 0.499
other-second 0.01 Q 0.547 0.482 0.490 0.469 0.497
other-second 0.01 K 1.164 1.071 1.113 1.105 1.117
other-second 0.01 V 0.805 0.703 0.775 0.755 0.814
loss 0.01 whole 0.153 0.174 0.156 0.148 0.167
loss 0.01 without,Q 0.549 0.575 0.563 0.568 0.582
loss 0.01 without,K 0.927 1.047 0.961 1.019 0.955
loss 0.01 without,V 0.163 0.191 0.164 0.156 0.179
"""
