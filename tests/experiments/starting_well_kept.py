"""What `starting_well.py` measured: way, setting, what; a number for each seed."""

KEPT = """
warm-up -8 without 1.616 1.576 1.557 1.633 1.670 1.572 1.597 1.565 1.575 1.623
warm-up -8 with 1.711 1.665 1.698 1.831 2.001 1.758 1.986 1.739 1.729 1.793
warm-up -7 without 1.523 1.631 1.527 1.535 1.627 1.554 1.508 1.568 1.545 1.576
warm-up -7 with 1.587 1.584 1.572 1.569 1.733 1.647 1.695 1.574 1.595 1.681
warm-up -6 without 1.603 1.652 1.683 1.535 1.655 1.601 1.563 1.586 1.543 1.686
warm-up -6 with 1.574 1.624 1.647 1.771 1.660 1.645 1.598 1.525 1.561 1.690
warm-up -5 without 1.937 1.898 1.702 1.708 2.020 1.817 1.789 2.258 1.828 1.918
warm-up -5 with 1.726 1.818 1.582 1.834 1.791 1.731 1.574 1.613 1.623 2.193
warm-up -4.5 without 2.174 2.126 2.194 2.102 2.044 1.886 2.203 2.101 2.200 1.941
warm-up -4.5 with 1.964 2.100 1.955 1.779 2.108 1.750 1.911 1.841 1.851 2.223
warm-up -4 without 2.243 2.242 2.159 2.221 2.120 2.246 2.309 2.188 2.258 2.242
warm-up -4 with 2.459 1.981 2.068 2.155 2.280 2.094 2.144 2.270 2.188 2.182
warm-up,steps=240 -9 without 1.444 1.429 1.437 1.427 1.437
warm-up,steps=240 -9 with 1.473 1.437 1.448 1.431 1.446
warm-up,steps=240 -8 without 1.428 1.416 1.438 1.398 1.429
warm-up,steps=240 -8 with 1.459 1.411 1.452 1.404 1.433
warm-up,steps=240 -7 without 1.467 1.484 1.453 1.413 1.438
warm-up,steps=240 -7 with 1.429 1.438 1.457 1.417 1.435
warm-up,steps=240 -6 without 1.480 1.465 1.497 1.480 1.495
warm-up,steps=240 -6 with 1.484 1.486 1.476 1.478 1.487
pre-norm,steps=160 -10 smaller 1.469 1.487 1.472 1.494 1.500
pre-norm,steps=160 -10 alike 1.490 1.526 1.499 1.549 1.547
pre-norm,steps=160 -9 smaller 1.461 1.448 1.431 1.460 1.497
pre-norm,steps=160 -9 alike 1.472 1.472 1.436 1.491 1.479
pre-norm,steps=160 -8 smaller 1.460 1.432 1.451 1.448 1.495
pre-norm,steps=160 -8 alike 1.465 1.473 1.439 1.481 1.453
pre-norm,steps=160 -7 smaller 1.455 1.501 1.457 1.458 1.486
pre-norm,steps=160 -7 alike 1.461 1.493 1.476 1.473 1.463
post-norm,steps=160 -10 smaller 1.480 1.487 1.464 1.474 1.475
post-norm,steps=160 -10 alike 1.653 1.548 1.710 1.544 1.582
post-norm,steps=160 -9 smaller 1.437 1.439 1.424 1.449 1.448
post-norm,steps=160 -9 alike 1.490 1.497 1.622 1.526 1.514
post-norm,steps=160 -8 smaller 1.458 1.461 1.452 1.432 1.459
post-norm,steps=160 -8 alike 2.434 1.485 2.489 2.477 2.483
post-norm,steps=160 -7 smaller 1.486 1.539 1.708 1.913 1.879
post-norm,steps=160 -7 alike 2.478 2.499 2.492 2.480 2.485
"""
