"""What `composition.py` measured: way, setting, what; a number for each seed."""

KEPT = """
previous-induction 0.01 Q 0.901 0.872 0.931 0.845 0.920
previous-induction 0.01 K 1.346 1.328 1.365 1.365 1.404
previous-induction 0.01 V 0.606 0.628 0.588 0.515 0.565
previous-second 0.01 Q 1.085 0.993 1.099 1.046 1.034
previous-second 0.01 K 1.147 1.051 1.124 1.130 1.107
previous-second 0.01 V 0.607 0.569 0.577 0.581 0.613
other-induction 0.01 Q 0.522 0.538 0.523 0.555 0.538
other-induction 0.01 K 0.947 0.922 0.968 0.899 0.893
other-induction 0.01 V 0.563 0.480 0.444 0.508 0.496
other-second 0.01 Q 0.541 0.479 0.493 0.467 0.498
other-second 0.01 K 1.162 1.071 1.117 1.099 1.118
other-second 0.01 V 0.803 0.701 0.775 0.754 0.812
loss 0.01 whole 0.152 0.175 0.152 0.150 0.164
loss 0.01 without,Q 0.551 0.579 0.564 0.571 0.576
loss 0.01 without,K 0.932 1.052 0.959 1.028 0.953
loss 0.01 without,V 0.162 0.192 0.159 0.159 0.174
"""
