"""What `rank_collapse.py` measured: way, setting, what; a number for each seed."""

KEPT = """
pre-norm 0.002 right 0.333 0.297 0.299 0.322 0.307
pre-norm 0.002 right_480 1.000 0.998 1.000 1.000 1.000
pre-norm 0.004 right 0.377 0.394 0.360 0.373 0.364
pre-norm 0.004 right_480 1.000 1.000 1.000 1.000 1.000
pre-norm 0.008 right 0.851 0.959 0.678 0.730 0.486
pre-norm 0.008 right_480 1.000 1.000 1.000 1.000 1.000
pre-norm 0.015 right 1.000 1.000 1.000 1.000 1.000
pre-norm 0.015 right_480 1.000 1.000 1.000 1.000 1.000
pre-norm 0.03 right 0.641 1.000 0.854 0.421 0.990
pre-norm 0.03 right_480 1.000 1.000 1.000 0.257 1.000
post-norm 0.002 right 0.320 0.313 0.317 0.310 0.312
post-norm 0.002 right_480 1.000 0.999 0.978 1.000 0.992
post-norm 0.004 right 0.354 0.335 0.343 0.339 0.350
post-norm 0.004 right_480 1.000 1.000 1.000 1.000 1.000
post-norm 0.008 right 0.353 0.349 0.342 0.340 0.351
post-norm 0.008 right_480 1.000 1.000 1.000 1.000 1.000
post-norm 0.015 right 0.304 0.269 0.226 0.302 0.244
post-norm 0.015 right_480 0.986 0.352 0.266 0.429 0.332
post-norm 0.03 right 0.107 0.102 0.158 0.179 0.093
post-norm 0.03 right_480 0.099 0.093 0.155 0.223 0.102
no-residual 0.0005 right 0.312 0.291 0.301 0.304 0.308
no-residual 0.0005 right_480 0.333 0.331 0.333 0.333 0.334
no-residual 0.001 right 0.320 0.304 0.314 0.317 0.308
no-residual 0.001 right_480 0.334 0.333 0.334 0.333 0.333
no-residual 0.002 right 0.311 0.306 0.320 0.301 0.303
no-residual 0.002 right_480 0.342 0.336 0.340 0.336 0.337
no-residual 0.004 right 0.255 0.269 0.254 0.271 0.281
no-residual 0.004 right_480 0.334 0.341 0.332 0.334 0.351
no-residual 0.008 right 0.166 0.223 0.155 0.169 0.237
no-residual 0.008 right_480 0.243 0.262 0.217 0.276 0.270
no-residual 0.015 right 0.170 0.149 0.106 0.135 0.201
no-residual 0.015 right_480 0.167 0.129 0.099 0.228 0.208
no-residual 0.03 right 0.105 0.125 0.106 0.095 0.093
no-residual 0.03 right_480 0.099 0.129 0.099 0.102 0.102
one-layer 0.008 right 0.994 0.985 0.991 0.980 0.973
one-layer 0.008 right_480 1.000 1.000 1.000 1.000 1.000
one-layer 0.015 right 1.000 1.000 1.000 1.000 1.000
one-layer 0.015 right_480 1.000 1.000 1.000 1.000 1.000
one-layer 0.03 right 1.000 1.000 1.000 1.000 0.713
one-layer 0.03 right_480 1.000 1.000 1.000 1.000 1.000
"""
