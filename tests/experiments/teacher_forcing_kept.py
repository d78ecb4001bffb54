"""What `teacher_forcing.py` measured: way, setting, what; a number for each seed."""

KEPT = """
no_shift 40 loss 0.001 0.001 0.001 0.001 0.001
no_shift 40 words 0.000 0.000 0.000 0.000 0.000
all_letters 200 true 0.832 0.828 0.861 0.854 0.850
all_letters 200 own 0.680 0.668 0.735 0.707 0.689
up_to_its_first_mistake 200 true 0.861 0.860 0.885 0.876 0.874
up_to_its_first_mistake 200 own 0.861 0.860 0.885 0.876 0.874
after_it 200 true 0.774 0.769 0.804 0.805 0.794
after_it 200 own 0.312 0.319 0.381 0.326 0.261
planted 200 true 0.672 0.753 0.763 0.786 0.716
planted 200 wrong 0.247 0.217 0.197 0.211 0.231
"""
