"""What `vit.py` measured: way, setting, what; a number for each seed."""

KEPT = """
positions 0.006 accuracy 0.924 0.910 0.926 0.892 0.924
positions 0.012 accuracy 0.942 0.918 0.922 0.912 0.902
positions 0.024 accuracy 0.934 0.908 0.900 0.866 0.866
rearranged 0.006 accuracy 0.908 0.930 0.906 0.934 0.854
rearranged 0.012 accuracy 0.942 0.922 0.904 0.908 0.896
rearranged 0.024 accuracy 0.892 0.908 0.910 0.874 0.850
none 0.006 accuracy 0.548 0.526 0.546 0.562 0.564
none 0.012 accuracy 0.536 0.568 0.566 0.568 0.554
none 0.024 accuracy 0.552 0.584 0.520 0.448 0.560
none 0.048 accuracy 0.396 0.276 0.354 0.360 0.400
"""
