"""What `formats.py` measured: way, setting, what; a number for each seed."""

KEPT = """
float32 32 bits_per_character 2.254 2.221 2.237 2.249 2.248
int4_power_of_two 4.25 added 40.103 41.866 40.915 45.259 35.227
int4_nearest 4.25 added 27.506 33.774 29.511 35.886 26.007
int4_half 4.5 added 21.060 23.183 22.361 24.194 19.330
MXFP4 4.25 added 28.294 28.532 26.922 31.006 29.893
E2M1_half 4.5 added 24.346 16.558 18.085 18.367 18.537
NVFP4 4.5 added 22.352 18.506 14.876 22.613 20.252
"""
